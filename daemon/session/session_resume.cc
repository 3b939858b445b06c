// Sessions and the daemon's own end: what is kept of them while they live, how those that a killed
// daemon left go on, and how the dumps of those that do not are shown.
#include <fmt/format.h>
#include <google/protobuf/util/json_util.h>

#include <algorithm>
#include <utility>

#include "base/log.h"
#include "base/text.h"
#include "daemon/session/session_manager.h"
#include "daemon/session/session_segments.h"
#include "daemon/session/stored_session.pb.h"

namespace profd {
namespace {

constexpr uint32_t kStoredVersion = 2;
// A session that takes the daemon with it each time does not do so for ever.
constexpr int kMaxSegments = 64;
constexpr std::string_view kNotContinued = "profd ended before the session did";

state::StoredProcess ToStored(const TrainingProcess& process) {
  state::StoredProcess out;
  out.set_pid(process.pid);
  out.set_start_ticks(process.start_ticks);
  out.set_uid(process.uid);
  out.set_gid(process.gid);
  out.set_job_id(process.job_id);
  if (process.rank) out.set_rank(*process.rank);
  if (process.local_rank) out.set_local_rank(*process.local_rank);
  out.set_world_size(process.world_size);
  for (int device : process.devices) out.add_devices(device);
  out.set_framework(process.framework);
  out.set_command(process.command);
  out.set_pod_uid(process.pod_uid);
  out.set_slurm_job(process.slurm_job);
  out.set_found_by(process.found_by);
  out.set_attached(process.attached());
  return out;
}

TrainingProcess FromStored(const state::StoredProcess& stored) {
  TrainingProcess process;
  process.pid = stored.pid();
  process.start_ticks = stored.start_ticks();
  process.uid = stored.uid();
  process.gid = stored.gid();
  process.job_id = stored.job_id();
  if (stored.has_rank()) process.rank = stored.rank();
  if (stored.has_local_rank()) process.local_rank = stored.local_rank();
  process.world_size = stored.world_size();
  process.devices.assign(stored.devices().begin(), stored.devices().end());
  process.framework = stored.framework();
  process.command = stored.command();
  process.pod_uid = stored.pod_uid();
  process.slurm_job = stored.slurm_job();
  process.found_by = stored.found_by();
  return process;  // not attached: it has to come again
}

void StoreTargets(const SessionJob* job, state::StoredTargets* out) {
  out->Clear();
  if (job == nullptr) return;
  const SessionTargets& targets = job->targets();
  for (pid_t pid : targets.pids) out->add_pids(pid);
  out->set_bound(targets.bound);
  for (int device : targets.devices) out->add_devices(device);
  for (const TrainingProcess& process : job->Processes()) {
    const bool unknown = targets.unknown_pids.contains(process.pid);
    *(unknown ? out->add_unknown() : out->add_processes()) = ToStored(process);
  }
}

Peer PeerOf(const state::StoredPeer& stored) {
  Peer peer;
  peer.pid = stored.pid();
  peer.uid = stored.uid();
  peer.gid = stored.gid();
  peer.groups.assign(stored.groups().begin(), stored.groups().end());
  peer.admin = stored.admin();
  peer.remote = stored.remote();
  peer.certificate = stored.certificate();
  return peer;
}

}  // namespace

SessionManager::Record& SessionManager::AddLive(const std::string& id, const Peer& peer,
                                                Session::Request request) {
  auto stored = std::make_shared<state::StoredSession>();
  stored->set_version(kStoredVersion);
  stored->set_session_id(id);
  stored->set_boot_id(deps_.boot_id);
  state::StoredPeer& who = *stored->mutable_peer();
  who.set_pid(peer.pid);
  who.set_uid(peer.uid);
  who.set_gid(peer.gid);
  for (uint32_t group : peer.groups) who.add_groups(group);
  who.set_admin(peer.admin);
  who.set_remote(peer.remote);
  who.set_certificate(peer.certificate);
  *stored->mutable_spec() = request.spec;
  if (request.starter.pid != 0) {
    stored->mutable_starter()->set_pid(request.starter.pid);
    stored->mutable_starter()->set_start_ticks(request.starter.start_ticks);
  }
  Record& record = records_[id];
  record.live = std::make_shared<Session>(deps_.session, id,
                                          Session::Owner{peer.uid, peer.gid, peer.pid},
                                          std::move(request),
                                          [this](Session& changed) { OnChange(changed); });
  if (deps_.on_begun != nullptr) deps_.on_begun();
  record.uid = peer.uid;
  record.order = next_order_++;
  record.stored = std::move(stored);
  return record;
}

void SessionManager::SaveStates() {
  DCHECK_ON(deps_.session.control);
  for (auto& [id, record] : records_) {
    if (record.live != nullptr) Save(record);
  }
}

void SessionManager::Save(Record& record) {
  if (record.stored == nullptr) return;
  const Session& session = *record.live;
  state::StoredSession& stored = *record.stored;
  const bool begun = session.state() != v1::Session::STATE_SCHEDULED;
  // It starts before its clock was read.
  if (begun && !stored.has_started_ns() && session.clocks().begun()) {
    stored.set_started_ns(session.clocks().start_wall_ns());
    stored.set_started_raw_ns(session.clocks().start_raw_ns());
  }
  stored.set_steps_done(session.steps_done());
  StoreTargets(session.job(), stored.mutable_targets());
  if (const pid_t pid = session.spec().schedule().end_with_pid(); pid != 0) {
    stored.mutable_end_with()->set_pid(pid);
    stored.mutable_end_with()->set_start_ticks(session.terms().end_pid_start());
  }
  stored.set_dump(std::string(BaseName(session.output().path())));
  stored.clear_segments();
  for (const v1::SessionStatus& segment : session.past().all()) *stored.add_segments() = SegmentOf(segment);
  session.statistics().Save(&stored);
  record.saved_ns = deps_.session.host.clock.SteadyNs();
  stored.set_ending(session.stopping() ? session.reason() : "");
  stored.set_withdrawn(session.withdrawn());
  std::string text;
  google::protobuf::util::JsonPrintOptions options;
  options.add_whitespace = true;
  options.preserve_proto_field_names = true;
  if (!google::protobuf::util::MessageToJsonString(stored, &text, options).ok()) return;
  deps_.states.SaveSession(session.id(), std::move(text));
}

// The session stays as its dumps show it; one without any is shown for its reason.
void SessionManager::GiveUp(const state::StoredSession& stored, const std::string& why) {
  const std::string& id = stored.session_id();
  const std::string reason = fmt::format("{}; not continued: {}", kNotContinued, why);
  log::Info("session not continued", {{"session", id}, {"why", why}});
  deps_.states.DropSession(id);
  auto known = records_.find(id);
  if (known != records_.end()) {
    known->second.not_continued = reason;
    known->second.segments.clear();
    EndedSession& frozen = known->second.frozen;
    if (frozen.state() == v1::Session::STATE_INTERRUPTED) {
      frozen.Edit([&](v1::Session& view) {
        view.mutable_status()->set_reason(reason);
        SessionStatistics::Of(stored).Fill(view.mutable_status());
      });
    }
    return;
  }
  v1::Session session;
  session.set_session_id(id);
  session.mutable_owner()->set_uid(stored.peer().uid());
  session.mutable_owner()->set_pid(stored.peer().pid());
  *session.mutable_spec() = stored.spec();
  session.mutable_status()->set_state(v1::Session::STATE_INTERRUPTED);
  session.mutable_status()->set_reason(reason);
  if (stored.has_started_ns()) session.mutable_status()->set_started_ns(stored.started_ns());
  SessionStatistics::Of(stored).Fill(session.mutable_status());
  AddRecovered(std::move(session));
  known = records_.find(id);
  if (known != records_.end()) known->second.not_continued = reason;
}

// The session leaves nothing; its dump may be found later.
void SessionManager::Discard(const std::string& id) {
  log::Info("session not continued", {{"session", id}, {"why", "its start was not answered"}});
  deps_.states.DropSession(id);
  withdrawn_.insert(id);
  auto known = records_.find(id);
  if (known == records_.end()) return;
  for (const v1::SessionStatus& segment : SegmentsOf(known->second)) {
    deps_.remover.Remove(std::string(BaseName(segment.dump_path())), kReasonRequest, [](Result<uint64_t>) {});
  }
  records_.erase(id);
}

namespace {

SessionTargets TargetsOf(const state::StoredSession& session, bool same_boot) {
  const state::StoredTargets& stored = session.targets();
  const v1::SessionSpec::Target& target = session.spec().target();
  SessionTargets targets;
  targets.job_id = target.job_id();
  targets.ranks = {target.ranks().begin(), target.ranks().end()};
  targets.pids = {stored.pids().begin(), stored.pids().end()};
  targets.admin = session.peer().admin();
  targets.uid = session.peer().uid();
  targets.bound = stored.bound();
  targets.devices = {stored.devices().begin(), stored.devices().end()};
  for (const state::StoredProcess& process : stored.processes()) {
    targets.processes.push_back(FromStored(process));
  }
  // A number without its process means nothing any more.
  for (const state::StoredProcess& process : stored.unknown()) {
    if (same_boot) targets.unknown_pids.insert(process.pid());
  }
  return targets;
}

// Why it is over, by its spec; empty if it is not. *left_ms: what is left of the duration.
std::string WhyOver(const state::StoredSession& stored, bool same_boot, const Clock& clock,
                    int64_t* left_ms) {
  if (!stored.ending().empty()) return "it was being ended: " + stored.ending();
  if (stored.segments_size() >= kMaxSegments) {
    return fmt::format("it has {} segments already", stored.segments_size());
  }
  const v1::SessionSpec::Schedule& schedule = stored.spec().schedule();
  if (schedule.has_steps() && !schedule.has_start_step() && stored.steps_done() >= schedule.steps()) {
    return fmt::format("its {} steps were done", schedule.steps());
  }
  if (!schedule.has_duration_ms()) return {};
  *left_ms = static_cast<int64_t>(schedule.duration_ms());
  int64_t ran_ns = 0;
  if (stored.has_started_ns()) {
    ran_ns = same_boot ? clock.MonotonicRawNs() - stored.started_raw_ns()
                       : clock.WallNs() - stored.started_ns();
  } else if (schedule.has_start_at_ns()) {
    ran_ns = clock.WallNs() - schedule.start_at_ns();
  }
  *left_ms -= std::max<int64_t>(ran_ns, 0) / kNsPerMs;
  if (*left_ms <= 0) return "its duration ended meanwhile";
  return {};
}

}  // namespace

// The spec is planned anew, as if given now, but for what has to do with its start.
Result<Session::Request> SessionManager::PlanAgain(const state::StoredSession& stored,
                                                 bool same_boot) const {
  const Peer peer = PeerOf(stored.peer());
  Session::Request request;
  request.spec = stored.spec();
  v1::SessionSpec again = stored.spec();
  v1::SessionSpec::Target& target = *again.mutable_target();
  auto lives = [&](const state::StoredProcess& process) {
    return same_boot && deps_.session.processes.StartTimeOf(process.pid()) == process.start_ticks();
  };
  if (stored.has_end_with() && !lives(stored.end_with())) {
    return FailedPrecondition(fmt::format("process {} ended meanwhile", stored.end_with().pid()));
  }
  request.targets = TargetsOf(stored, same_boot);
  target.clear_pids();
  for (const auto* list : {&stored.targets().processes(), &stored.targets().unknown()}) {
    for (const state::StoredProcess& process : *list) {
      if (lives(process)) target.add_pids(process.pid());
    }
  }
  const bool tied = request.targets.bound || !request.targets.pids.empty() || stored.targets().unknown_size() > 0;
  if (tied && target.pids().empty() && !request.targets.awaits()) {
    return FailedPrecondition("all processes of the job ended meanwhile");
  }
  // One that is renewed by calls alone gets another lease.
  if (again.has_lease() && stored.has_starter() && !lives(stored.starter()) && target.pids().empty()) {
    return FailedPrecondition("its starter ended meanwhile");
  }
  const bool at_step_to_come = !stored.has_started_ns() && again.schedule().has_start_step();
  again.mutable_schedule()->clear_since_ms();
  if (!at_step_to_come) again.mutable_schedule()->clear_start();
  again.clear_preempt();
  again.clear_require_all();
  if (again.has_lease()) again.mutable_lease()->clear_starter_pid();
  Result<ProcessId> starter = AdmitTerms({config_, peer, deps_.session.host.clock.WallNs(), deps_.session.processes},
                                         &again);
  if (!starter.ok()) return starter.status();
  if (lives(stored.starter())) request.starter = {stored.starter().pid(), stored.starter().start_ticks()};
  // Who was attached will be again; the plan must not hang on who is first.
  SessionTargets as_attached = request.targets;
  for (int i = 0; i < stored.targets().processes_size(); ++i) {
    if (stored.targets().processes(i).attached()) {
      as_attached.processes[static_cast<size_t>(i)].attach_id = UINT64_MAX;
    }
  }
  Result<SessionPlan> plan = PlanFor(peer, again, as_attached);
  if (!plan.ok()) return plan.status();
  request.plan = std::move(plan).value();
  request.plan_for = PlannerFor(peer, stored.spec());
  // What is over: the past it began in, and that all of its collectors had to start.
  request.spec.mutable_schedule()->clear_since_ms();
  request.spec.clear_require_all();
  return request;
}

void SessionManager::Resume(const std::string& id, const std::string& text) {
  DCHECK_ON(deps_.session.control);
  state::StoredSession stored;
  google::protobuf::util::JsonParseOptions options;
  options.ignore_unknown_fields = true;
  const bool parsed = google::protobuf::util::JsonStringToMessage(text, &stored, options).ok();
  if (!parsed || stored.session_id() != id || stored.version() != kStoredVersion) {
    log::Warning("session not continued: its state file is damaged or of another version of profd; its dump stays",
                 {{"session", id}, {"version", stored.version()}, {"reads", kStoredVersion}});
    deps_.states.DropSession(id);
    return;
  }
  if (stored.withdrawn()) {
    Discard(id);
    return;
  }
  const bool same_boot = !deps_.boot_id.empty() && stored.boot_id() == deps_.boot_id;
  auto known = records_.find(id);
  if (known != records_.end() && known->second.frozen.state() != v1::Session::STATE_INTERRUPTED) {
    deps_.states.DropSession(id);  // it had just ended
    return;
  }
  int64_t left_ms = 0;
  std::string over = config_.resume ? WhyOver(stored, same_boot, deps_.session.host.clock, &left_ms)
                                    : "dump.resume is off";
  Result<Session::Request> request = Aborted(over);
  if (over.empty()) request = PlanAgain(stored, same_boot);
  if (over.empty() && !request.ok()) over = request.status().message();
  if (!over.empty()) {
    GiveUp(stored, over);
    return;
  }
  Continuation continues;
  continues.started = stored.has_started_ns();
  continues.started_wall_ns = stored.started_ns();
  continues.left_ms = left_ms;
  continues.steps_done = stored.steps_done();
  continues.statistics = SessionStatistics::Of(stored);
  request->continues = continues;
  std::vector<v1::SessionStatus> past;
  if (known != records_.end()) past = SegmentsOf(known->second);
  records_.erase(id);
  Record& record = AddLive(id, PeerOf(stored.peer()), std::move(request).value());
  if (stored.has_started_ns()) {
    record.stored->set_started_ns(stored.started_ns());
    // Of another boot: the remaining time is measured by the wall clock from now on, as it was just now.
    record.stored->set_started_raw_ns(
        same_boot ? stored.started_raw_ns()
                  : deps_.session.host.clock.MonotonicRawNs() -
                        (deps_.session.host.clock.WallNs() - stored.started_ns()));
  }
  std::shared_ptr<Session> session = record.live;
  for (v1::SessionStatus& segment : past) session->past().Add(std::move(segment));
  session->Start([session, id](const Status& status) {
    log::Info(status.ok() ? "session continued" : "session could not be continued",
              {{"session", id}, {"segment", session->past().all().size() + 1},
               {"why", status.ok() ? "" : status.ToString()}});
  });
}

}  // namespace profd
