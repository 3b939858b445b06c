// Operators of a framework into the tables of PyTorch's profiler (analysis 2.5).
#pragma once

#include <cstdint>
#include <memory>
#include <span>

#include "base/status.h"
#include "export/sqlite/operator_rows.h"

namespace profd::exporting {

// As WriteOperatorRows; connections move on past those of the launches, too.
Status WriteFrameworkRows(const operators::Model& model, const LoaderPlace& where, int64_t pid,
                          std::span<const std::unique_ptr<TableState>> states, OperatorIds* ids);

}  // namespace profd::exporting
