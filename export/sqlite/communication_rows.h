// Communication, copies and their overlap with computing into the vendor's tables.
#pragma once

#include "base/status.h"
#include "export/sqlite/operator_rows.h"
#include "export/sqlite/task_numbers.h"

namespace profd::exporting {

// The ids of operations and overlaps move on.
Status WriteCommunicationRows(const OperatorTarget& to, const TaskNumbers& tasks);

}  // namespace profd::exporting
