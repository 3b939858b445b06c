// Requests as they arrive: what they mean, whether they may start now, and which sessions must end for them.
#include <fmt/format.h>
#include <sys/random.h>

#include <algorithm>
#include <array>
#include <utility>

#include "base/log.h"
#include "collectors/channel_options.h"
#include "daemon/session/session_manager.h"

namespace profd {
namespace {

// How often one request may push others aside, should another request take the place meanwhile.
constexpr int kMaxPreemptions = 3;
constexpr int kMaxHostPids = 1024;

// 48 random bits: not guessable by counting, short enough to type.
std::string NewId() {
  std::array<uint8_t, 6> bytes{};
  if (::getrandom(bytes.data(), bytes.size(), 0) != static_cast<ssize_t>(bytes.size())) {
    return {};
  }
  std::string id;
  for (uint8_t byte : bytes) id += fmt::format("{:02x}", byte);
  return id;
}

// Both want a collector, and have made another choice of how it measures.
bool ChooseDifferently(const SessionPlan& a, const SessionPlan& b) {
  for (const PlannedCollector& ours : a.collectors) {
    for (const PlannedCollector& theirs : b.collectors) {
      if (ours.index != theirs.index) continue;
      const CollectorOption* option =
          DifferingOption(*Collectors()[ours.index].spec, ours.channel, theirs.channel);
      if (option != nullptr && option->use == OptionUse::kChoice) return true;
    }
  }
  return false;
}

// A channel of a device serves only one of them.
bool Exclude(const SessionPlan& a, const SessionPlan& b) {
  if (!ChooseDifferently(a, b)) return false;
  return std::any_of(a.devices.begin(), a.devices.end(), [&b](int device) {
    return std::find(b.devices.begin(), b.devices.end(), device) != b.devices.end();
  });
}

}  // namespace

Result<Session::Request> SessionManager::Plan(const Peer& peer, const v1::SessionSpec& spec_untrusted) const {
  Session::Request request;
  request.spec = spec_untrusted;
  std::vector<TrainingProcess> known;
  if (deps_.session.jobs_or_null != nullptr) known = deps_.session.jobs_or_null->Processes();
  Result<SessionTargets> targets = ResolveTargets(request.spec.target(), peer, known);
  if (targets.ok()) RETURN_IF_ERROR(ResolveStep(*targets, &request.spec));
  Result<ProcessId> starter = AdmitTerms({config_, peer, deps_.session.host.clock.WallNs(), deps_.session.processes},
                                         &request.spec);
  // A missing job is not examined further; everything else is checked at once.
  Result<SessionPlan> plan = PlanFor(peer, request.spec, targets.ok() ? *targets : SessionTargets());
  // An unknown job is reported only where the request is valid otherwise.
  Status problems = JoinProblems(plan.ok() ? Status::Ok() : plan.status(),
                                 starter.ok() ? Status::Ok() : starter.status());
  if (!targets.ok()) {
    bool named = targets.status().code() != StatusCode::kInvalidArgument;
    // What fails only without its processes is right, perhaps, once the right ones are named.
    if (problems.ok() || problems.code() == StatusCode::kFailedPrecondition) return targets.status();
    return named ? problems : JoinProblems(problems, targets.status());
  }
  if (!problems.ok()) return problems;
  request.plan = std::move(plan).value();
  request.starter = *starter;
  request.targets = std::move(targets).value();
  RETURN_IF_ERROR(CheckSteps(request));
  return request;
}

// The plan of the processes' devices, if the request is bound to processes; host_sys follows too.
Result<SessionPlan> SessionManager::PlanFor(const Peer& peer, v1::SessionSpec spec,
                                            const SessionTargets& targets) const {
  const std::span<const DeviceInfo> all = deps_.session.host.devices;
  std::vector<DeviceInfo> devices(all.begin(), all.end());
  // Of a job to come the options are checked against all devices; which it will use is not known yet.
  if (targets.bound && !targets.awaits()) {
    std::erase_if(devices, [&targets](const DeviceInfo& device) {
      return std::find(targets.devices.begin(), targets.devices.end(), device.id) ==
             targets.devices.end();
    });
  }
  for (const TrainingProcess& process : targets.processes) {
    const auto& pids = spec.target().pids();
    if (pids.size() >= kMaxHostPids) break;
    if (std::find(pids.begin(), pids.end(), process.pid) != pids.end()) continue;
    // One that has just ended is not a problem of the request.
    if (deps_.session.processes.OwnerOf(process.pid).ok()) spec.mutable_target()->add_pids(process.pid);
  }
  PlanContext context{config_,        devices, Collectors(), peer,
                      deps_.session.processes, deps_.session.devices, ProbeOn(deps_.session.host),
                      deps_.session.writer.free_bytes()};
  if (targets.bound) context.no_devices = "the processes it is about use no device of this node";
  const bool any_unknown = std::any_of(targets.processes.begin(), targets.processes.end(), [](const TrainingProcess& process) {
    return process.attached() && process.devices.empty();
  });
  if (targets.bound && any_unknown) context.maybe_devices = all;
  context.attached = std::ranges::any_of(targets.processes, &TrainingProcess::attached);
  context.awaits_processes = targets.awaits();
  Result<SessionPlan> plan = PlanSession(spec, context);
  if (plan.ok() && targets.awaits()) plan->devices.clear();
  return plan;
}

namespace {

Status NoCountingProcess() {
  return {StatusCode::kFailedPrecondition,
          Problem{.kind = Problem::Kind::kNeedsProcess,
                  .text = "{start_step} and {steps} need an attached process of the job, whose steps are "
                          "counted; none is attached"}};
}

}  // namespace

Status SessionManager::ResolveStep(const SessionTargets& targets,
                                   v1::SessionSpec* spec) const {
  if (!spec->schedule().has_start_in_steps()) return Status::Ok();
  const uint32_t steps = spec->schedule().start_in_steps();
  SessionJob job(nullptr, targets, deps_.session.processes, "");
  const TrainingProcess* counting = job.CountingProcess();
  if (counting == nullptr) return NoCountingProcess();
  if (!counting->step) {
    return {StatusCode::kFailedPrecondition,
            Problem{.kind = Problem::Kind::kNeedsProcess,
                    .field = "start_in_steps",
                    .value = std::to_string(steps),
                    .text = fmt::format("process {} has begun no step yet; give the number of a step "
                                        "({{start_step}})",
                                        counting->pid)}};
  }
  spec->mutable_schedule()->set_start_step(*counting->step + steps);
  return Status::Ok();
}

std::function<Result<SessionPlan>(const SessionTargets&)> SessionManager::PlannerFor(
    const Peer& peer, v1::SessionSpec spec) const {
  // What has to do with the start has happened, and the processes are the job's present ones.
  spec.mutable_target()->clear_pids();
  spec.mutable_schedule()->clear_since_ms();
  return [this, peer, spec = std::move(spec)](const SessionTargets& targets) {
    return PlanFor(peer, spec, targets);
  };
}

// Steps are counted on the attached process with the lowest rank.
Status SessionManager::CheckSteps(const Session::Request& request) const {
  if (!NeedsSteps(request.spec) || request.targets.awaits()) return Status::Ok();
  SessionJob job(nullptr, request.targets, deps_.session.processes, "");
  const TrainingProcess* counting = job.CountingProcess();
  if (counting == nullptr) return NoCountingProcess();
  const std::optional<int64_t> start_step = StartStepOf(request.spec);
  if (!start_step || !counting->step || *counting->step < *start_step) {
    return Status::Ok();
  }
  return {StatusCode::kFailedPrecondition,
          Problem{.field = "start_step",
                  .value = std::to_string(*start_step),
                  .text = fmt::format("process {}{} has begun step {} already; the next one is {} "
                                      "({{start_in_steps}} counts from the present step)",
                                      counting->pid,
                                      counting->rank ? fmt::format(" (rank {})", *counting->rank) : "",
                                      *counting->step, *counting->step + 1)}};
}

void SessionManager::Refuse(const Status& status, const SessionReply& reply) {
  CountRefusal(status);
  reply(status);
}

void SessionManager::Start(const Peer& peer, const v1::SessionSpec& spec_untrusted,
                           SessionReply reply) {
  DCHECK_ON(deps_.session.control);
  Try(peer, spec_untrusted, kMaxPreemptions, std::move(reply));
}

void SessionManager::Try(const Peer& peer, const v1::SessionSpec& spec, int preemptions,
                         SessionReply reply) {
  if (shutting_down_) {
    Refuse(Unavailable("profd is stopping"), reply);
    return;
  }
  Result<Session::Request> request = Plan(peer, spec);
  if (!request.ok()) {
    Refuse(request.status(), reply);
    return;
  }
  if (Status tuning = CheckTuning(peer, *request); !tuning.ok()) {
    Refuse(tuning, reply);
    return;
  }
  if (request->spec.preempt() && preemptions > 0) {
    std::vector<std::shared_ptr<Session>> victims = Conflicts(*request);
    auto waiting = std::make_shared<size_t>(victims.size());
    for (const auto& victim : victims) {
      victim->Stop(fmt::format("preempted by uid {}", peer.uid));
      victim->WhenFinished([this, peer, spec, preemptions, reply, waiting] {
        if (--*waiting > 0) return;
        // Its record is frozen, and its place free, when the present task is over.
        deps_.session.control.Post([this, peer, spec, preemptions, reply] {
          Try(peer, spec, preemptions - 1, reply);
        });
      });
    }
    if (!victims.empty()) return;
  }
  const int64_t wall_ns = deps_.session.host.clock.WallNs();
  const int64_t now_ns = deps_.session.host.clock.SteadyNs();
  const bool reserves = request->plan.storage_limited && !request->spec.no_dump();
  const uint64_t reserve = reserves ? request->plan.max_bytes : 0;
  Status limits = CheckSessionLimits(Briefs(), peer, config_, wall_ns, reserve);
  if (limits.ok()) limits = rates_.Check(peer.uid, now_ns, config_.max_starts_per_minute);
  if (!limits.ok()) {
    Refuse(limits, reply);
    return;
  }
  if (!request->spec.no_dump()) {
    if (Status given = deps_.rights.MayGiveDump(peer.uid); !given.ok()) {
      Refuse(given, reply);
      return;
    }
  }
  if (deps_.dumps_or_null != nullptr && !request->spec.no_dump()) {
    if (Status quota = deps_.dumps_or_null->CheckStart(peer.uid); !quota.ok()) {
      Refuse(quota, reply);
      return;
    }
  }
  rates_.Note(peer.uid, now_ns);
  Launch(peer, std::move(request).value(), std::move(reply));
}

void SessionManager::Launch(const Peer& peer, Session::Request request, SessionReply reply) {
  std::string id = NewId();
  if (id.empty() || records_.contains(id)) {
    reply(Unavailable("no randomness for a session id; try again"));
    return;
  }
  request.plan_for = PlannerFor(peer, request.spec);
  Record& record = AddLive(id, peer, std::move(request));
  std::shared_ptr<Session> session = record.live;
  session->Start([this, id, peer, session, reply = std::move(reply)](const Status& status) {
    if (!status.ok()) {
      CountRefusal(status);
      uint64_t left_out = 0;
      if (refusals_logged_.Allow(peer.uid, deps_.session.host.clock.SteadyNs(), &left_out)) {
        log::Info("session refused", {{"session", id},
                                      {"uid", peer.uid},
                                      {"reason", status.ToString()},
                                      {"left_out", left_out}});
      }
      reply(AnnotateWithOwner(peer, status));
      return;
    }
    ++started_total_;
    v1::Session view;
    session->Fill(&view);
    const bool scheduled = session->state() == v1::Session::STATE_SCHEDULED;
    log::Info(scheduled ? "session scheduled" : "session running", {{"session", id},
                                                                    {"uid", peer.uid},
                                                                    {"job", session->spec().target().job_id()},
                                                                    {"dump", session->output().path()}});
    AnnotateWithOwner(peer, &view);
    if (!scheduled) {
      reply(view);
      return;
    }
    // Nothing of it is on the disk but its state, which is being saved there: what was answered is stored.
    deps_.session.writer.Post([this, reply, view = std::move(view)] {
      deps_.session.control.Post([reply, view] { reply(view); });
    });
  });
}

// Where processes have not reported which devices they use, the request to each of them is checked (JobTable::Notify).
Status SessionManager::CheckTuning(const Peer& peer, const Session::Request& request) const {
  if (request.plan.collect.empty() || !request.targets.any()) return Status::Ok();
  std::vector<int> devices = request.targets.bound ? request.plan.devices : std::vector<int>();
  for (const TrainingProcess& process : request.targets.processes) {
    devices.insert(devices.end(), process.devices.begin(), process.devices.end());
  }
  return deps_.gate.MayProfile(peer, devices);
}

std::string SessionManager::ProfilingOn(const Peer& peer, std::span<const uint32_t> devices) const {
  const auto on = [devices](const std::vector<int>& used) {
    return std::any_of(used.begin(), used.end(), [devices](int device) {
      return std::find(devices.begin(), devices.end(), static_cast<uint32_t>(device)) != devices.end();
    });
  };
  for (const auto& [id, record] : records_) {
    if (record.live == nullptr || record.live->finished()) continue;
    const Session& session = *record.live;
    if (session.plan().collect.empty() || session.job() == nullptr) continue;
    const std::vector<TrainingProcess> processes = session.job()->Processes();
    const bool there = std::any_of(processes.begin(), processes.end(), [&](const TrainingProcess& process) {
      return on(process.devices.empty() ? session.plan().devices : process.devices);
    });
    if (there || (processes.empty() && on(session.plan().devices))) {
      return DescribeHolder(BriefOf(record), peer, deps_.session.host.clock.WallNs());
    }
  }
  return {};
}

// The sessions that an administrator's request may end: for a place on the node, and for channels that can serve
// only one of the two.
std::vector<std::shared_ptr<Session>> SessionManager::Conflicts(const Session::Request& request) const {
  std::vector<std::shared_ptr<Session>> victims;
  std::vector<SessionBrief> live = Briefs();
  for (const SessionBrief& brief : live) {
    const std::shared_ptr<Session>& session = records_.at(brief.id).live;
    bool lower = brief.priority < PriorityOf(request.spec) && !brief.ending;
    if (lower && Exclude(request.plan, session->plan())) victims.push_back(session);
  }
  if (victims.empty() && NodeIsFull(live, config_)) {
    const SessionBrief* victim = FindVictim(live, PriorityOf(request.spec));
    if (victim != nullptr) victims.push_back(records_.at(victim->id).live);
  }
  return victims;
}

SessionBrief SessionManager::BriefOf(const Record& record) const {
  const Session& session = *record.live;
  SessionBrief brief;
  brief.id = session.id();
  brief.uid = record.uid;
  brief.job_id = session.spec().target().job_id();
  brief.priority = PriorityOf(session.spec());
  brief.order = record.order;
  brief.ending = session.state() == v1::Session::STATE_STOPPING || session.finished();
  brief.end_wall_ns = session.KnownEndWallNs();
  if (session.spec().no_dump()) return brief;
  brief.written = session.output().bytes();
  if (session.plan().storage_limited) brief.reserved = session.plan().max_bytes;
  return brief;
}

std::vector<SessionBrief> SessionManager::Briefs() const {
  std::vector<SessionBrief> briefs;
  for (const auto& [id, record] : records_) {
    if (record.live != nullptr) briefs.push_back(BriefOf(record));
  }
  return briefs;
}

// Whose the session is and until when it runs: how much is shown depends on the caller.
std::string SessionManager::OwnerOf(const Peer& peer, const std::string& holder) const {
  auto found = records_.find(holder);
  if (found == records_.end() || found->second.live == nullptr) return {};
  return fmt::format(" ({})",
                     DescribeHolder(BriefOf(found->second), peer, deps_.session.host.clock.WallNs()));
}

Status SessionManager::AnnotateWithOwner(const Peer& peer, const Status& status) const {
  if (status.problems().empty()) return status;
  std::vector<Problem> problems(status.problems().begin(), status.problems().end());
  for (Problem& problem : problems) problem.text += OwnerOf(peer, problem.holder);
  return {status.code(), std::move(problems)};
}

void SessionManager::AnnotateWithOwner(const Peer& peer, v1::Session* view) const {
  for (v1::Outcome& outcome : *view->mutable_status()->mutable_outcomes()) {
    if (outcome.result() == v1::Outcome::RESULT_BUSY) *outcome.mutable_detail() += OwnerOf(peer, outcome.holder());
  }
}

Result<std::optional<uint64_t>> SessionManager::RenewLease(const Peer& peer, const std::string& id_untrusted) {
  DCHECK_ON(deps_.session.control);
  const Record* record = Find(peer, id_untrusted);
  if (record == nullptr) return NoSession(id_untrusted);
  if (record->live == nullptr) return FailedPrecondition("the session has ended");
  return record->live->terms().Renew();
}

}  // namespace profd
