#include "export/show/step_view.h"

#include <algorithm>
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
  struct LongRun {
    Interval when;
    const operators::HostTask* task = nullptr;          // an operator's
    const operators::CommunicationOp* collective = nullptr;
  };
  std::vector<LongRun> found;
  const auto add = [&](int device, const LongRun& one) {
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
                           [](const LongRun& one) { return one.when.end_ns - one.when.start_ns; });
  std::vector<StepTimeline::Run> runs;
  for (const LongRun& one : found) {
    if (runs.size() == StepTimeline::kMostRuns) break;
    if (one.task != nullptr && !operators::IsShown(model, *one.task, model.CoreType(*one.task))) continue;
    runs.push_back({one.task == nullptr ? model.TypeOf(*one.collective) : std::string(model.OperatorName(*one.task)),
                    one.when.start_ns, one.when.end_ns});
  }
  std::ranges::stable_sort(runs, {}, &StepTimeline::Run::start_ns);
  return runs;
}

}  // namespace

void StepView::Add(int rank, int device, const operators::Overlap& overlap, const std::vector<StepSpan>& its_steps,
                   const std::function<Runs(const StepTimes&)>& longest) {
  std::optional<StepTimes> most;
  for (const operators::StepShare& share : operators::StepShares(overlap, {}, its_steps)) {
    StepTimes times = TimesOf(share, overlap);
    if (times.all_us() <= 0) continue;
    times.rank = rank;
    times.device = device;
    if (!most || times.all_us() > most->all_us()) most = times;
    if (steps.size() < kMaxSteps) {
      steps.push_back(times);
    } else {
      ++left_out;
    }
  }
  if (!most || (timeline && timeline->step.all_us() >= most->all_us())) return;
  timeline.emplace();
  timeline->step = *most;
  for (size_t kind = 0; kind < operators::kOverlapKinds; ++kind) timeline->intervals[kind] = Within(overlap[kind], *most);
  timeline->longest = longest(*most);
}

void StepView::Add(const operators::Model& model, const StepSpans& spans,
                   const std::function<int(int device)>& rank_of) {
  for (const auto& [device, overlap] : operators::OverlapsOf(model)) {
    const int rank = rank_of(device);
    Add(rank, device, overlap, spans.For(device, rank),
        [&](const StepTimes& step) { return LongestRuns(model, step); });
  }
}

void RecordedWork::Add(const Batch& batch, bool communication) {
  const auto names = batch.Ints(0);
  const auto lengths = batch.Ints(static_cast<size_t>(ColumnIndex(*batch.table, "duration")));
  const auto ranks = batch.Ints(static_cast<size_t>(ColumnIndex(*batch.table, "rank")));
  for (size_t row = 0; row < batch.rows(); ++row) {
    Run run{{batch.t_ns[row], 0}, names[row]};
    if (runs_ == kMaxRuns || __builtin_add_overflow(batch.t_ns[row], lengths[row], &run.when.end_ns)) {
      ++left_out_;
      continue;
    }
    ++runs_;
    Device& device = devices_[batch.device];
    device.rank = static_cast<int>(ranks[row]);
    (communication ? device.communication : device.kernels).push_back(run);
  }
}

void RecordedWork::Merge(RecordedWork other) {
  left_out_ += other.left_out_;
  for (auto& [number, more] : other.devices_) {
    Device& device = devices_[number];
    if (more.rank >= 0) device.rank = more.rank;
    for (const auto runs : {&Device::kernels, &Device::communication}) {
      const size_t taken = std::min(kMaxRuns - runs_, (more.*runs).size());
      left_out_ += (more.*runs).size() - taken;
      runs_ += taken;
      (device.*runs).insert((device.*runs).end(), (more.*runs).begin(),
                            (more.*runs).begin() + static_cast<std::ptrdiff_t>(taken));
    }
  }
}

StepView::Runs RecordedWork::Longest(const Device& device, const StepTimes& step, const Strings& strings) const {
  std::vector<Run> found;
  for (const std::vector<Run>* runs : {&device.kernels, &device.communication}) {
    for (const Run& run : *runs) {
      if (run.when.start_ns >= step.start_ns && run.when.start_ns < step.end_ns) found.push_back(run);
    }
  }
  const size_t shown = std::min(found.size(), StepTimeline::kMostRuns);
  std::ranges::partial_sort(found, found.begin() + static_cast<std::ptrdiff_t>(shown), {}, [](const Run& run) {
    return std::pair(run.when.start_ns - run.when.end_ns, run.when.start_ns);
  });
  found.resize(shown);
  std::ranges::sort(found, {}, [](const Run& run) { return run.when.start_ns; });
  StepView::Runs made;
  for (const Run& run : found) made.push_back({std::string(strings.Text(run.name)), run.when.start_ns, run.when.end_ns});
  return made;
}

void RecordedWork::AddTo(StepView* view, const StepSpans& spans, const Strings& strings) const {
  view->left_out_runs += left_out_;
  for (const auto& [number, device] : devices_) {
    const auto intervals_of = [](const std::vector<Run>& runs) {
      Intervals intervals;
      intervals.reserve(runs.size());
      for (const Run& run : runs) intervals.push_back(run.when);
      return intervals;
    };
    const operators::Overlap overlap =
        operators::MakeOverlap(intervals_of(device.kernels), intervals_of(device.communication), {});
    view->Add(device.rank, number, overlap, spans.For(number, device.rank),
              [&, &its = device](const StepTimes& step) { return Longest(its, step, strings); });
  }
}

}  // namespace profd::exporting
