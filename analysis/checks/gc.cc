#include <fmt/format.h>

#include <algorithm>

#include "analysis/checks/check.h"
#include "analysis/views/views.h"

namespace profd::analysis {

std::optional<Finding> CheckGc(const CheckInput& input) {
  const Rank& rank = input.rank;
  const double least_us = input.limits.At("gc", "least_us");
  std::vector<Interval> found;
  int64_t sum_ns = 0;
  for (const Interval& each : rank.garbage) {
    const int64_t ns = each.end_ns - each.start_ns;
    if (static_cast<double>(ns) / 1000 < least_us) continue;
    found.push_back(each);
    sum_ns += ns;
  }
  if (found.empty()) return std::nullopt;
  std::ranges::stable_sort(found, std::ranges::greater(), [](const Interval& each) { return each.end_ns - each.start_ns; });
  const double sum_ms = Ms(sum_ns);
  Finding finding;
  finding.priority = Priority::kMedium;
  finding.cost_ms = PerStep(rank, sum_ms);
  finding.title = "Garbage collection";
  finding.evidence = fmt::format("Python collected garbage {} times for {:.0f} us or longer, {:.4f} ms in all", found.size(), least_us, sum_ms);
  finding.advice = {"Raise the threshold (gc.set_threshold), or gc.disable() and collect between steps: gc.collect().",
                    "gc.freeze() behind the building of the model keeps its objects out of later collections."};
  finding.columns = {"start_ms", "duration_us"};
  for (const Interval& each : found) finding.rows.push_back({Ms(each.start_ns - BeginOf(rank)), static_cast<double>(each.end_ns - each.start_ns) / 1000});
  finding.at_ns = found.front().start_ns;
  return finding;
}

}  // namespace profd::analysis
