#include "daemon/session/session_state_file.h"

#include <google/protobuf/util/json_util.h>

#include <set>
#include <utility>

#include "base/text.h"

namespace profd {
namespace {

// What the NPUs used since then is not counted if the daemon is killed.
constexpr int64_t kSaveIntervalNs = 5 * kNsPerSecond;

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
  TrainingProcess process{.pid = stored.pid(), .start_ticks = stored.start_ticks(), .uid = stored.uid(),
                          .gid = stored.gid(), .job_id = stored.job_id()};
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

}  // namespace

SessionStateFile::SessionStateFile(StateSaver& states, const Clock& clock, const std::string& id, const std::string& boot_id,
                                   const Peer& peer, const Session::Request& request)
    : states_(states), clock_(clock) {
  stored_.set_version(kStateFileVersion);
  stored_.set_session_id(id);
  stored_.set_boot_id(boot_id);
  state::StoredPeer& who = *stored_.mutable_peer();
  who.set_pid(peer.pid);
  who.set_uid(peer.uid);
  who.set_gid(peer.gid);
  for (uint32_t group : peer.groups) who.add_groups(group);
  who.set_admin(peer.admin);
  who.set_remote(peer.remote);
  who.set_certificate(peer.certificate);
  *stored_.mutable_spec() = request.spec;
  if (request.starter.pid == 0) return;
  stored_.mutable_starter()->set_pid(request.starter.pid);
  stored_.mutable_starter()->set_start_ticks(request.starter.start_ticks);
}

void SessionStateFile::SetStart(int64_t wall_ns, int64_t raw_ns, int64_t since_wall_ns) {
  stored_.set_started_ns(wall_ns);
  stored_.set_started_raw_ns(raw_ns);
  if (since_wall_ns != 0) stored_.set_since_ns(since_wall_ns);
}

bool SessionStateFile::IsStale(const Session& session) const {
  const bool uses = session.state() == v1::Session::STATE_RUNNING && !session.statistics().empty();
  return (uses && clock_.SteadyNs() - saved_ns_ >= kSaveIntervalNs) || session.steps_done() != stored_.steps_done();
}

void SessionStateFile::Save(const Session& session) {
  const bool begun = session.state() != v1::Session::STATE_SCHEDULED;
  // It starts before its clock was read.
  if (begun && !stored_.has_started_ns() && session.clocks().begun()) {
    // Its duration counts from its request, also where its data begins before that.
    const SessionClocks& clocks = session.clocks();
    const int64_t past_ns = clocks.requested_wall_ns() == 0 ? 0 : clocks.requested_wall_ns() - clocks.start_wall_ns();
    SetStart(clocks.start_wall_ns() + past_ns, clocks.start_raw_ns() + past_ns, past_ns == 0 ? 0 : clocks.start_wall_ns());
  }
  stored_.set_steps_done(session.steps_done());
  StoreTargets(session.job(), stored_.mutable_targets());
  if (const pid_t pid = session.spec().schedule().end_with_pid(); pid != 0) {
    stored_.mutable_end_with()->set_pid(pid);
    stored_.mutable_end_with()->set_start_ticks(session.terms().end_pid_start());
  }
  stored_.set_dump(std::string(BaseName(session.output().path())));
  stored_.clear_segments();
  for (const v1::SessionStatus& segment : session.past().all()) *stored_.add_segments() = SegmentOf(segment);
  stored_.set_segment(session.past().NextNumber());
  session.statistics().Save(&stored_);
  saved_ns_ = clock_.SteadyNs();
  stored_.set_ending(session.stopping() ? session.reason() : "");
  stored_.set_withdrawn(session.withdrawn());
  std::string text;
  google::protobuf::util::JsonPrintOptions options;
  options.add_whitespace = true;
  options.preserve_proto_field_names = true;
  if (!google::protobuf::util::MessageToJsonString(stored_, &text, options).ok()) return;
  states_.SaveSession(session.id(), std::move(text));
}

bool ParseStateFile(const std::string& text, state::StoredSession* out) {
  google::protobuf::util::JsonParseOptions options;
  options.ignore_unknown_fields = true;
  return google::protobuf::util::JsonStringToMessage(text, out, options).ok();
}

Peer PeerOf(const state::StoredSession& stored) {
  const state::StoredPeer& from = stored.peer();
  Peer peer{.pid = from.pid(), .uid = from.uid(), .gid = from.gid()};
  peer.groups.assign(from.groups().begin(), from.groups().end());
  peer.admin = from.admin();
  peer.remote = from.remote();
  peer.certificate = from.certificate();
  return peer;
}

SessionTargets TargetsOf(const state::StoredSession& session, bool same_boot) {
  const state::StoredTargets& stored = session.targets();
  const v1::SessionSpec::Target& target = session.spec().target();
  SessionTargets targets{.job_id = target.job_id(), .ranks = {target.ranks().begin(), target.ranks().end()},
                         .pids = {stored.pids().begin(), stored.pids().end()}, .admin = session.peer().admin(),
                         .uid = session.peer().uid(), .bound = stored.bound()};
  std::set<int> devices(stored.devices().begin(), stored.devices().end());
  for (const state::StoredProcess& process : stored.processes()) {
    targets.processes.push_back(FromStored(process));
    // Those of processes that joined it, too.
    if (targets.bound) devices.insert(process.devices().begin(), process.devices().end());
  }
  targets.devices.assign(devices.begin(), devices.end());
  // A number without its process means nothing any more.
  for (const state::StoredProcess& process : stored.unknown()) {
    if (same_boot) targets.unknown_pids.insert(process.pid());
  }
  return targets;
}

}  // namespace profd
