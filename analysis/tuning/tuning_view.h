// What tuning results say, as JSON (for the terminal's tables, --json and the page) and as CSV.
#pragma once

#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "analysis/tuning/result_file.h"

namespace profd::analysis {

using Json = nlohmann::ordered_json;

struct TuningResults {
  std::vector<TuningFile> files;
  std::vector<Problem> problems;  // files that cannot be read
};
TuningResults ReadTuningResults(const std::vector<std::string>& paths);

// {"files": [...], "totals": {...}, "problems": [...]}; times have their unit in the name.
Json TuningView(const TuningResults& results);
// A line for each strategy of an operator and each subgraph.
std::string TuningCsv(const TuningResults& results);

}  // namespace profd::analysis
