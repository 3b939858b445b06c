#include "daemon/session/scheduled_recording.h"

#include <algorithm>
#include <limits>
#include <set>

#include "base/log.h"
#include "daemon/metrics/self_metrics.h"
#include "daemon/recorder/trigger.h"

namespace profd {
namespace {

// A job that has just begun loads and compiles: its first recording is a minute later.
constexpr int64_t kFirstNs = 60 * kNsPerSecond;
// After a session of the job, or a refusal.
constexpr int64_t kAgainNs = 60 * kNsPerSecond;

bool IsSampling(const v1::Session& session, uint32_t uid) {
  return session.spec().label() == kSamplingLabel && session.owner().uid() == uid;
}

void LogFailure(const Result<uint64_t>& freed) {
  if (!freed.ok()) log::Warning("scheduled recording not removed", {{"why", freed.status().ToString()}});
}

}  // namespace

ScheduledRecording::ScheduledRecording(Deps deps, const DaemonConfig& config) : deps_(std::move(deps)) {
  Configure(config);
}

void ScheduledRecording::Configure(const DaemonConfig& config) {
  config_ = config;
  rules_.clear();
  const SamplingRule usual{"*", false, config.sampling_every_minutes, config.sampling_every_steps, config.sampling_steps};
  for (const std::string& text : config.sampling_jobs) {
    Result<SamplingRule> rule = ParseSamplingRule(text, usual);  // valid, or the configuration was refused
    if (rule.ok()) rules_.push_back(std::move(rule).value());
  }
  rules_.push_back(usual);
}

const SamplingRule* ScheduledRecording::RuleOf(const std::string& job_id) const {
  auto found = std::ranges::find_if(rules_, [&](const SamplingRule& rule) { return rule.Matches(job_id); });
  return found == rules_.end() || found->off || (found->every_minutes == 0 && found->every_steps == 0) ? nullptr : &*found;
}

void ScheduledRecording::FindJobs(const std::vector<TrainingProcess>& processes) {
  for (auto& [key, job] : state_->jobs) job.process = nullptr;
  const auto rank = [](const TrainingProcess& one) { return one.rank.value_or(std::numeric_limits<int>::max()); };
  for (const TrainingProcess& process : processes) {
    if (!process.attached() || process.job_id.empty() || process.silent_since_ns != 0) continue;
    auto [found, is_new] = state_->jobs.try_emplace({process.uid, process.job_id});
    Job& job = found->second;
    if (is_new) {
      job.due_ns = job.not_before_ns = deps_.clock.SteadyNs() + kFirstNs;
      job.due_step = process.step.value_or(0);
    }
    if (job.process == nullptr || rank(process) < rank(*job.process)) job.process = &process;
  }
  std::erase_if(state_->jobs, [](const auto& one) {
    return one.second.process == nullptr && one.second.session.empty() && !one.second.starting;
  });
}

void ScheduledRecording::Tick() {
  DCHECK_ON(deps_.control);
  if (!config_.sampling_enabled) return;
  const std::vector<TrainingProcess> processes = deps_.jobs.Processes();
  FindJobs(processes);
  // A start may answer at once, and the answer may change the map.
  std::vector<Key> keys;
  for (const auto& [key, job] : state_->jobs) keys.push_back(key);
  for (const Key& key : keys) Look(key, &state_->jobs.at(key));
}

bool ScheduledRecording::IsDue(const Job& job, const SamplingRule& rule, int64_t now_ns) const {
  if (now_ns < job.not_before_ns) return false;
  if (rule.every_minutes != 0 && now_ns >= job.due_ns) return true;
  return rule.every_steps != 0 && job.process->step && *job.process->step >= job.due_step;
}

void ScheduledRecording::Look(const Key& key, Job* job) {
  const SamplingRule* rule = RuleOf(key.second);
  if (!job->session.empty()) {
    Result<v1::Session> session = deps_.records.Get(Peer::Daemon(), job->session);
    if (session.ok() && !IsFinal(*session)) return;
    if (!session.ok() || session->status().state() != v1::Session::STATE_DONE) ++state_->counts.failed;
    Finish(key, job);
    return;
  }
  if (rule == nullptr || job->starting || job->process == nullptr) return;
  if (!IsDue(*job, *rule, deps_.clock.SteadyNs())) return;
  if (IsProfiled(key, *job, *rule)) {
    ++state_->counts.busy;
    job->not_before_ns = deps_.clock.SteadyNs() + kAgainNs;
    return;
  }
  Start(key, job, *rule);
}

// Between two recordings of T seconds lie at least T x (100 / max_percent - 1).
void ScheduledRecording::Finish(const Key& key, Job* job) {
  const int64_t now = deps_.clock.SteadyNs();
  const int64_t took = now - job->began_ns;
  job->not_before_ns = now + took * (100 - config_.sampling_max_percent) / config_.sampling_max_percent;
  job->session.clear();
  Evict(key);
}

// By a session other than ours, now or before a recording would end: it would have to share the process's profiler.
bool ScheduledRecording::IsProfiled(const Key& key, const Job& job, const SamplingRule& rule) const {
  v1::ListSessionsRequest request;
  request.set_job_id(key.second);
  request.set_active_only(true);
  const v1::ListSessionsResponse listed = deps_.records.List(Peer::Daemon(), request);
  return std::ranges::any_of(listed.sessions(), [&](const v1::Session& session) {
    const v1::SessionSpec::Schedule& schedule = session.spec().schedule();
    if (session.status().state() != v1::Session::STATE_SCHEDULED) return true;
    if (schedule.has_start_at_ns()) return schedule.start_at_ns() <= deps_.clock.WallNs() + config_.sampling_max_seconds * kNsPerSecond;
    return !schedule.has_start_step() || !job.process->step || schedule.start_step() - rule.steps <= *job.process->step;
  });
}

v1::SessionSpec ScheduledRecording::SpecOf(const Key& key, const Job& job, const SamplingRule& rule) const {
  v1::SessionSpec spec;
  spec.mutable_target()->set_job_id(key.second);
  // Without steps, seconds alone.
  if (job.process->step) spec.mutable_schedule()->set_steps(static_cast<uint32_t>(rule.steps));
  spec.mutable_schedule()->set_duration_ms(static_cast<uint64_t>(config_.sampling_max_seconds) * 1000);
  spec.set_label(std::string(kSamplingLabel));
  spec.set_options_json(SamplingOptions(config_.sampling_options, config_.sampling_collectors).value_or("{}"));
  spec.set_best_effort(true);
  spec.set_marks(true);
  for (const std::string& text : config_.sampling_collectors) {
    Result<WantedCollector> wanted = ParseWantedCollector(text);
    if (!wanted.ok()) continue;  // valid, or the configuration was refused
    v1::CollectorRequest& collector = *spec.add_collectors();
    collector.set_name(std::string(Collectors()[wanted->collector].spec->name));
    if (wanted->hz > 0) collector.set_hz(wanted->hz);
  }
  return spec;
}

void ScheduledRecording::Start(const Key& key, Job* job, const SamplingRule& rule) {
  Peer peer{.uid = job->process->uid, .gid = job->process->gid, .groups = deps_.groups_of(job->process->pid)};
  job->starting = true;
  job->began_ns = deps_.clock.SteadyNs();
  job->due_ns = job->began_ns + rule.every_minutes * 60 * kNsPerSecond;
  job->due_step = job->process->step.value_or(job->due_step) + rule.every_steps;
  deps_.sessions.Start(peer, SpecOf(key, *job, rule),
                       [state = state_, key, again = job->began_ns + kAgainNs](const Result<v1::Session>& session) {
                         auto found = state->jobs.find(key);
                         if (found == state->jobs.end()) return;
                         found->second.starting = false;
                         if (session.ok()) {
                           found->second.session = session->session_id();
                           ++state->counts.started;
                           return;
                         }
                         ++state->counts.failed;
                         found->second.not_before_ns = again;
                         log::Warning("scheduled recording refused", {{"job", key.second},
                                                                      {"uid", key.first},
                                                                      {"why", session.status().message()}});
                       });
}

// Of the job's recordings the oldest go; pinned ones, and those that wait for the database, stay and count.
void ScheduledRecording::Evict(const Key& key) {
  v1::ListSessionsRequest request;
  request.set_job_id(key.second);
  std::vector<v1::Session> recordings;
  const v1::ListSessionsResponse listed = deps_.records.List(Peer::Daemon(), request);
  for (const v1::Session& session : listed.sessions()) {
    if (IsSampling(session, key.first) && IsFinal(session)) recordings.push_back(session);
  }
  std::ranges::sort(recordings, [](const v1::Session& a, const v1::Session& b) {
    return a.status().started_ns() > b.status().started_ns();
  });
  const auto keep = static_cast<size_t>(config_.sampling_keep);
  for (size_t i = keep; i < recordings.size(); ++i) {
    if (recordings[i].status().pinned() || deps_.dumps.IsWaiting(recordings[i])) continue;
    deps_.dumps.Delete(Peer::Daemon(), recordings[i].session_id(), "", LogFailure);
  }
  EvictForgotten(key, keep - std::min(keep, recordings.size()));
}

// Those that the list of sessions has forgotten, which are older; all segments of a session are one recording.
void ScheduledRecording::EvictForgotten(const Key& key, size_t keep) {
  const std::vector<KeptDump> dumps = deps_.dumps.CompleteDumps([&](const KeptDump& dump) {
    return !dump.recorder && dump.uid == key.first && dump.job_id == key.second && dump.label == kSamplingLabel &&
           deps_.records.Find(Peer::Daemon(), dump.session_id) == nullptr;
  });
  std::set<std::string> sessions;
  for (auto dump = dumps.rbegin(); dump != dumps.rend(); ++dump) {
    sessions.insert(dump->session_id);
    if (sessions.size() <= keep || dump->pinned || dump->waiting) continue;
    deps_.dumps.Delete(Peer::Daemon(), "", dump->name, LogFailure);
  }
}

void ScheduledRecording::UpdateMetrics(SelfMetrics* self) const {
  constexpr MetricId kTotal = MetricByName("profd_scheduled_recordings_total");
  self->Set(kTotal, counts().started, "started");
  self->Set(kTotal, counts().failed, "failed");
  self->Set(kTotal, counts().busy, "busy");
}

}  // namespace profd
