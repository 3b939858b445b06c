#include "export/show/step_view.h"

#include <algorithm>
#include <map>
#include <utility>

#include "export/operators/details.h"
#include "export/operators/model.h"
#include "export/operators/step_shares.h"

namespace profd::exporting {
namespace {

using operators::Interval;
using operators::Intervals;
using operators::OverlapKind;

StepTimes TimesOf(const operators::StepShare& share, const operators::Overlap& overlap) {
  StepTimes times;
  times.computing_us = share.Of(OverlapKind::kComputing);
  times.communication_us = share.Of(OverlapKind::kNotOverlapped);
  times.free_us = share.Of(OverlapKind::kFree);
  times.hidden_us = share.Of(OverlapKind::kCommunication) - times.communication_us;
  if (share.step) {
    times.number = share.step->number;
    times.start_ns = share.step->start_ns;
    times.end_ns = share.step->end_ns;
    return times;
  }
  times.start_ns = INT64_MAX;
  times.end_ns = INT64_MIN;
  for (const Intervals& intervals : overlap) {
    if (intervals.empty()) continue;
    times.start_ns = std::min(times.start_ns, intervals.front().start_ns);
    times.end_ns = std::max(times.end_ns, intervals.back().end_ns);
  }
  return times;
}

Intervals Within(const Intervals& intervals, const StepTimes& step) {
  Intervals kept;
  for (const Interval& interval : intervals) {
    const Interval cut = {std::max(interval.start_ns, step.start_ns), std::min(interval.end_ns, step.end_ns)};
    if (cut.start_ns < cut.end_ns) kept.push_back(cut);
  }
  return kept;
}

std::vector<StepTimeline::Run> LongestRuns(const operators::Model& model, const StepTimes& step) {
  struct Found {
    Interval when;
    const operators::HostTask* task = nullptr;          // an operator's
    const operators::CommunicationOp* collective = nullptr;
  };
  std::vector<Found> found;
  const auto add = [&](int device, const Found& one) {
    if (device != step.device || one.when.start_ns < step.start_ns || one.when.start_ns >= step.end_ns) return;
    found.push_back(one);
  };
  for (const operators::TaskRow& row : model.rows) {
    const operators::HostTask* host = model.HostOf(row);
    if (host != nullptr && host->compute) add(row.device, {{row.start_ns, row.end_ns}, host, nullptr});
  }
  for (const operators::CommunicationOp& op : model.communication.ops) {
    if (op.shown) add(op.device, {{op.start_ns, op.end_ns}, nullptr, &op});
  }
  std::ranges::stable_sort(found, std::greater<>(),
                           [](const Found& one) { return one.when.end_ns - one.when.start_ns; });
  std::vector<StepTimeline::Run> runs;
  for (const Found& one : found) {
    if (runs.size() == StepTimeline::kMostRuns) break;
    if (one.task != nullptr && !operators::IsShown(model, *one.task, model.CoreType(*one.task))) continue;
    runs.push_back({one.task == nullptr ? model.TypeOf(*one.collective) : model.OperatorName(*one.task),
                    one.when.start_ns, one.when.end_ns});
  }
  std::ranges::stable_sort(runs, {}, &StepTimeline::Run::start_ns);
  return runs;
}

}  // namespace

void StepView::Add(const operators::Model& model, const StepSpans& spans,
                   const std::function<int(int device)>& rank_of) {
  const std::map<int, operators::Overlap> overlaps = operators::OverlapsOf(model);
  const operators::Overlap* longest_in = nullptr;
  StepTimes longest;
  for (const auto& [device, overlap] : overlaps) {
    const std::vector<StepSpan> its_steps = spans.For(device);
    for (const operators::StepShare& share : operators::StepShares(model, device, overlap, its_steps)) {
      StepTimes times = TimesOf(share, overlap);
      if (times.all_us() <= 0) continue;
      times.device = device;
      times.rank = rank_of(device);
      if (longest_in == nullptr || times.all_us() > longest.all_us()) {
        longest = times;
        longest_in = &overlap;
      }
      if (steps.size() < kMaxSteps) {
        steps.push_back(times);
      } else {
        ++left_out;
      }
    }
  }
  if (longest_in == nullptr || (timeline && timeline->step.all_us() >= longest.all_us())) return;
  timeline.emplace();
  timeline->step = longest;
  for (size_t kind = 0; kind < operators::kOverlapKinds; ++kind) {
    timeline->intervals[kind] = Within((*longest_in)[kind], longest);
  }
  timeline->longest = LongestRuns(model, longest);
}

}  // namespace profd::exporting
