// Communication, copies and their overlap with computing into the vendor's tables.
#pragma once

#include <memory>
#include <span>

#include "base/status.h"
#include "export/sqlite/operator_rows.h"
#include "export/sqlite/task_numbers.h"

namespace profd::exporting {

// As WriteOperatorRows; `ids`: of operations and overlaps move on.
Status WriteCommunicationRows(const operators::Model& model, const TaskNumbers& tasks, const LoaderPlace& where,
                              std::span<const std::unique_ptr<TableState>> states, OperatorIds* ids);

}  // namespace profd::exporting
