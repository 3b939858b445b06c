#include "daemon/session/session_recovered.h"

#include <algorithm>
#include <string_view>

#include "collectors/collector.h"
#include "daemon/session/option_plan.h"

namespace profd {
namespace {

// A daemon that was killed left "running": it did, up to there.
v1::Outcome::Result ResultOf(std::string_view state) {
  if (state == "finished" || state == "running") return v1::Outcome::FINISHED;
  if (state == "unsupported") return v1::Outcome::UNSUPPORTED;
  if (state == "denied") return v1::Outcome::DENIED;
  if (state == "busy") return v1::Outcome::BUSY;
  return v1::Outcome::FAILED;
}

// The row of a collector on a device: it may have several channels, one of which ran if it did.
v1::Outcome& OutcomeOf(const ManifestChannel& channel, v1::Session* session) {
  auto& rows = *session->mutable_outcomes();
  auto row = std::find_if(rows.begin(), rows.end(), [&channel](const v1::Outcome& outcome) {
    return outcome.collector() == channel.collector && outcome.device() == channel.device;
  });
  const bool is_new = row == rows.end();
  v1::Outcome& outcome = is_new ? *session->add_outcomes() : *row;
  const v1::Outcome::Result result = ResultOf(channel.state);
  if (is_new) {
    outcome.set_collector(channel.collector);
    outcome.set_device(channel.device);
    outcome.set_result(result);
  } else if (result == v1::Outcome::FINISHED) {
    outcome.set_result(result);
  }
  return outcome;
}

// As the session itself counted: what limits removed later had been recorded.
void AddOutcome(const ManifestChannel& channel, v1::Session* session) {
  v1::Outcome& outcome = OutcomeOf(channel, session);
  if (outcome.detail().empty()) outcome.set_detail(channel.detail);
  outcome.set_hz(std::max(outcome.hz(), channel.hz_effective));
  const uint64_t records = channel.records + channel.aged.records;
  outcome.set_records(outcome.records() + records);
  outcome.set_bytes(outcome.bytes() + channel.bytes + channel.aged.bytes);
  outcome.set_garbage_bytes(outcome.garbage_bytes() + channel.garbage_bytes);
  if (channel.thinned) outcome.set_thinned(true);
  if (channel.rebased) outcome.set_rebased(true);
  session->set_records(session->records() + records);
  for (const ManifestLoss& loss : channel.dropped) {
    if (!IsDropped(loss)) continue;
    outcome.set_dropped_records(outcome.dropped_records() + loss.records);
    outcome.set_dropped_bytes(outcome.dropped_bytes() + loss.bytes);
    session->set_dropped_records(session->dropped_records() + loss.records);
    session->set_dropped_bytes(session->dropped_bytes() + loss.bytes);
  }
}

void AddMarks(const Manifest& manifest, v1::Session* session) {
  if (manifest.marks == 0 && manifest.dropped_marks == 0) return;
  v1::Outcome& outcome = *session->add_outcomes();
  outcome.set_collector(std::string(kMarksOption));
  outcome.set_device(-1);
  outcome.set_result(v1::Outcome::FINISHED);
  outcome.set_detail(std::string(kMarksDetail));
  outcome.set_records(manifest.marks);
  outcome.set_dropped_records(manifest.dropped_marks);
}

}  // namespace

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
  // Marks and steps have channels there too, and are counted as marks.
  for (const ManifestChannel& channel : manifest.channels) {
    if (FindCollector(channel.collector) != nullptr) AddOutcome(channel, &session);
  }
  AddMarks(manifest, &session);
  return session;
}

}  // namespace profd
