#include <fmt/format.h>

#include <algorithm>

#include "analysis/checks/check.h"
#include "analysis/views/views.h"

namespace profd::analysis {

std::optional<Finding> CheckConjecturedGc(const CheckInput& input) {
  const Rank& rank = input.rank;
  if (!rank.garbage.empty()) return std::nullopt;
  std::vector<Interval> calls;
  for (const Slice& slice : rank.slices) {
    const std::string_view name = rank.TextOf(slice.name);
    // Operators of the framework have such names, too.
    const bool is_api = name.starts_with("acl") && slice.lane >= 0 && rank.lanes[static_cast<size_t>(slice.lane)].group == "CANN";
    if ((is_api || name.starts_with("AscendCL@")) && input.IsInStep(slice.start_ns, slice.end_ns)) calls.push_back({slice.start_ns, slice.end_ns});
  }
  if (calls.empty()) return std::nullopt;
  std::ranges::sort(calls, {}, &Interval::start_ns);
  std::vector<int64_t> latest_ends;  // of the calls up to each
  for (const Interval& call : calls) latest_ends.push_back(latest_ends.empty() ? call.end_ns : std::max(latest_ends.back(), call.end_ns));
  const double gap_us = input.limits.At("conjectured_gc", "gap_us");
  std::vector<Interval> found;
  for (const Interval& free : rank.overlap[static_cast<size_t>(OverlapKind::kFree)]) {
    const double us = static_cast<double>(free.end_ns - free.start_ns) / 1000;
    // Where the span is that of all tasks, what lies before the first operator and behind the last one is no gap.
    const bool at_border = rank.span && (free.start_ns <= rank.span->start_ns || free.end_ns >= rank.span->end_ns);
    if (us <= gap_us || at_border || !input.IsInStep(free.start_ns, free.end_ns)) continue;
    int64_t busy_ns = 0;
    uint64_t count = 0;
    // A call may have begun before the gap.
    const auto first = std::ranges::upper_bound(latest_ends, free.start_ns) - latest_ends.begin();
    for (auto call = calls.begin() + first; call != calls.end() && call->start_ns < free.end_ns; ++call) {
      if (call->end_ns <= free.start_ns) continue;
      ++count;
      busy_ns += std::min(call->end_ns, free.end_ns) - std::max(call->start_ns, free.start_ns);
    }
    const double share = static_cast<double>(busy_ns) / static_cast<double>(free.end_ns - free.start_ns);
    if (share < input.limits.At("conjectured_gc", "api_share") && static_cast<double>(count) / us < input.limits.At("conjectured_gc", "api_per_us")) found.push_back(free);
  }
  if (found.empty()) return std::nullopt;
  double sum_ms = 0;
  for (const Interval& each : found) sum_ms += Ms(each.end_ns - each.start_ns);
  Finding finding;
  finding.priority = Priority::kMedium;
  finding.cost_ms = CostOf(input, sum_ms);
  finding.step = input.StepNumber();
  finding.title = Text("Long gaps without calls, perhaps garbage collection", "长时间无调用的空隙，疑似垃圾回收");
  finding.evidence = Translate({"{:time} the device was free for more than {:.0f} us while the host called next to nothing, {:.4f} ms in all",
                          "{} 次出现器件空闲超过 {:.0f} us 且 Host 侧几乎没有调用，共 {:.4f} ms"}, Counted{found.size()}, gap_us, sum_ms);
  finding.advice = {Text("Record garbage collection (gc_detect_threshold of torch_npu's profiler) to be sure.", "采集垃圾回收事件（torch_npu profiler 的 gc_detect_threshold）加以确认。"), kGcAdvice};
  finding.code = {kGcCode};
  finding.columns = {"start_ms", "duration_us"};
  for (const Interval& each : found) finding.rows.push_back({Ms(each.start_ns - BeginOf(rank)), static_cast<double>(each.end_ns - each.start_ns) / 1000});
  finding.at_ns = found.front().start_ns;
  return finding;
}

}  // namespace profd::analysis
