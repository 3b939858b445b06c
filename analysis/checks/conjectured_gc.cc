#include <algorithm>
#include <cstdint>
#include <vector>

#include "analysis/checks/check.h"
#include "analysis/views/views.h"

namespace profd::analysis {
namespace {

// Calls that touch a gap, however long they are: answered without looking at each.
class CallsInGaps {
 public:
  explicit CallsInGaps(const std::vector<Interval>& calls) {
    for (const Interval& call : calls) {
      starts_.push_back(call.start_ns);
      ends_.push_back(call.end_ns);
    }
    for (Times* times : {&starts_, &ends_}) std::ranges::sort(*times);
    for (size_t i = 0; i < calls.size(); ++i) {
      start_sums_.push_back(start_sums_.back() + static_cast<uint64_t>(starts_[i]));
      end_sums_.push_back(end_sums_.back() + static_cast<uint64_t>(ends_[i]));
    }
  }
  size_t Count(const Interval& gap) const { return Below(starts_, gap.end_ns) - Below(ends_, gap.start_ns + 1); }
  // Time of the calls within the gap, each by itself.
  int64_t Ns(const Interval& gap) const { return static_cast<int64_t>(Before(gap.end_ns) - Before(gap.start_ns)); }

 private:
  using Times = std::vector<int64_t>;
  static size_t Below(const Times& sorted, int64_t t_ns) { return static_cast<size_t>(std::ranges::lower_bound(sorted, t_ns) - sorted.begin()); }
  // Time of all calls before an instant, modulo 2^64: differences are exact.
  uint64_t Before(int64_t t_ns) const {
    const size_t begun = Below(starts_, t_ns), ended = Below(ends_, t_ns);
    return (begun - ended) * static_cast<uint64_t>(t_ns) - start_sums_[begun] + end_sums_[ended];
  }

  Times starts_, ends_;  // each sorted
  std::vector<uint64_t> start_sums_ = {0}, end_sums_ = {0};
};

}  // namespace

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
  const CallsInGaps in_gaps(calls);
  const double gap_us = input.limits.At("conjectured_gc", "gap_us");
  std::vector<Interval> found;
  for (const Interval& free : rank.overlap[OverlapKind::kFree]) {
    const double us = static_cast<double>(free.end_ns - free.start_ns) / 1000;
    // Where the span is that of all tasks, what lies before the first operator and behind the last one is no gap.
    const bool at_border = rank.span && (free.start_ns <= rank.span->start_ns || free.end_ns >= rank.span->end_ns);
    if (us <= gap_us || at_border || !input.IsInStep(free.start_ns, free.end_ns)) continue;
    const double share = static_cast<double>(in_gaps.Ns(free)) / static_cast<double>(free.end_ns - free.start_ns);
    if (share < input.limits.At("conjectured_gc", "api_share") && static_cast<double>(in_gaps.Count(free)) / us < input.limits.At("conjectured_gc", "api_per_us")) found.push_back(free);
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
