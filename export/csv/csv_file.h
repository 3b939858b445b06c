// Writes one CSV of a dump, cut into files of at most so many rows.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "base/fd.h"
#include "base/status.h"
#include "export/format.h"
#include "export/spool.h"

namespace profd::exporting::csv {

// A piece of complete lines in the spool.
struct SpooledRows {
  uint64_t offset = 0;
  uint64_t bytes = 0;
  uint64_t rows = 0;
};

// Where the CSVs of one dump go.
struct CsvTarget {
  std::string dir;
  std::string timestamp;
  uint64_t rows_per_file = 0;
  std::vector<OutputFile>* files = nullptr;
  bool compat_msprof = false;
  bool legacy_names = false;
  int64_t pid = 0;  // of the process whose calls the records are
  GoOn go_on = {};
};

// A file of its own, all of it at once.
Status WriteWhole(const CsvTarget& target, const std::string& name, std::string_view text, uint64_t rows);

struct CsvFileSpec {
  std::string dir;
  std::string_view name;
  std::string timestamp;
  std::string columns;  // after Device_id, where it has that
  uint64_t rows = 0;    // all that will come
  uint64_t limit = 0;   // of a file
  // Whether as many rows as fit into one file already make it a `_slice_0`, as in the vendor's
  // Python, or only more, as in its C++.
  bool slice_at_limit = false;
  bool of_devices = true;  // Device_id is its first column
  GoOn go_on = {};
};

// `files` gets each file as soon as it is made.
class CsvFile {
 public:
  CsvFile(CsvFileSpec spec, std::vector<OutputFile>* files)
      : spec_(std::move(spec)), files_(files) {}

  // `rows` complete lines.
  Status Append(std::string_view text, uint64_t rows);
  Status Append(const Spool& spool, const SpooledRows& piece);
  Status Close();

 private:
  Status Next();
  // How many more rows this file takes; opens the next one when it is full.
  Result<uint64_t> RowsLeft();

  CsvFileSpec spec_;
  std::vector<OutputFile>* files_;
  UniqueFd fd_;
  uint64_t rows_here_ = 0;
  uint64_t slice_ = 0;
};

// The part of `text` behind its first `rows` lines begins here. Quoted cells may have lines of their own.
size_t EndOfRows(std::string_view text, uint64_t rows);

}  // namespace profd::exporting::csv
