// The vendor's CSVs of operators (operator-data c): op_summary, op_statistic, task_time, api_statistic.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "base/status.h"
#include "export/csv/spooled_text.h"
#include "export/operators/model.h"

namespace profd::exporting::csv {

struct OperatorCsv {
  std::string_view name;
  std::string columns;  // after Device_id
  SpooledText lines;
};

// Those that have rows.
Result<std::vector<OperatorCsv>> MakeOperatorCsvs(const operators::Model& model, int64_t begin_ns, Spool& spool);

}  // namespace profd::exporting::csv
