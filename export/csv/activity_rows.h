// The CSVs of what training processes did: a row for each record, in the order of the file.
#pragma once

#include <span>
#include <string>
#include <string_view>

#include "export/csv/part.h"
#include "export/csv/spooled_text.h"
#include "export/table.h"

namespace profd::exporting::csv {

struct ActivityCsv;
class ActivityLine;

class ActivityRows : public Part {
 public:
  // Adds the cells of one line.
  using Print = void (*)(ActivityLine& line);

  ActivityRows(const PartContext& context, Print print)
      : Part(context), print_(print), lines_(*context.spool) {}

  void Take(const Batch& batch) override;
  Status Finish() override { return lines_.Finish(); }
  SpooledText& lines() { return lines_; }
  bool Is(const ActivityCsv& csv) const;

 private:
  Print print_;
  SpooledText lines_;
};

struct ActivityCsv {
  std::string_view name;
  TableId table;
  std::string_view columns;  // after Device_id
  ActivityRows::Print print;
};
std::span<const ActivityCsv> ActivityCsvs();

}  // namespace profd::exporting::csv
