// A CSV file, a record at a time: quoted fields, line breaks in them, CR LF. Memory does not depend on the file's size.
#pragma once

#include <cstdint>
#include <filesystem>
#include <initializer_list>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/fd.h"
#include "base/status.h"

namespace profd::analysis {

// Lines that are left out.
class BadLines {
 public:
  void Add(uint64_t line) {
    if (++count_ == 1) first_ = line;
  }
  uint64_t count() const { return count_; }
  uint64_t first() const { return first_; }
  // "2 lines make no sense: left out, the first is line 7"; empty: there are none.
  std::string Text() const;

 private:
  uint64_t count_ = 0;
  uint64_t first_ = 0;
};

class CsvFile {
 public:
  static constexpr size_t kMaxRecord = 64 << 20;

  // Reads the header. An error: it cannot be read, or has none.
  static Result<CsvFile> Open(const std::filesystem::path& path);

  // The first of the names that the header has; -1: none.
  int Column(std::initializer_list<std::string_view> names) const;
  const std::vector<std::string>& header() const { return header_; }

  // The next record; false: there is none. Fields are valid until the next call, without blanks around them. One without a
  // field for each name of the header was cut, and its last field may be a part of a number: it is left out.
  bool Next();
  // Records that end with their line may lack this column (-1: none), which earlier releases do not write; those behind it
  // are one field earlier then.
  void MayLack(int column) { may_lack_ = column; }
  // The record makes no sense to the caller.
  void LeaveOut() { bad_.Add(line_); }
  const BadLines& left_out() const { return bad_; }
  // Next has come to one, though it may be left out.
  bool has_records() const { return has_records_; }
  // Empty where the record has no such column.
  std::string_view Field(int column) const;
  std::optional<double> Number(int column) const;
  // The same, cut to a whole number; none where it has more than 15 digits.
  std::optional<int64_t> Integer(int column) const;
  // Of a decimal number of microseconds, exact.
  std::optional<int64_t> MicrosAsNs(int column) const;

  // Of the file, on which the record begins; the header's is 1.
  uint64_t line() const { return line_; }

  // Why Next ended before the end of the file; ok: it did not.
  const Status& status() const { return status_; }

 private:
  explicit CsvFile(UniqueFd fd) : fd_(std::move(fd)) {}
  bool ReadRecord();
  bool Fill();

  UniqueFd fd_;
  std::string buffer_;
  size_t begin_ = 0;  // of the next record
  uint64_t line_ = 0;
  uint64_t next_line_ = 1;
  bool at_end_ = false;
  std::vector<std::string> header_;
  size_t named_ = 0;  // columns up to the last one that has a name
  int may_lack_ = -1;
  bool line_ended_ = false;  // the record's
  BadLines bad_;
  bool has_records_ = false;
  std::string record_;         // its fields without quotes and commas
  std::vector<size_t> ends_;   // of the fields in it
  Status status_;
};

// "1736408883704643.212" as ns; none: no number.
std::optional<int64_t> MicrosAsNs(std::string_view text);

}  // namespace profd::analysis
