// prof_rule_<device>.json: the tuning advice that earlier releases of the vendor's analyser wrote beside op_summary.
#pragma once

#include <span>

#include "base/status.h"
#include "export/csv/csv_file.h"
#include "export/csv/operator_parts.h"
#include "export/operators/model.h"

namespace profd::exporting::csv {

// One file for each device that has operators. `rows`: those of op_summary.
Status WriteTuningRules(const operators::Model& model, std::span<const OperatorRow> rows, const CsvTarget& target);

}  // namespace profd::exporting::csv
