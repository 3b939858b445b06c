#include "daemon/advice/history.h"

#include <algorithm>

namespace profd {
namespace {

// How long the last steps that make "now" take together, and how many they are at least and at most.
constexpr int64_t kRecentNs = 3 * kNsPerSecond;
constexpr size_t kLeastSteps = 3;
constexpr size_t kMostSteps = 64;
// Of activity. The longer one is for jobs with long steps.
constexpr int64_t kShareSeconds = 5;
constexpr int64_t kLongShareSeconds = 10;
// Every so often the hottest kernels are looked at; ActivityWindow has them of the last 5 to 10 seconds.
constexpr int64_t kKernelsEveryNs = 5 * kNsPerSecond;
constexpr size_t kMaxKernelPasts = 256;
constexpr uint64_t kLeastCalls = 3;
constexpr int kLearnKernels = 2;

template <class Record>
int64_t BoundedDurationOf(const Record& record) {
  return static_cast<int64_t>(std::min<uint64_t>(attach::DurationOf(record), uint64_t{1} << 53));
}

double Ms(int64_t ns) { return static_cast<double>(ns) / 1e6; }

}  // namespace

void HostSeconds::Advance(int64_t second) {
  if (second <= newest_) return;
  const auto count = static_cast<int64_t>(kSeconds);
  for (int64_t s = std::max(newest_ + 1, second - count + 1); s <= second; ++s) seconds_[static_cast<size_t>(s) % kSeconds] = {};
  newest_ = second;
}

HostSeconds::Sum* HostSeconds::At(int64_t time_ns) {
  const int64_t second = time_ns / kNsPerSecond;
  Advance(second);
  return second > newest_ - static_cast<int64_t>(kSeconds) ? &seconds_[static_cast<size_t>(second) % kSeconds] : nullptr;
}

HostSeconds::Sum HostSeconds::Last(int64_t now_ns) {
  const int64_t now = now_ns / kNsPerSecond;
  Advance(now);
  Sum all;
  for (int64_t s = std::max<int64_t>(now - kWindow, 0); s < now; ++s) {
    const Sum& one = seconds_[static_cast<size_t>(s) % kSeconds];
    for (size_t i = 0; i < all.ms.size(); ++i) {
      all.ms[i] += one.ms[i];
      all.longest[i] = std::max(all.longest[i], one.longest[i]);
    }
    all.aicpu_ms += one.aicpu_ms;
    all.aicpu_kernels += one.aicpu_kernels;
    all.compile_ms += one.compile_ms;
    all.compilations += one.compilations;
    all.steps += one.steps;
  }
  return all;
}

void RankHistory::TakeMarks(std::span<const Mark> marks) {
  for (const Mark& mark : marks) {
    if (mark.kind == attach::MarkKind::kStepBegin || mark.kind == attach::MarkKind::kStepEnd) {
      TakeStep(mark);
    } else if (mark.kind == attach::MarkKind::kRangePush || mark.kind == attach::MarkKind::kRangePop) {
      TakeRange(mark);
    }
  }
}

// As StepClock: a process that only reports where its steps begin has them end where the next one does.
void RankHistory::TakeStep(const Mark& mark) {
  if (mark.kind == attach::MarkKind::kStepBegin) {
    if (thread_ != mark.thread) {
      thread_ = mark.thread;
      ranges_.clear();
      deeper_ = 0;
    }
    if (open_ && step_ && *step_ != INT64_MAX && mark.value == *step_ + 1) AddStep(*step_, begin_ns_, mark.time_ns);
    step_ = mark.value;
    begin_ns_ = mark.time_ns;
    open_ = true;
  } else if (open_ && step_ == mark.value) {
    AddStep(mark.value, begin_ns_, mark.time_ns);
    open_ = false;
  }
  last_ns_ = std::max(last_ns_, mark.time_ns);
}

void RankHistory::AddStep(int64_t step, int64_t begin_ns, int64_t end_ns) {
  if (end_ns < begin_ns) return;
  steps_[done_ % kSteps] = {step, end_ns - begin_ns, end_ns};
  ++done_;
  if (HostSeconds::Sum* second = host_.At(end_ns)) ++second->steps;
}

// Work of other threads is beside the steps.
void RankHistory::TakeRange(const Mark& mark) {
  if (thread_ != mark.thread) return;
  if (mark.kind == attach::MarkKind::kRangePush) {
    if (ranges_.size() == kMaxDepth) {
      ++deeper_;
      return;
    }
    // What is inside of one is a part of it.
    const bool inside = !ranges_.empty() && ranges_.back().work != HostWork::kNone;
    ranges_.push_back({inside ? ranges_.back().work : analysis::HostWorkOf(mark.name), inside ? 0 : mark.time_ns});
    return;
  }
  if (deeper_ > 0) {
    --deeper_;
    return;
  }
  if (ranges_.empty()) return;  // began before its marks were taken
  const OpenRange range = ranges_.back();
  ranges_.pop_back();
  if (range.work == HostWork::kNone || range.begin_ns == 0 || mark.time_ns < range.begin_ns) return;
  HostSeconds::Sum* const second = host_.At(mark.time_ns);
  if (second == nullptr) return;
  const auto work = static_cast<size_t>(range.work);
  const double ms = Ms(mark.time_ns - range.begin_ns);
  second->ms[work] += ms;
  second->longest[work] = std::max(second->longest[work], ms);
}

void RankHistory::ForgetNames() {
  aicpu_types_.clear();
  compile_names_.clear();
}

bool RankHistory::LookUp(uint32_t id, std::string_view part, const ActivityNameTable& names, std::vector<int8_t>* known) {
  if (id > attach::kMaxActivityNames) return false;
  if (id >= known->size()) known->resize(id + size_t{1});
  const std::string_view name = names.Find(id);
  if (name.empty()) return false;  // it may still come
  const bool is = name.find(part) != std::string_view::npos;
  (*known)[id] = is ? 1 : -1;
  return is;
}

void RankHistory::TakeActivity(const ActivityBatch& batch) {
  for (const ActivityFrame& frame : batch.frames) {
    for (const auto& kernel : frame.As<attach::KernelRecord>()) {
      const int64_t end_ns = frame.base_ns + kernel.start + BoundedDurationOf(kernel);
      last_kernel_ns_ = std::max(last_kernel_ns_, end_ns);
      if (!IsNamed(kernel.type, "AICPU", *batch.names, &aicpu_types_)) continue;
      HostSeconds::Sum* const second = host_.At(frame.base_ns + kernel.start);
      if (second == nullptr) continue;
      second->aicpu_ms += Ms(BoundedDurationOf(kernel));
      ++second->aicpu_kernels;
    }
    for (const auto& api : frame.As<attach::ApiRecord>()) {
      if (!IsNamed(api.name, "aclopCompileAndExecute", *batch.names, &compile_names_)) continue;
      HostSeconds::Sum* const second = host_.At(frame.base_ns + api.start);
      if (second == nullptr) continue;
      second->compile_ms += Ms(BoundedDurationOf(api));
      ++second->compilations;
    }
  }
}

RankFacts RankHistory::Facts(const TrainingProcess& process, const LiveActivity& live, int64_t now_ns, const Rules& rules) {
  RankFacts facts{.pid = process.pid, .rank = process.rank, .devices = process.devices, .step = step_, .in_step = open_,
                  .last_step_ns = last_ns_, .steps_done = done_, .last_kernel_ns = std::min(last_kernel_ns_, now_ns)};
  FillSteps(&facts, now_ns, rules);
  FillHost(&facts, now_ns);
  if (live.window == nullptr) {
    kernels_.clear();
    return facts;
  }
  FillShares(live, &facts, now_ns, rules);
  FillKernels(live, now_ns, rules);
  facts.kernels = kernels_;
  return facts;
}

void RankHistory::FillSteps(RankFacts* facts, int64_t now_ns, const Rules& rules) {
  const size_t count = std::min<uint64_t>(done_, kSteps);
  facts->steps.reserve(count);
  for (size_t i = 0; i < count; ++i) facts->steps.push_back(steps_[(done_ - count + i) % kSteps]);
  int64_t sum_ns = 0;
  std::vector<double> recent;
  for (size_t i = count; i > 0 && recent.size() < kMostSteps && (sum_ns < kRecentNs || recent.size() < kLeastSteps); --i) {
    sum_ns += facts->steps[i - 1].duration_ns;
    recent.push_back(Ms(facts->steps[i - 1].duration_ns));
  }
  if (recent.size() < kLeastSteps) return;
  const auto middle = recent.begin() + static_cast<std::ptrdiff_t>(recent.size() / 2);
  std::nth_element(recent.begin(), middle, recent.end());
  facts->step_ms = *middle;
  if (done_ != done_before_) step_past_.Add(facts->step_ms, rules.steps, now_ns, rules.forget_ns);
  done_before_ = done_;
  facts->before_ms = step_past_.mean();
}

void RankHistory::FillHost(RankFacts* facts, int64_t now_ns) {
  const HostSeconds::Sum sum = host_.Last(now_ns);
  if (sum.steps == 0) return;
  const int64_t end_ns = now_ns / kNsPerSecond * kNsPerSecond;
  const double steps = std::max(1.0, StepsIn(end_ns - HostSeconds::kWindow * kNsPerSecond, end_ns, sum.steps));
  const auto per_step = [&](HostWork work) { return sum.ms[static_cast<size_t>(work)] / steps; };
  facts->host.gc_ms = per_step(HostWork::kGc);
  facts->host.longest_gc_ms = sum.longest[static_cast<size_t>(HostWork::kGc)];
  facts->host.dataloader_ms = per_step(HostWork::kDataloader);
  facts->host.longest_dataloader_ms = sum.longest[static_cast<size_t>(HostWork::kDataloader)];
  facts->host.compile_ms = per_step(HostWork::kCompile);
  facts->aicpu_ms = sum.aicpu_ms / steps;
  facts->aicpu_kernels = sum.aicpu_kernels;
  facts->compilations = sum.compilations;
  facts->compile_api_ms = sum.compile_ms / steps;
}

void RankHistory::FillShares(const LiveActivity& live, RankFacts* facts, int64_t now_ns, const Rules& rules) {
  const std::vector<ActivityAccount> seconds =
      live.window->SecondsFrom(now_ns - (kLongShareSeconds + ActivityWindow::kLateSeconds + 1) * kNsPerSecond);
  for (const int64_t most : {kShareSeconds, kLongShareSeconds}) {
    if (static_cast<int64_t>(seconds.size()) < kShareSeconds) return;
    std::array<double, 4> sum{};
    uint64_t ended = 0;
    const auto last = std::span(seconds).last(std::min(seconds.size(), static_cast<size_t>(most)));
    for (const ActivityAccount& second : last) {
      sum[0] += second.computation;
      sum[1] += second.communication;
      sum[2] += second.not_overlapped;
      sum[3] += second.free;
      ended += second.steps;
    }
    const double steps = StepsIn(last.front().begin_ns, last.back().end_ns, ended);
    if (steps < kLeastSteps && most == kShareSeconds) continue;
    // Values of a part of a step are not values of the step.
    if (steps < 1) return;
    for (double& value : sum) value *= 1e3 / steps;
    facts->now = StepShares{sum[0], sum[1], sum[2], sum[3]};
    if (seconds.back().end_ns != shares_end_ns_) {
      shares_end_ns_ = seconds.back().end_ns;
      for (size_t i = 0; i < sum.size(); ++i) share_past_[i].Add(sum[i], rules.shares, now_ns, rules.forget_ns);
    }
    if (share_past_[0].known()) {
      facts->before = StepShares{share_past_[0].mean(), share_past_[1].mean(), share_past_[2].mean(), share_past_[3].mean()};
    }
    return;
  }
}

// Steps that were made in this time, with the parts of those that began before or ended later: five of which one is counted
// or not are a fifth more or less of everything per step. `ended`: how many ended in it, where they are not all kept.
double RankHistory::StepsIn(int64_t begin_ns, int64_t end_ns, uint64_t ended) const {
  const size_t count = std::min<uint64_t>(done_, kSteps);
  if (count == 0) return 0;
  const auto step = [&](size_t i) -> const StepTime& { return steps_[(done_ - count + i) % kSteps]; };
  if (count == kSteps && step(0).end_ns > begin_ns) return static_cast<double>(ended);
  // In steps since the oldest began. What has not ended takes as long as the last one.
  const auto place = [&](int64_t time_ns) {
    size_t next = 0;
    while (next < count && step(next).end_ns <= time_ns) ++next;
    const StepTime& last = step(std::min(next, count - 1));
    const auto duration = static_cast<double>(last.duration_ns);
    const double begin = next > 0 ? static_cast<double>(step(next - 1).end_ns) : static_cast<double>(last.end_ns) - duration;
    const double takes = next < count ? static_cast<double>(last.end_ns) - begin : duration;
    return static_cast<double>(next) + (takes > 0 ? std::clamp((static_cast<double>(time_ns) - begin) / takes, 0.0, 1.0) : 0.0);
  };
  return place(end_ns) - place(begin_ns);
}

void RankHistory::FillKernels(const LiveActivity& live, int64_t now_ns, const Rules& rules) {
  if (now_ns < next_kernels_ns_) return;
  next_kernels_ns_ = now_ns + kKernelsEveryNs;
  kernels_.clear();
  for (const ActivityWindow::HotKernel& hot : live.window->HottestKernels(kKernels).kernels) {
    const std::string_view name = live.names->Find(hot.name);
    if (name.empty() || hot.count < kLeastCalls) continue;
    KernelTime kernel{std::string(name.substr(0, 256)), static_cast<double>(hot.total_ns) / 1e3 / static_cast<double>(hot.count), hot.count, 0};
    auto past = kernel_past_.find(kernel.name);
    if (past == kernel_past_.end()) {
      if (kernel_past_.size() == kMaxKernelPasts) continue;
      past = kernel_past_.emplace(kernel.name, Baseline(kLearnKernels)).first;
    }
    past->second.Add(kernel.mean_us, rules.kernels, now_ns, rules.forget_ns);
    kernel.before_us = past->second.mean();
    kernels_.push_back(std::move(kernel));
  }
}

}  // namespace profd
