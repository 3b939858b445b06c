// Input: a result file of the vendor's tuning tool, whole or cut. What is kept of it is within the limits and has
// numbers; a shorter piece of it never has more; its JSON and CSV can be made.
#include <cmath>

#include "analysis/tuning/tuning_view.h"
#include "tests/fuzz/fuzz_input.h"

namespace profd::analysis {
namespace {

size_t RowsOf(const TuningFile& file) {
  size_t rows = 0;
  for (const TuningTask& task : file.tasks) rows += task.operators.size() + task.subgraphs.size() + task.failed.size();
  return rows;
}

void Check(std::string_view text) {
  TuningFile file = ParseTuningResult(text);
  FUZZ_EXPECT(file.tasks.size() <= kMostTuningTasks && RowsOf(file) <= kMostTuningRows);
  FUZZ_EXPECT(file.problems.size() <= kMostTuningProblems);
  FUZZ_EXPECT(file.complete || !file.problems.empty());
  for (const TuningTask& task : file.tasks) {
    for (const TunedOperator& row : task.operators) {
      FUZZ_EXPECT(std::isfinite(row.gain.before) && row.gain.before >= 0 && row.gain.after >= 0);
      FUZZ_EXPECT(!row.gain.Percent() || std::isfinite(*row.gain.Percent()));
    }
  }
  const TuningFile half = ParseTuningResult(text.substr(0, text.size() / 2));
  FUZZ_EXPECT(half.tasks.size() <= file.tasks.size() && RowsOf(half) <= RowsOf(file));
  TuningResults results;
  results.files.push_back(std::move(file));
  FUZZ_EXPECT(!TuningCsv(results).empty());
  FUZZ_EXPECT(!TuningView(results).dump(-1, ' ', true, Json::error_handler_t::replace).empty());
}

}  // namespace
}  // namespace profd::analysis

void profd::fuzz::Run(Input input) { analysis::Check(input.rest()); }
