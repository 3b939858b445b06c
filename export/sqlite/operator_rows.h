// Operator-level records of one dump into the vendor's tables.
#pragma once

#include <cstdint>
#include <memory>
#include <span>

#include "base/status.h"
#include "export/operators/model.h"
#include "export/sqlite/row_loader.h"

namespace profd::exporting {

// First numbers of a dump: those of several dumps in one database are apart.
struct OperatorIds {
  int64_t task = 0;        // globalTaskId
  int64_t connection = 0;  // connectionId
  int64_t operation = 0;   // opId
  int64_t overlap = 0;     // OVERLAP_ANALYSIS
  int64_t framework = 0;   // CONNECTION_IDS
  int64_t stack = 0;       // PYTORCH_CALLCHAINS
};

// `states`: by OperatorTable. `ids`: moves on.
Status WriteOperatorRows(const operators::Model& model, const LoaderPlace& where, int64_t pid,
                         std::span<const std::unique_ptr<TableState>> states, OperatorIds* ids);

}  // namespace profd::exporting
