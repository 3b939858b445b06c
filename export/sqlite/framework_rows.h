// Operators of a framework into the tables of PyTorch's profiler (analysis 2.5).
#pragma once

#include "base/status.h"
#include "export/sqlite/operator_rows.h"

namespace profd::exporting {

// Connections move on past those of the launches, too.
Status WriteFrameworkRows(const OperatorTarget& to);

}  // namespace profd::exporting
