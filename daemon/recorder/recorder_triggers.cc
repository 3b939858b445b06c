// The recorder's triggers: what they see, the cool-down, the cap on what is kept.
#include <fmt/format.h>
#include <prometheus/metric_family.h>

#include <algorithm>
#include <utility>

#include "base/log.h"
#include "base/strand.h"
#include "collectors/metric_table.h"
#include "daemon/recorder/flight_recorder.h"
#include "profd/v1/profd.pb.h"

namespace profd {
namespace {

std::string Who(const TrainingProcess& process) {
  std::string text = fmt::format("pid {}", process.pid);
  if (process.rank) text += fmt::format(", rank {}", *process.rank);
  if (!process.job_id.empty()) text += fmt::format(" of job {}", process.job_id);
  return text;
}

}  // namespace

void FlightRecorder::SetTriggers() {
  std::vector<Trigger> triggers;
  for (const std::string& text : config_.recorder_triggers) {
    Result<Trigger> trigger = ParseTrigger(text);
    if (trigger.ok()) triggers.push_back(std::move(trigger).value());
  }
  watch_.SetTriggers(std::move(triggers));
}

void FlightRecorder::WatchJobs() {
  if (jobs_ == nullptr) return;
  for (const TrainingProcess& process : jobs_->Processes()) JoinActivity(process);
  watching_ = jobs_->Watch(this);
}

void FlightRecorder::JoinActivity(const TrainingProcess& process) {
  const bool joins = activity_ != nullptr && process.attached() && activity_->Join(process);
  if (joins) jobs_->Notify(process.attach_id, activity_->Notice());
}

void FlightRecorder::OnAttached(const TrainingProcess& process) {
  watch_.Name(static_cast<uint64_t>(process.pid), Who(process), process.job_id);
  JoinActivity(process);
}

void FlightRecorder::OnDetached(const TrainingProcess& process, bool in_good_order) {
  if (activity_ != nullptr) activity_->OnGone(process.attach_id, in_good_order, deps_.session.host.clock.MonotonicRawNs());
  watch_.OnGone(static_cast<uint64_t>(process.pid));
}

void FlightRecorder::OnCrashed(const TrainingProcess& process) {
  Fire(watch_.OnCrashed(Who(process), process.job_id));
}

// Steps come through the rings with their own time.
bool FlightRecorder::Wants(uint64_t attach_id) const {
  return (activity_ != nullptr && activity_->Has(attach_id)) ||
         std::ranges::count(watch_.triggers(), TriggerKind::kSlowStep, &Trigger::kind) > 0;
}

void FlightRecorder::OnMarks(const MarkBatch& batch) {
  for (const Mark& mark : batch.marks) {
    bool begin = mark.kind == attach::MarkKind::kStepBegin;
    if (!begin && mark.kind != attach::MarkKind::kStepEnd) continue;
    Fire(watch_.OnStep(static_cast<uint64_t>(batch.pid), mark.value, begin, mark.time_ns));
  }
}

void FlightRecorder::OnActivity(const ActivityBatch& batch) {
  if (activity_ != nullptr) activity_->Take(batch, deps_.session.host.clock.MonotonicRawNs());
}

void FlightRecorder::OnCollector(uint64_t attach_id, const attach::CollectorReport& report) {
  if (activity_ != nullptr) activity_->OnReport(attach_id, report, deps_.session.host.clock.MonotonicRawNs());
}

void FlightRecorder::DescribeActivity(int64_t now_ns, v1::Recorder* out) const {
  if (activity_ == nullptr) return;
  const RecorderRing::Stats held = activity_->stats();
  v1::RecorderChannel& channel = *out->add_channels();
  channel.set_collector("activity");
  channel.set_bytes(held.bytes);
  if (held.oldest_ns != 0) channel.set_held_ns(static_cast<uint64_t>(std::max<int64_t>(0, now_ns - held.oldest_ns)));
  channel.set_problem(activity_->Problem());
}

void FlightRecorder::VisitSelfMetrics(const std::function<void(const SeriesSample&)>& take) const {
  for (const prometheus::MetricFamily& family : deps_.self_metrics.Collect()) {
    const auto spec = std::ranges::find(kMetrics, family.name, &MetricSpec::name);
    if (spec == kMetrics.end()) continue;
    const auto metric = static_cast<MetricId>(spec - kMetrics.begin());
    for (const prometheus::ClientMetric& series : family.metric) {
      std::vector<std::pair<std::string, std::string>> labels;
      for (const auto& label : series.label) labels.emplace_back(label.name, label.value);
      const bool counts = family.type == prometheus::MetricType::Counter;
      take({metric, labels, counts ? series.counter.value : series.gauge.value});
    }
  }
}

void FlightRecorder::LookAtTriggers(int64_t now_ns) {
  // Without a past there is nothing to dump; what holds by then fires then.
  if (ring_->stats().blocks == 0) return;
  if (watch_.WantsMetrics()) {
    Fire(watch_.Look(now_ns, [&](const auto& take) {
      deps_.session.store.VisitFresh(now_ns, [&take](const SeriesValue& series) {
        take({series.metric, *series.labels, series.value});
      });
      if (watch_.WantsSelfMetrics()) VisitSelfMetrics(take);
    }));
  }
  Fire(watch_.LookAtSteps(now_ns));
}

void FlightRecorder::OnAdvice(std::string_view check, const std::string& what, const std::string& job_id) {
  DCHECK_ON(deps_.session.control);
  if (ring_->stats().blocks == 0) return;
  Fire(watch_.OnAdvice(check, what, job_id));
}

void FlightRecorder::Fire(const std::vector<Firing>& firings) {
  for (const Firing& firing : firings) {
    if (ended_) return;
    std::string kind(ToString(firing.kind));
    int64_t now = deps_.session.host.clock.MonotonicRawNs();
    if (now < cool_until_ns_ || triggered_) {
      ++suppressed_;
      log::Info("trigger suppressed", {{"trigger", firing.trigger}, {"seen", firing.detail}});
      continue;
    }
    cool_until_ns_ = now + config_.recorder_cooldown_s * kNsPerSecond;
    triggered_ = true;
    log::Warning("trigger", {{"trigger", firing.trigger}, {"seen", firing.detail}});
    Peer myself = Peer::Daemon();
    RecorderDumpRequest request{.uid = myself.uid, .gid = myself.gid, .pid = myself.pid,
                                .last_ns = config_.recorder_dump_seconds * kNsPerSecond};
    for (const DeviceInfo& device : deps_.session.host.devices) request.devices.push_back(device.id);
    request.job_id = firing.job_id;
    request.label = std::string(kTriggerLabel) + kind;
    request.reason = fmt::format("{}: {}", firing.trigger, firing.detail);
    request.counted = kind;
    request.may_hold = [](const TrainingProcess&) { return true; };
    Write(std::move(request), [this](const Result<v1::Session>& session) {
      triggered_ = false;
      if (!session.ok()) {
        cool_until_ns_ = 0;
        log::Error("no dump for the trigger", {{"why", session.status().ToString()}});
        return;
      }
      EvictTriggerDumps();
    });
  }
}

// Pinned ones do not count. Those that wait for the database do, and stay: their bound is the archive's.
void FlightRecorder::EvictTriggerDumps() {
  if (dump_requests_ == nullptr) return;
  const std::vector<KeptDump> kept = dump_requests_->CompleteDumps([](const KeptDump& dump) {
    return dump.recorder && dump.uid == Peer::Daemon().uid && dump.label.starts_with(kTriggerLabel) && !dump.pinned;
  });
  size_t surplus = kept.size() - std::min(kept.size(), static_cast<size_t>(config_.recorder_max_dumps));
  for (const KeptDump& dump : kept) {
    if (surplus == 0) return;
    if (dump.waiting) continue;
    --surplus;
    log::Info("trigger's dump removed", {{"session", dump.session_id}, {"max", config_.recorder_max_dumps}});
    dump_requests_->Delete(Peer::Daemon(), dump.session_id, "", [this, name = dump.name](const Result<uint64_t>& freed) {
      // Long forgotten by the list.
      if (!freed.ok()) dump_requests_->Delete(Peer::Daemon(), "", name, [](const Result<uint64_t>&) {});
    });
  }
}

}  // namespace profd
