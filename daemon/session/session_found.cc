#include "daemon/session/session_found.h"

namespace profd {

v1::Session SessionFromManifest(const Manifest& manifest, const std::string& path, uint64_t bytes) {
  v1::Session session;
  session.set_session_id(manifest.session_id);
  switch (manifest.state) {
    case DumpState::kDone:
      session.set_state(v1::Session::DONE);
      break;
    case DumpState::kFailed:
      session.set_state(v1::Session::FAILED);
      break;
    case DumpState::kRunning:
    case DumpState::kInterrupted:
      session.set_state(v1::Session::INTERRUPTED);
      break;
  }
  session.set_reason(manifest.state == DumpState::kRunning ? "profd ended before the session did"
                                                           : manifest.reason);
  session.set_uid(manifest.uid);
  session.set_pid(manifest.pid);
  session.set_job_id(manifest.job_id);
  if (manifest.rank) session.set_rank(*manifest.rank);
  session.set_label(manifest.label);
  session.set_started_ns(manifest.start_wall_ns);
  session.set_ended_ns(manifest.end_wall_ns);
  for (const auto& [name, value] : manifest.metadata) (*session.mutable_metadata())[name] = value;
  if (manifest.start_step) session.set_start_step(*manifest.start_step);
  session.set_steps(manifest.steps);
  session.set_steps_done(manifest.steps_done);
  session.set_marks(manifest.marks);
  session.set_dropped_marks(manifest.dropped_marks);
  for (const ManifestProcess& process : manifest.processes) {
    v1::SessionProcess& wire = *session.add_processes();
    wire.set_pid(process.pid);
    if (process.rank) wire.set_rank(*process.rank);
    wire.set_attached(process.attached);
  }
  session.set_dump_path(path);
  session.set_dump_bytes(bytes);
  for (const ManifestDevice& device : manifest.devices) {
    session.add_devices(static_cast<uint32_t>(device.id));
  }
  for (const ManifestOption& option : manifest.options) {
    v1::EffectiveOption& wire = *session.add_effective_options();
    wire.set_key(option.key);
    wire.set_value(option.value);
    wire.set_asked(option.asked);
    wire.set_note(option.note);
  }
  for (const ManifestChannel& channel : manifest.channels) {
    session.set_records(session.records() + channel.records);
    for (const ManifestLoss& loss : channel.dropped) {
      if (!IsDropped(loss)) continue;
      session.set_dropped_records(session.dropped_records() + loss.records);
      session.set_dropped_bytes(session.dropped_bytes() + loss.bytes);
    }
  }
  return session;
}

}  // namespace profd
