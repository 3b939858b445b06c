// The records of a CSV file, and what is wrong with it as problems.
#pragma once

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <filesystem>
#include <initializer_list>
#include <string>
#include <string_view>
#include <utility>

#include "analysis/read/csv_file.h"
#include "analysis/read/readers.h"

namespace profd::analysis {

// Columns that every record needs, each by its names. Others are not in the tables of all releases, levels and metrics.
using Needed = std::initializer_list<std::initializer_list<std::string_view>>;

// Those that the header does not have; empty: it has all.
inline std::string MissingOf(const CsvFile& file, const Needed& needed) {
  std::string missing;
  for (const auto& names : needed) {
    if (file.Column(names) < 0) missing += fmt::format("{}no column {}", missing.empty() ? "" : ", ", fmt::join(names, " or "));
  }
  return missing;
}

// `prepare` gets the file, for its header, and returns what takes each record: false where that makes no sense. Whether
// there is a header alone.
template <class Prepare>
bool EachRecord(const std::filesystem::path& path, const Needed& needed, const ReadContext& context, const Prepare& prepare) {
  Result<CsvFile> file = CsvFile::Open(path);
  if (!file.ok()) {
    context.AddProblem(path, file.status());
    return false;
  }
  auto take = prepare(*file);
  while (file->Next()) {
    if (!take(*file)) file->LeaveOut();
  }
  std::string what = file->has_records() ? MissingOf(*file, needed) : std::string();
  const std::string bad = file->left_out().Text();
  if (!bad.empty()) what += (what.empty() ? "" : ": ") + bad;
  if (!what.empty()) context.AddProblem(path, std::move(what));
  context.AddProblem(path, file->status());
  return !file->has_records() && file->status().ok();
}

}  // namespace profd::analysis
