#include <algorithm>

#include "analysis/checks/check.h"
#include "analysis/views/views.h"

namespace profd::analysis {

std::optional<Finding> CheckGc(const CheckInput& input) {
  const Rank& rank = input.rank;
  // What is advised is not of MindSpore.
  if (rank.source.starts_with("MindSpore")) return std::nullopt;
  const double least_us = input.limits.At("gc", "least_us");
  std::vector<Interval> found;
  int64_t sum_ns = 0;
  int64_t in_steps_ns = 0;
  for (const Interval& each : rank.garbage) {
    const int64_t ns = each.end_ns - each.start_ns;
    if (static_cast<double>(ns) / 1000 < least_us) continue;
    found.push_back(each);
    sum_ns += ns;
    if (IsInSteps(rank, each.start_ns)) in_steps_ns += ns;
  }
  if (found.empty()) return std::nullopt;
  std::ranges::stable_sort(found, std::ranges::greater(), [](const Interval& each) { return each.end_ns - each.start_ns; });
  const double sum_ms = Ms(sum_ns);
  Finding finding;
  finding.priority = Priority::kMedium;
  finding.cost_ms = PerStep(rank, Ms(in_steps_ns));
  finding.title = Text("Garbage collection", "垃圾回收");
  finding.evidence = Translate({"Python collected garbage {:time} for {:.0f} us or longer, {:.4f} ms in all", "Python 垃圾回收有 {} 次达到或超过 {:.0f} us，共 {:.4f} ms"}, Counted{found.size()}, least_us, sum_ms);
  finding.advice = {kGcAdvice, Text("gc.freeze() after the model is built keeps its objects out of later collections.", "模型构建后调用 gc.freeze()，使其对象不参与之后的回收。")};
  finding.code = {kGcCode};
  finding.columns = {"start_ms", "duration_us"};
  for (const Interval& each : found) finding.rows.push_back({Ms(each.start_ns - BeginOf(rank)), static_cast<double>(each.end_ns - each.start_ns) / 1000});
  finding.at_ns = found.front().start_ns;
  return finding;
}

}  // namespace profd::analysis
