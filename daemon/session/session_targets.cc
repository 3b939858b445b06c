#include "daemon/session/session_targets.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <map>

#include "base/log.h"
#include "profd/v1/profd.pb.h"

namespace profd {
namespace {

constexpr size_t kMaxListed = 20;

bool Visible(const SessionTargets& targets, const TrainingProcess& process) {
  return targets.admin || process.uid == targets.uid;
}

// "j1 (8 processes), j2 (1 process)"
std::string JobsOf(const SessionTargets& targets, std::span<const TrainingProcess> known) {
  std::map<std::string, size_t> jobs;
  for (const TrainingProcess& process : known) {
    if (Visible(targets, process) && !process.job_id.empty()) ++jobs[process.job_id];
  }
  std::vector<std::string> texts;
  for (const auto& [job, count] : jobs) {
    if (texts.size() == kMaxListed) break;
    texts.push_back(fmt::format("{} ({} {})", job, count, count == 1 ? "process" : "processes"));
  }
  if (jobs.size() > kMaxListed) texts.push_back(fmt::format("and {} more", jobs.size() - kMaxListed));
  return fmt::format("{}", fmt::join(texts, ", "));
}

Status NoSuchJob(const SessionTargets& targets, std::span<const TrainingProcess> known) {
  const std::string jobs = JobsOf(targets, known);
  return {StatusCode::kNotFound,
          Problem{.field = "job_id",
                  .value = targets.job_id,
                  .text = fmt::format("no process of it runs on this node; {}; to profile devices under that name, "
                                      "use {{all}} or {{devices}}",
                                      jobs.empty() ? "you have no jobs" : "known jobs: " + jobs)}};
}

Status CheckRanks(const SessionTargets& targets, const std::vector<TrainingProcess>& of_job) {
  std::set<int> there;
  for (const TrainingProcess& process : of_job) {
    if (process.rank) there.insert(*process.rank);
  }
  std::vector<int> missing;
  for (int rank : targets.ranks) {
    if (!there.contains(rank) && missing.size() < kMaxListed) missing.push_back(rank);
  }
  if (missing.empty()) return Status::Ok();
  std::string ranks = there.empty() ? "none of its processes here reports a rank"
                                    : fmt::format("here are {}", fmt::join(there, ", "));
  return InvalidArgument(fmt::format("ranks: job {} has no rank {} on this node ({})",
                                     log::Quote(targets.job_id), fmt::join(missing, ", "), ranks));
}

Status CheckFollow(const v1::SessionSpec::Target& target) {
  if (!target.follow()) return Status::Ok();
  if (target.job_id().empty()) return InvalidArgument("following a job needs its id (job_id, --job): it waits for that job's processes");
  if (target.all() || !target.devices().empty() || !target.pids().empty()) {
    return InvalidArgument("follow goes with none of all, devices and pids: devices follow from the job's processes");
  }
  return Status::Ok();
}

// Only administrators see several users' processes under one name: a process chooses its own when it attaches.
Status CheckOneUser(const SessionTargets& targets, const std::vector<TrainingProcess>& chosen) {
  std::set<uint32_t> uids;
  for (const TrainingProcess& process : chosen) uids.insert(process.uid);
  if (uids.size() < 2) return Status::Ok();
  return InvalidArgument(fmt::format(
      "job {}: processes of several users call themselves so (uids {}); name those that are meant by "
      "pids",
      log::Quote(targets.job_id), fmt::join(uids, ", ")));
}

// Beside a job, pids narrow it; one that is none of `chosen` would make the session one of the complete node.
Status CheckPids(const v1::SessionSpec::Target& target, const SessionTargets& targets, std::span<const TrainingProcess> chosen,
                 std::span<const TrainingProcess> known) {
  std::set<pid_t> narrowed;
  for (const TrainingProcess& process : chosen) narrowed.insert(process.pid);
  const std::string ranks = targets.ranks.empty() ? "" : fmt::format(", ranks {}", fmt::join(targets.ranks, ", "));
  ProblemList problems;
  size_t listed = 0;
  for (const pid_t pid : target.pids()) {
    if (narrowed.contains(pid) || ++listed > kMaxListed) continue;
    std::string instead;
    for (const TrainingProcess& process : known) {
      if (process.pid != pid || !Visible(targets, process) || process.silent_since_ns != 0) continue;
      if (process.job_id != targets.job_id) instead = process.job_id.empty() ? " (it belongs to none)" : fmt::format(" (it is one of job {})", process.job_id);
    }
    problems.Add({.field = "pids",
                  .value = std::to_string(pid),
                  .text = fmt::format("is none of the processes of job {}{}{}; leave {{job_id}} out, or make it a name with {{devices}} or {{all}}",
                                      targets.job_id, ranks, instead)});
  }
  if (problems.empty()) return Status::Ok();
  return {StatusCode::kNotFound, std::move(problems).Take()};
}

// Narrows by pid where the pids named are processes of the job; those of which nothing is known stay
// for host_sys, and their owner is checked by the planner.
void TakePids(const v1::SessionSpec::Target& target, std::vector<TrainingProcess>* chosen,
              SessionTargets* targets) {
  std::set<pid_t> named(target.pids().begin(), target.pids().end());
  if (named.empty()) return;
  std::erase_if(*chosen, [&](const TrainingProcess& p) { return !named.contains(p.pid); });
  for (const TrainingProcess& process : *chosen) {
    targets->pids.insert(process.pid);
    named.erase(process.pid);
  }
  targets->unknown_pids = std::move(named);
}

}  // namespace

bool SessionTargets::Matches(const TrainingProcess& process) const {
  if (!Visible(*this, process)) return false;
  if (unknown_pids.contains(process.pid)) return true;
  if (!pids.empty()) return pids.contains(process.pid);
  if (job_id.empty() || process.job_id != job_id) return false;
  return ranks.empty() || (process.rank && ranks.contains(*process.rank));
}

Result<SessionTargets> ResolveTargets(const v1::SessionSpec::Target& target, const Peer& peer,
                                      std::span<const TrainingProcess> known) {
  SessionTargets targets{.job_id = target.job_id(), .admin = peer.admin, .uid = peer.uid};
  for (uint32_t rank : target.ranks()) targets.ranks.insert(static_cast<int>(rank));
  if (!targets.ranks.empty() && targets.job_id.empty()) {
    return InvalidArgument("ranks need a job_id: they are ranks of a job");
  }
  if (!targets.ranks.empty() && target.all()) {
    return InvalidArgument("ranks and all exclude each other: use either some ranks of a job or all devices");
  }
  RETURN_IF_ERROR(CheckFollow(target));
  std::vector<TrainingProcess> of_job;
  for (const TrainingProcess& process : known) {
    if (!Visible(targets, process) || process.silent_since_ns != 0) continue;
    if (targets.job_id.empty() ? target.pids().empty() : process.job_id != targets.job_id) continue;
    of_job.push_back(process);
  }
  bool by_device = target.all() || !target.devices().empty();
  if (of_job.empty() && !targets.job_id.empty() && !by_device && !target.follow()) {
    return NoSuchJob(targets, known);
  }
  if (!target.follow()) RETURN_IF_ERROR(CheckRanks(targets, of_job));
  std::vector<TrainingProcess> chosen = of_job;
  if (!targets.ranks.empty()) {
    std::erase_if(chosen, [&](const TrainingProcess& p) {
      return !p.rank || !targets.ranks.contains(*p.rank);
    });
  }
  if (!targets.job_id.empty() && !by_device) RETURN_IF_ERROR(CheckPids(target, targets, chosen, known));
  if (target.pids().empty()) {
    if (Status one = CheckOneUser(targets, chosen); !one.ok()) {
      if (!by_device) return one;
      targets.warnings.push_back(one.message());
      chosen.clear();
    }
  }
  TakePids(target, &chosen, &targets);
  targets.processes = std::move(chosen);
  targets.bound = !by_device && (!targets.processes.empty() || target.follow());
  if (!targets.bound || targets.awaits()) return targets;
  std::set<int> devices;
  for (const TrainingProcess& process : targets.processes) {
    devices.insert(process.devices.begin(), process.devices.end());
  }
  targets.devices.assign(devices.begin(), devices.end());
  if (devices.empty()) {
    targets.warnings.emplace_back(
        "none of the processes is known to use a device: only the host is profiled (all or devices "
        "would name some)");
  }
  return targets;
}

}  // namespace profd
