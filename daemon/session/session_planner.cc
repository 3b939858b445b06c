#include "daemon/session/session_planner.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

namespace profd {
namespace {

constexpr int kMaxHostPids = 1024;

Status NoCountingProcess() {
  return {StatusCode::kFailedPrecondition,
          Problem{.kind = Problem::Kind::kNeedsProcess,
                  .text = "{start_step} and {steps} need an attached process of the job, whose steps are "
                          "counted; none is attached"}};
}

// All that are known. A start at a step is compared with the step a process is in now: what its ring holds counts.
std::vector<TrainingProcess> KnownProcesses(JobDirectory& jobs, const Peer& peer, const v1::SessionSpec& spec) {
  if (!spec.schedule().has_start_step() && !spec.schedule().has_start_in_steps()) return jobs.Processes();
  const v1::SessionSpec::Target& target = spec.target();
  for (const TrainingProcess& process : jobs.Processes()) {
    const bool meant = target.job_id().empty() ? std::ranges::find(target.pids(), process.pid) != target.pids().end()
                                               : process.job_id == target.job_id();
    if (meant && process.attached() && peer.Owns(process.uid)) jobs.Drain(process.attach_id);
  }
  return jobs.Processes();
}

// start_in_steps becomes start_step.
Status ResolveStep(const SessionTargets& targets, const NodeProcesses& processes, v1::SessionSpec* spec) {
  if (!spec->schedule().has_start_in_steps()) return Status::Ok();
  const uint32_t steps = spec->schedule().start_in_steps();
  SessionJob job(nullptr, targets, processes, "");
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

// Steps are counted on the attached process with the lowest rank; for a command that is yet to attach, as soon as it has.
Status CheckSteps(const Session::Request& request, const NodeProcesses& processes) {
  if (!NeedsSteps(request.spec) || request.targets.awaits()) return Status::Ok();
  SessionJob job(nullptr, request.targets, processes, "");
  const TrainingProcess* counting = job.CountingProcess();
  if (counting == nullptr) return StartsWithCommand(request.spec) ? Status::Ok() : NoCountingProcess();
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

}  // namespace

Result<Session::Request> SessionPlanner::Plan(const Peer& peer, const v1::SessionSpec& spec_untrusted) const {
  DCHECK_ON(session_.control);
  Session::Request request;
  request.spec = spec_untrusted;
  std::vector<TrainingProcess> known;
  if (session_.jobs_or_null != nullptr) known = KnownProcesses(*session_.jobs_or_null, peer, spec_untrusted);
  Result<SessionTargets> targets = ResolveTargets(request.spec.target(), peer, known);
  if (targets.ok()) RETURN_IF_ERROR(ResolveStep(*targets, session_.processes, &request.spec));
  Result<ProcessId> starter = AdmitTerms({config_, peer, session_.host.clock.WallNs(), session_.processes},
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
  RETURN_IF_ERROR(CheckSteps(request, session_.processes));
  request.plan_for = PlannerFor(peer, request.spec);
  return request;
}

Result<SessionPlan> SessionPlanner::PlanFor(const Peer& peer, v1::SessionSpec spec, const SessionTargets& targets) const {
  DCHECK_ON(session_.control);
  const std::span<const DeviceInfo> all = session_.host.devices;
  std::vector<DeviceInfo> devices(all.begin(), all.end());
  // Of a job to come the options are checked against all devices; which it will use is not known yet.
  if (targets.bound && !targets.awaits()) {
    std::erase_if(devices, [&targets](const DeviceInfo& device) {
      return std::ranges::find(targets.devices, device.id) == targets.devices.end();
    });
  }
  for (const TrainingProcess& process : targets.processes) {
    const auto& pids = spec.target().pids();
    if (pids.size() >= kMaxHostPids) break;
    if (std::ranges::find(pids, process.pid) != pids.end()) continue;
    // One that has just ended is not a problem of the request.
    if (session_.processes.OwnerOf(process.pid).ok()) spec.mutable_target()->add_pids(process.pid);
  }
  PlanContext context{config_,        devices, Collectors(), peer,
                      session_.processes, session_.devices, ProbeOn(session_.host),
                      session_.writer.free_bytes()};
  if (targets.bound) context.no_devices = "the processes it is about use no device of this node";
  const bool any_unknown = std::ranges::any_of(targets.processes, [](const TrainingProcess& process) {
    return process.attached() && process.devices.empty();
  });
  if (targets.bound && any_unknown) context.maybe_devices = all;
  context.attached = std::ranges::any_of(targets.processes, &TrainingProcess::attached);
  context.awaits_processes = targets.awaits();
  Result<SessionPlan> plan = PlanSession(spec, context);
  if (plan.ok() && targets.awaits()) plan->devices.clear();
  return plan;
}

std::function<Result<SessionPlan>(const SessionTargets&)> SessionPlanner::PlannerFor(
    const Peer& peer, v1::SessionSpec spec) const {
  // What has to do with the start has happened, and the processes are the job's present ones.
  spec.mutable_target()->clear_pids();
  spec.mutable_schedule()->clear_since_ms();
  return [this, peer, spec = std::move(spec)](const SessionTargets& targets) {
    return PlanFor(peer, spec, targets);
  };
}

}  // namespace profd
