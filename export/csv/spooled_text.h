// Lines of a CSV that wait until it is written: a little in memory, the rest in the spool.
#pragma once

#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "export/csv/csv_file.h"
#include "export/spool.h"

namespace profd::exporting::csv {

class SpooledText {
 public:
  explicit SpooledText(Spool& spool) : spool_(&spool) {}

  // Where complete lines are added; then returns how many there were.
  std::string& text() { return text_; }
  void Added(uint64_t rows);
  uint64_t rows() const { return rows_; }
  // Gives up memory, after the last line. The first error there was.
  Status Finish();
  // To the end of `file`; the lines are gone then.
  Status WriteTo(CsvFile* file);
  // The same for lines that are not written as they are.
  Status ForEach(const std::function<Status(std::string_view lines)>& each);

 private:
  void Spill();

  Spool* spool_;
  std::string text_;
  uint64_t text_rows_ = 0;
  uint64_t rows_ = 0;
  std::vector<SpooledRows> pieces_;
  Status error_;
};

}  // namespace profd::exporting::csv
