#include "export/operators/step_shares.h"

#include <algorithm>
#include <string>

#include "base/text.h"

namespace profd::exporting::operators {
namespace {

// Doubles as the vendor's files have them: the sum of rounded us is not that of ns.
double Micros(int64_t ns) { return static_cast<double>(ns) / 1000; }

struct Extent {
  std::optional<int64_t> first_ns;
  int64_t last_ns = 0;

  void Add(const Interval& interval) {
    if (!first_ns || interval.start_ns < *first_ns) first_ns = interval.start_ns;
    last_ns = std::max(last_ns, interval.end_ns);
  }
};

// Of intervals by start: those that begin in the step, or all.
std::span<const Interval> InStep(const Intervals& intervals, const std::optional<StepSpan>& step) {
  if (!step) return intervals;
  const auto begin = std::ranges::lower_bound(intervals, step->start_ns, {}, &Interval::start_ns);
  const auto end = std::ranges::lower_bound(begin, intervals.end(), step->end_ns, {}, &Interval::start_ns);
  return {begin, end};
}

}  // namespace

bool IsReceive(std::string_view type) {
  return LowerCase(type).find("receive") != std::string::npos;
}

Intervals ReceivesOf(const Model& model, int device) {
  Intervals receives;
  for (const CommunicationOp& op : model.communication.ops) {
    if (op.shown && op.device == device && IsReceive(model.TypeOf(op))) receives.push_back({op.start_ns, op.end_ns});
  }
  std::ranges::sort(receives, {}, &Interval::start_ns);
  return receives;
}

std::vector<StepShare> StepShares(const Overlap& overlap, const Intervals& receives, std::span<const StepSpan> steps) {
  std::vector<StepShare> shares(std::max<size_t>(steps.size(), 1));
  for (size_t i = 0; i < steps.size(); ++i) shares[i].step = steps[i];
  for (StepShare& share : shares) {
    Extent all;
    Extent busy;
    for (size_t kind = 0; kind < kOverlapKinds; ++kind) {
      for (const Interval& interval : InStep(overlap[kind], share.step)) {
        share.us[kind] += Micros(interval.end_ns - interval.start_ns);
        all.Add(interval);
        if (kind != static_cast<size_t>(OverlapKind::kFree)) busy.Add(interval);
      }
    }
    for (const Interval& receive : InStep(receives, share.step)) {
      share.receive_us += Micros(receive.end_ns - receive.start_ns);
    }
    if (all.first_ns) share.whole_us = Micros(all.last_ns) - Micros(*all.first_ns);
    if (share.step && busy.first_ns) share.before_us = Micros(*busy.first_ns) - Micros(share.step->start_ns);
  }
  return shares;
}

}  // namespace profd::exporting::operators
