#include "daemon/recorder/trigger_watch.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/clock.h"
#include "collectors/metric_table.h"
#include "daemon/metrics/metric_store.h"

namespace profd {
namespace {

// Series and processes beyond these are not watched: their number is not ours to bound.
constexpr size_t kMaxConditions = 4096;
constexpr size_t kMaxProcesses = 4096;
constexpr size_t kStepsKept = 64;
// Fewer steps have no meaningful median.
constexpr size_t kStepsNeeded = 8;
// A fault that is away for a sample or two is still the same fault.
constexpr int64_t kFaultForgottenNs = 60 * kNsPerSecond;

bool Matches(const Trigger& trigger, const SeriesSample& sample) {
  if (trigger.kind != TriggerKind::kThreshold || trigger.metric != sample.metric) return false;
  return std::ranges::all_of(trigger.labels, [&](const auto& wanted) {
    return LabelOf(sample.labels, wanted.first) == wanted.second;
  });
}

std::string SeriesText(const SeriesSample& sample) {
  std::string text(kMetrics[sample.metric].name);
  std::string labels;
  for (const auto& [name, value] : sample.labels) {
    if (name == "uuid") continue;  // long, and npu has the same
    labels += fmt::format("{}{}=\"{}\"", labels.empty() ? "" : ",", name, value);
  }
  return labels.empty() ? text : text + "{" + labels + "}";
}

std::string Seconds(int64_t ns) { return fmt::format("{:.3g} s", static_cast<double>(ns) / 1e9); }

int64_t Median(std::vector<int64_t> values) {
  auto middle = values.begin() + static_cast<std::ptrdiff_t>(values.size() / 2);
  std::nth_element(values.begin(), middle, values.end());
  return *middle;
}

}  // namespace

bool TriggerWatch::WantsMetrics() const {
  return std::ranges::any_of(triggers_, [](const Trigger& trigger) {
    return trigger.kind == TriggerKind::kThreshold || trigger.kind == TriggerKind::kErrorCode;
  });
}

bool TriggerWatch::WantsSelfMetrics() const {
  return std::ranges::any_of(triggers_, [](const Trigger& trigger) {
    return trigger.kind == TriggerKind::kThreshold && !kMetrics[trigger.metric].name.starts_with("atlas_");
  });
}

std::vector<Firing> TriggerWatch::Look(int64_t now_ns, const Visit& visit) {
  std::vector<Firing> out;
  seen_devices_.clear();
  bool errors = std::ranges::any_of(triggers_, [](const Trigger& trigger) {
    return trigger.kind == TriggerKind::kErrorCode;
  });
  visit([&](const SeriesSample& sample) {
    for (size_t i = 0; i < triggers_.size(); ++i) {
      if (Matches(triggers_[i], sample)) LookAtThreshold(i, sample, now_ns, &out);
    }
    if (errors) LookAtErrors(sample, now_ns, &out);
  });
  // What was not seen, or did not hold, starts anew.
  std::erase_if(conditions_, [now_ns](const auto& one) { return one.second.seen_ns != now_ns; });
  std::erase_if(faults_,
                [now_ns](const auto& one) { return now_ns - one.second > kFaultForgottenNs; });
  known_devices_.insert(seen_devices_.begin(), seen_devices_.end());
  return out;
}

void TriggerWatch::LookAtThreshold(size_t index, const SeriesSample& sample, int64_t now_ns,
                                   std::vector<Firing>* out) {
  const Trigger& trigger = triggers_[index];
  if (!Holds(trigger.op, sample.value, trigger.value)) return;
  std::string series = SeriesText(sample);
  auto key = std::make_pair(index, series);
  if (conditions_.size() >= kMaxConditions && !conditions_.contains(key)) return;
  auto [found, is_new] = conditions_.try_emplace(std::move(key));
  Condition& condition = found->second;
  if (is_new) condition.since_ns = now_ns;
  condition.seen_ns = now_ns;
  if (condition.fired || now_ns - condition.since_ns < trigger.for_ns) return;
  condition.fired = true;
  out->push_back({trigger.kind, trigger.text, fmt::format("{} = {:g}", series, sample.value), ""});
}

// Health and faults of a device are read together, so a device whose health is known had no fault that
// was not reported; a state that is present when the daemon starts is not reported.
void TriggerWatch::LookAtErrors(const SeriesSample& sample, int64_t now_ns,
                                std::vector<Firing>* out) {
  bool fault = sample.metric == MetricByName("atlas_npu_fault_active");
  bool health = sample.metric == MetricByName("atlas_npu_health_status");
  bool up = sample.metric == MetricByName("atlas_npu_up");
  if (!fault && !health && !up) return;
  std::string npu(LabelOf(sample.labels, "npu"));
  std::string series = SeriesText(sample);
  bool fire = false;
  if (fault) {
    fire = !faults_.contains(series) && known_devices_.contains(npu);
    faults_[series] = now_ns;
  } else {
    if (health) seen_devices_.insert(npu);
    auto [last, is_new] = health_.try_emplace(series, sample.value);
    fire = !is_new && (health ? sample.value > last->second : sample.value < last->second);
    last->second = sample.value;
  }
  if (!fire) return;
  out->push_back({TriggerKind::kErrorCode, "error_code",
                  fmt::format("{} = {:g}", series, sample.value), ""});
}

void TriggerWatch::Name(uint64_t process, std::string who, std::string job_id) {
  if (processes_.size() >= kMaxProcesses && !processes_.contains(process)) return;
  Process& entry = processes_[process];
  entry.who = std::move(who);
  entry.job_id = std::move(job_id);
}

void TriggerWatch::CheckStep(Process& process, int64_t took_ns, std::vector<Firing>* out) {
  if (process.fired || process.durations.size() < kStepsNeeded) return;
  int64_t median = Median(process.durations);
  for (const Trigger& trigger : triggers_) {
    if (trigger.kind != TriggerKind::kSlowStep ||
        static_cast<double>(took_ns) <= trigger.factor * static_cast<double>(median)) {
      continue;
    }
    process.fired = true;
    out->push_back({trigger.kind, trigger.text,
                    fmt::format("step {} of {} takes {}, the median is {}", process.step,
                                process.who, Seconds(took_ns), Seconds(median)),
                    process.job_id});
  }
}

std::vector<Firing> TriggerWatch::OnStep(uint64_t id, int64_t step, bool begin, int64_t now_ns) {
  std::vector<Firing> out;
  auto found = processes_.find(id);
  if (found == processes_.end()) return out;
  Process& process = found->second;
  // Of a step that several threads report, the first begin and the first end count.
  if (begin ? process.begun_ns != 0 && step == process.step : step != process.step) return out;
  // A step ends with its end, or with the beginning of the next.
  if (process.begun_ns != 0) {
    int64_t took = now_ns - process.begun_ns;
    CheckStep(process, took, &out);
    if (process.durations.size() < kStepsKept) {
      process.durations.push_back(took);
    } else {
      process.durations[process.next] = took;
      process.next = (process.next + 1) % kStepsKept;
    }
  }
  process.step = step;
  process.begun_ns = begin ? now_ns : 0;
  process.fired = false;
  return out;
}

std::vector<Firing> TriggerWatch::LookAtSteps(int64_t now_ns) {
  std::vector<Firing> out;
  for (auto& [id, process] : processes_) {
    if (process.begun_ns != 0) CheckStep(process, now_ns - process.begun_ns, &out);
  }
  return out;
}

std::vector<Firing> TriggerWatch::OnCrashed(const std::string& who, const std::string& job_id) const {
  std::vector<Firing> out;
  for (const Trigger& trigger : triggers_) {
    if (trigger.kind != TriggerKind::kCrash) continue;
    out.push_back({trigger.kind, trigger.text, who + " ended without having detached", job_id});
  }
  return out;
}

// One dump for one advice, whatever number of triggers name it.
std::vector<Firing> TriggerWatch::OnAdvice(std::string_view check, const std::string& what, const std::string& job_id) const {
  for (const Trigger& trigger : triggers_) {
    if (trigger.kind != TriggerKind::kAdvice || (!trigger.check.empty() && trigger.check != check)) continue;
    return {{trigger.kind, trigger.text, fmt::format("{}: {}", check, what), job_id}};
  }
  return {};
}

}  // namespace profd
