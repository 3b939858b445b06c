#include "daemon/advice/board.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <utility>

#include "base/clock.h"

namespace profd {
namespace {

// What explains free time: not reported beside it.
constexpr std::array<std::string_view, 3> kCausesOfFreeTime = {"dataloader", "gc", "operator_dispatch"};

// A process without a job is one of its own.
bool IsOf(const LiveAdvice& advice, const JobFacts& job) {
  if (advice.job_id != job.job_id || advice.uid != job.uid) return false;
  return !job.job_id.empty() || advice.pid == job.ranks.front().pid;
}

bool IsHere(const std::vector<JobFacts>& jobs, const LiveAdvice& advice) {
  return std::ranges::any_of(jobs, [&](const JobFacts& job) {
    if (!IsOf(advice, job)) return false;
    return advice.pid == 0 || std::ranges::any_of(job.ranks, [&](const RankFacts& rank) { return rank.pid == advice.pid; });
  });
}

}  // namespace

std::string WhereOf(const LiveAdvice& advice) {
  std::string text = advice.job_id.empty() ? fmt::format("process {}", advice.pid) : "job " + advice.job_id;
  if (advice.rank) text += fmt::format(", rank {}", *advice.rank);
  if (advice.device) text += fmt::format(", device {}", *advice.device);
  return text;
}

std::vector<AdviceChange> AdviceBoard::Update(const std::vector<JobFacts>& jobs, int64_t now_ns, int64_t wall_ns) {
  std::vector<AdviceChange> changes;
  for (const JobFacts& job : jobs) {
    for (size_t check = 0; check < LiveChecks().size(); ++check) {
      // While nothing runs, the last seconds are not meaningful.
      if (check > 0 && Has(job, "hang", -1)) break;
      Look(job, check, now_ns, wall_ns, &changes);
    }
  }
  const int64_t clear_ns = TimeLimitNs(limits_, "clear_s");
  std::erase_if(conditions_, [&](const auto& entry) {
    const Condition& condition = entry.second;
    const bool hangs = condition.raised && condition.advice.check != "hang" && std::ranges::any_of(jobs, [&](const JobFacts& job) {
      return IsOf(condition.advice, job) && Has(job, "hang", -1);
    });
    const bool here = IsHere(jobs, condition.advice);
    const bool over = condition.raised ? now_ns - condition.held_ns >= clear_ns && !hangs : condition.held_ns != now_ns;
    if (here && !over) return false;
    if (condition.raised) changes.push_back({condition.advice, false});
    return true;
  });
  return changes;
}

void AdviceBoard::Look(const JobFacts& job, size_t check, int64_t now_ns, int64_t wall_ns, std::vector<AdviceChange>* changes) {
  for (const LiveFinding& finding : LiveChecks()[check].find({job, limits_})) {
    if (finding.strength < limits_.At("live", "clear_share")) continue;
    const RankFacts* const rank = finding.rank == nullptr && job.job_id.empty() ? &job.ranks.front() : finding.rank;
    const bool once = LiveChecks()[check].once_per_job && !job.job_id.empty();
    const pid_t pid = once || rank == nullptr ? 0 : rank->pid;
    const Key key{job.job_id, job.uid, check, pid, once ? -1 : finding.device.value_or(-1)};
    if (conditions_.size() >= kMaxConditions && !conditions_.contains(key)) continue;
    Follow(key, finding, job, now_ns, wall_ns, changes);
  }
}

void AdviceBoard::Follow(const Key& key, const LiveFinding& finding, const JobFacts& job, int64_t now_ns, int64_t wall_ns,
                         std::vector<AdviceChange>* changes) {
  Condition& condition = conditions_[key];
  const bool raises = Raises(key, finding, job, &condition, now_ns, changes);
  condition.held_ns = now_ns;
  LiveAdvice& advice = condition.advice;
  const LiveAdvice before = advice;
  advice.check = LiveChecks()[std::get<2>(key)].id;
  advice.job_id = job.job_id;
  advice.uid = job.uid;
  advice.pid = std::get<3>(key);
  if (finding.rank != nullptr) {
    advice.pid = finding.rank->pid;
    advice.rank = finding.rank->rank;
  }
  advice.device = finding.device;
  advice.what = finding.what;
  advice.evidence = finding.evidence;
  advice.advice = finding.advice;
  advice.cost_ms = finding.cost_ms;
  advice.confidence = finding.confidence;
  if (!condition.raised && !raises) return;
  // Since when, and from which step on, is what was reported first: later the step is out of sight.
  if (condition.raised) {
    advice.since_ns = before.since_ns;
    advice.step = before.step;
    return;
  }
  condition.raised = true;
  advice.id = next_id_++;
  const int64_t since_ns = finding.since_ns != 0 ? finding.since_ns : condition.above_ns;
  advice.since_ns = wall_ns - (now_ns - std::min(since_ns, now_ns));
  advice.raised_ns = wall_ns;
  advice.step = finding.step;
  ++raised_total_[std::get<2>(key)];
  changes->push_back({advice, true});
}

// Whether it is to be reported now.
bool AdviceBoard::Raises(const Key& key, const LiveFinding& finding, const JobFacts& job, Condition* condition, int64_t now_ns,
                         std::vector<AdviceChange>* changes) {
  if (condition->raised) return false;
  if (finding.strength < 1) {
    condition->above_ns = 0;
    return false;
  }
  if (condition->above_ns == 0) condition->above_ns = now_ns;
  const LiveCheck& check = LiveChecks()[std::get<2>(key)];
  if (!check.said_at_once && now_ns - condition->above_ns < TimeLimitNs(limits_, "raise_s")) return false;
  if (check.id == "free_time") {
    for (std::string_view cause : kCausesOfFreeTime) {
      if (Has(job, cause, std::get<3>(key))) return false;
    }
  }
  const auto all = static_cast<size_t>(std::ranges::count_if(conditions_, [](const auto& entry) { return entry.second.raised; }));
  const bool job_is_full = static_cast<double>(RaisedOf(job)) >= limits_.At("live", "most_per_job");
  if (!job_is_full && all < kMaxRaised) return true;
  if (MakesPlace(std::get<2>(key), job_is_full ? &job : nullptr, changes)) return true;
  if (!std::exchange(condition->suppressed, true)) ++suppressed_total_;
  return false;
}

// Takes back what is least important, of the job or of all, where it is less so than the check. False: nothing is.
bool AdviceBoard::MakesPlace(size_t check, const JobFacts* job_or_null, std::vector<AdviceChange>* changes) {
  Condition* least = nullptr;
  size_t least_check = check + 1;
  for (auto& [key, condition] : conditions_) {
    if (!condition.raised || std::get<2>(key) < least_check) continue;
    if (job_or_null != nullptr && !IsOf(condition.advice, *job_or_null)) continue;
    least = &condition;
    least_check = std::get<2>(key);
  }
  if (least == nullptr) return false;
  least->raised = false;
  if (!std::exchange(least->suppressed, true)) ++suppressed_total_;
  changes->push_back({least->advice, false});
  return true;
}

// `pid` -1: of any process, or the job.
bool AdviceBoard::Has(const JobFacts& job, std::string_view check, pid_t pid) const {
  return std::ranges::any_of(conditions_, [&](const auto& entry) {
    const LiveAdvice& advice = entry.second.advice;
    return entry.second.raised && advice.check == check && IsOf(advice, job) && (pid == -1 || advice.pid == pid);
  });
}

size_t AdviceBoard::RaisedOf(const JobFacts& job) const {
  return static_cast<size_t>(std::ranges::count_if(conditions_, [&](const auto& entry) {
    const LiveAdvice& advice = entry.second.advice;
    return entry.second.raised && IsOf(advice, job);
  }));
}

// What was raised before a job hung is of the time before.
std::vector<const LiveAdvice*> AdviceBoard::Raised() const {
  const auto hangs = [this](const LiveAdvice& advice) {
    return std::ranges::any_of(conditions_, [&](const auto& entry) {
      const LiveAdvice& hang = entry.second.advice;
      return entry.second.raised && hang.check == "hang" && hang.job_id == advice.job_id && hang.uid == advice.uid &&
             (!hang.job_id.empty() || hang.pid == advice.pid);
    });
  };
  std::vector<const LiveAdvice*> raised;
  for (const auto& [key, condition] : conditions_) {
    if (condition.raised && (condition.advice.check == "hang" || !hangs(condition.advice))) raised.push_back(&condition.advice);
  }
  return raised;
}

}  // namespace profd
