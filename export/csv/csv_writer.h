// From the parts of all files of a dump to its CSVs.
#pragma once

#include <array>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "export/csv/event_rows.h"
#include "export/csv/csv_file.h"
#include "export/csv/part.h"
#include "export/durations.h"
#include "export/format.h"
#include "export/step_spans.h"
#include "export/table.h"

namespace profd::exporting::csv {

bool HasCsv(TableId table);
// One per CSV that is made of the table; always as many and in the same order.
std::vector<std::unique_ptr<Part>> MakeParts(TableId table, const PartContext& context);

// Of one dump.
struct DumpParts {
  std::array<std::vector<std::unique_ptr<Part>>, kTableCount> tables;
  std::vector<std::unique_ptr<StepTraceRows>> steps;
  std::vector<std::unique_ptr<MsprofTxRows>> marks;
  std::vector<std::string_view> operators;  // CSVs that are there, in place of those of the same name
  DurationStats durations;
};
void Join(DumpParts* parts, DumpParts more);

// The parts are used up. The two share nothing: each may run on a thread of its own.
Status WriteModules(DumpParts* parts, const CsvTarget& target);
Status WriteOthers(DumpParts* parts, const CsvTarget& target);

}  // namespace profd::exporting::csv
