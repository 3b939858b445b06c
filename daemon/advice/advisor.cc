#include "daemon/advice/advisor.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <utility>

#include "base/log.h"
#include "daemon/advice/advice_view.h"
#include "daemon/metrics/self_metrics.h"

namespace profd {
namespace {

// A value this far above its limit is not learned as usual.
constexpr double kSuspicious = 0.5;

RankHistory::Rules RulesOf(const analysis::Limits& limits) {
  return {limits.At("steps_slower", "ratio") * kSuspicious, limits.At("computation_slower", "ratio") * kSuspicious,
          limits.At("communication_slower", "ratio") * kSuspicious, TimeLimitNs(limits, "forget_s")};
}

void Log(const AdviceChange& change) {
  const LiveAdvice& advice = change.advice;
  if (change.raised) {
    log::Warning("advice", {{"check", advice.check}, {"where", WhereOf(advice)}, {"what", advice.what},
                            {"evidence", fmt::format("{}", fmt::join(advice.evidence, "; "))}});
  } else {
    log::Info("advice cleared", {{"check", advice.check}, {"where", WhereOf(advice)}, {"what", advice.what}});
  }
}

}  // namespace

Result<analysis::Limits> ParseAdviceLimits(const std::vector<std::string>& texts) {
  analysis::Limits limits;
  for (const std::string& text : texts) RETURN_IF_ERROR(limits.Set(text));
  return limits;
}

Advisor::Advisor(Deps deps, analysis::Limits limits) : deps_(std::move(deps)), board_(std::move(limits)) {}

Advisor::~Advisor() = default;

void Advisor::Begin() {
  DCHECK_ON(deps_.control);
  watching_ = deps_.jobs.Watch(this);
  for (const TrainingProcess& process : deps_.jobs.Processes()) {
    if (process.attached()) OnAttached(process);
  }
}

void Advisor::OnDetached(const TrainingProcess& process, bool) {
  histories_.erase(process.attach_id);
  const auto found = attach_ids_.find(process.pid);
  if (found != attach_ids_.end() && found->second == process.attach_id) attach_ids_.erase(found);
}

void Advisor::OnMarks(const MarkBatch& batch) {
  const auto found = attach_ids_.find(batch.pid);
  if (found == attach_ids_.end()) return;
  if (RankHistory* const history = HistoryOf(found->second)) history->TakeMarks(batch.marks);
}

void Advisor::OnActivity(const ActivityBatch& batch) {
  if (RankHistory* const history = HistoryOf(batch.attach_id)) history->TakeActivity(batch);
}

void Advisor::OnCollector(uint64_t attach_id, const attach::CollectorReport& report) {
  if (!report.has_ring) return;
  if (RankHistory* const history = HistoryOf(attach_id)) history->ForgetNames();
}

RankHistory* Advisor::HistoryOf(uint64_t attach_id) {
  const auto found = histories_.find(attach_id);
  if (found != histories_.end()) return &found->second;
  return histories_.size() < kMaxProcesses ? &histories_[attach_id] : nullptr;
}

void Advisor::Tick() {
  DCHECK_ON(deps_.control);
  const int64_t begin_ns = deps_.clock.SteadyNs();
  if (!attach_ids_.empty() || !jobs_.empty()) LookAtJobs();
  look_ns_ = deps_.clock.SteadyNs() - begin_ns;
}

void Advisor::LookAtJobs() {
  const int64_t now_ns = deps_.clock.MonotonicRawNs();
  hardware_.Update(deps_.store, now_ns);
  jobs_ = Look(deps_.jobs.Processes(), now_ns);
  const std::vector<AdviceChange> changes = board_.Update(jobs_, now_ns, deps_.clock.WallNs());
  for (const AdviceChange& change : changes) {
    Log(change);
    deps_.on_change(change);
  }
  if (changes.empty()) return;
  // A watcher may go while it is called.
  const auto watches = watches_;
  for (const auto& [id, changed] : watches) {
    if (watches_.contains(id)) changed();
  }
}

std::vector<JobFacts> Advisor::Look(const std::vector<TrainingProcess>& processes, int64_t now_ns) {
  std::map<JobKey, JobFacts> jobs;
  const RankHistory::Rules rules = RulesOf(board_.limits());
  for (const TrainingProcess& process : processes) {
    if (!process.attached()) continue;
    RankHistory* const history = HistoryOf(process.attach_id);
    if (history == nullptr) continue;
    JobFacts& job = jobs[{process.job_id, process.uid, process.job_id.empty() ? process.pid : 0}];
    job.job_id = process.job_id;
    job.uid = process.uid;
    job.now_ns = now_ns;
    job.host = hardware_.host();
    job.world_size = std::max(job.world_size, process.world_size);
    job.ranks.push_back(history->Facts(process, deps_.jobs.FindActivity(process.attach_id), now_ns, rules));
    for (int device : process.devices) {
      const auto found = hardware_.devices().find(device);
      if (found != hardware_.devices().end()) job.devices[device] = found->second;
    }
  }
  std::vector<JobFacts> all;
  for (auto& [key, job] : jobs) {
    std::ranges::sort(job.ranks, [](const RankFacts& a, const RankFacts& b) {
      return std::tuple(!a.rank, a.rank.value_or(0), a.pid) < std::tuple(!b.rank, b.rank.value_or(0), b.pid);
    });
    LookAtStates(&job);
    JobPast& past = pasts_[key];
    past.seen_ns = now_ns;
    LookAtTransfer(&job, &past);
    all.push_back(std::move(job));
  }
  std::erase_if(pasts_, [now_ns](const auto& entry) { return entry.second.seen_ns != now_ns; });
  return all;
}

// Only of those that may hang: it costs a look into /proc.
void Advisor::LookAtStates(JobFacts* job) const {
  const double least_ns = board_.limits().At("hang", "least_s") * 1e9;
  for (RankFacts& rank : job->ranks) {
    if (rank.last_step_ns == 0 || static_cast<double>(job->now_ns - rank.last_step_ns) < least_ns) continue;
    rank.state = deps_.state_of(rank.pid);
  }
}

// The rank that communicates least waits for none: what it takes is the transfer.
void Advisor::LookAtTransfer(JobFacts* job, JobPast* past) const {
  for (const RankFacts& rank : job->ranks) {
    if (!rank.now) return;  // it may be the one that is not known
    const double ms = rank.now->communication_ms;
    if (&rank == &job->ranks.front() || ms < job->transfer_ms) job->transfer_ms = ms;
  }
  const RankHistory::Rules rules = RulesOf(board_.limits());
  past->transfer.Add(job->transfer_ms, rules.shares, job->now_ns, rules.forget_ns);
  job->transfer_before_ms = past->transfer.mean();
}

Status Advisor::Describe(const Peer& peer, const v1::GetAdviceRequest& request_untrusted, v1::GetAdviceResponse* out) const {
  DCHECK_ON(deps_.control);
  DescribeAdvice(peer, request_untrusted, board_, jobs_, out);
  return Status::Ok();
}

uint64_t Advisor::Watch(std::function<void()> changed) {
  DCHECK_ON(deps_.control);
  watches_.emplace(next_watch_, std::move(changed));
  return next_watch_++;
}

void Advisor::UpdateMetrics(SelfMetrics* self) const {
  for (const LiveAdvice* advice : board_.Raised()) {
    self->Set(MetricByName("profd_advice"), 1, advice->check, advice->job_id,
              advice->rank ? std::to_string(*advice->rank) : std::string());
  }
  for (size_t i = 0; i < board_.raised_total().size(); ++i) {
    self->Set(MetricByName("profd_advice_raised_total"), board_.raised_total()[i], LiveChecks()[i].id);
  }
  self->Set(MetricByName("profd_advice_suppressed_total"), board_.suppressed_total());
  self->Set(MetricByName("profd_advice_duration_seconds"), static_cast<double>(look_ns_) / 1e9);
}

}  // namespace profd
