#include "daemon/session/session_recovered.h"

#include <algorithm>
#include <map>
#include <set>
#include <string_view>
#include <utility>

#include "collectors/collector.h"
#include "daemon/session/option_plan.h"
#include "daemon/session/session_activity.h"
#include "daemon/session/session_files.h"
#include "daemon/session/session_segments.h"
#include "dump/activity_files.h"
#include "dump/mark_files.h"
#include "proto/enum_word/enum_word.h"

namespace profd {
namespace {

// A daemon that was killed left "running", and "interrupted" when its dump was completed: it ran, up to there.
v1::Outcome::Result ResultOf(std::string_view state) {
  if (state == "interrupted") return v1::Outcome::RESULT_FINISHED;
  const auto result = EnumOf<v1::Outcome::Result>(state);
  if (result == v1::Outcome::RESULT_RUNNING) return v1::Outcome::RESULT_FINISHED;
  return result == v1::Outcome::RESULT_UNSPECIFIED ? v1::Outcome::RESULT_FAILED : result;
}

// The row of a collector on a device: it may have several channels, one of which ran if it did.
v1::Outcome& OutcomeOf(const ManifestChannel& channel, v1::SessionStatus* session) {
  auto& rows = *session->mutable_outcomes();
  auto row = std::ranges::find_if(rows, [&channel](const v1::Outcome& outcome) {
    return outcome.collector() == channel.collector &&
           (outcome.has_device() ? static_cast<int>(outcome.device()) : kHostDevice) == channel.device;
  });
  const bool is_new = row == rows.end();
  v1::Outcome& outcome = is_new ? *session->add_outcomes() : *row;
  const v1::Outcome::Result result = ResultOf(channel.state);
  if (is_new) {
    outcome.set_collector(channel.collector);
    if (channel.device != kHostDevice) outcome.set_device(static_cast<uint32_t>(channel.device));
    outcome.set_result(result);
  } else if (result == v1::Outcome::RESULT_FINISHED) {
    outcome.set_result(result);
  }
  return outcome;
}

// As the session itself counted: what limits removed later had been recorded.
void Count(const ManifestChannel& channel, auto* into) {
  into->set_records(into->records() + channel.records + channel.aged.records);
  for (const ManifestLoss& loss : channel.dropped) {
    if (!IsDropped(loss)) continue;
    into->set_dropped_records(into->dropped_records() + loss.records);
    into->set_dropped_bytes(into->dropped_bytes() + loss.bytes);
  }
}

void AddOutcome(const ManifestChannel& channel, v1::SessionStatus* session) {
  v1::Outcome& outcome = OutcomeOf(channel, session);
  if (outcome.detail().empty()) outcome.set_detail(channel.detail);
  if (channel.hz_effective > outcome.hz()) outcome.set_hz(channel.hz_effective);
  outcome.set_bytes(outcome.bytes() + channel.bytes + channel.aged.bytes);
  outcome.set_garbage_bytes(outcome.garbage_bytes() + channel.garbage_bytes);
  if (channel.thinned) outcome.set_thinned(true);
  if (channel.rebased) outcome.set_rebased(true);
  Count(channel, &outcome);
  Count(channel, session);
}

// Steps count as marks, and every session has them.
void AddMarks(const Manifest& manifest, v1::SessionStatus* session) {
  if (manifest.marks == 0 && manifest.dropped_marks == 0) return;
  const auto option = std::ranges::find(manifest.options, kMarksOption, &ManifestOption::key);
  if (option != manifest.options.end() && (option->value.empty() || option->value == "off")) return;
  v1::Outcome& outcome = *session->add_outcomes();
  outcome.set_collector(std::string(kMarksOption));
  outcome.set_result(v1::Outcome::RESULT_FINISHED);
  outcome.set_detail(std::string(kMarksDetail));
  outcome.set_records(manifest.marks);
  outcome.set_dropped_records(manifest.dropped_marks);
}

void AddStacks(const Manifest& manifest, v1::SessionStatus* session) {
  const auto channel = std::ranges::find(manifest.channels, kStacksCollector, &ManifestChannel::collector);
  if (channel == manifest.channels.end()) return;
  v1::Outcome& outcome = *session->add_outcomes();
  outcome.set_collector(std::string(kStacksOption));
  outcome.set_result(v1::Outcome::RESULT_FINISHED);
  outcome.set_detail(std::string(kStacksDetail));
  outcome.set_records(channel->records + channel->aged.records);
}

// What processes recorded: in the session once, and for each option that asks for it. Where none does, it was the
// default, task_time. AddMarks has the row of msproftx, unless all its marks came by the vendor's profiler.
void AddActivity(const Manifest& manifest, v1::SessionStatus* session) {
  std::map<ActivityFileId, const ManifestChannel*> channels;
  for (const ManifestChannel& channel : manifest.channels) {
    const auto file = std::ranges::find(ActivityFiles(), channel.collector, &ActivityFile::collector);
    if (file == ActivityFiles().end()) continue;
    channels.emplace(static_cast<ActivityFileId>(file - ActivityFiles().begin()), &channel);
    Count(channel, session);
  }
  if (channels.empty()) return;
  const bool has_marks = manifest.marks != 0 || manifest.dropped_marks != 0;
  const auto files_of = [has_marks](const ManifestOption& option) {
    if (option.key == kMarksOption && has_marks) return std::set<ActivityFileId>();
    return FilesOfKinds(CollectKindsOf(option.key, option.value));
  };
  const bool asked = std::ranges::any_of(manifest.options, [&files_of](const ManifestOption& option) {
    return !option.asked.empty() && !files_of(option).empty();
  });
  for (const ManifestOption& option : manifest.options) {
    if (asked ? option.asked.empty() : option.key != "task_time") continue;
    std::set<ActivityFileId> files = files_of(option);
    std::erase_if(files, [&channels](ActivityFileId file) { return !channels.contains(file); });
    if (files.empty()) continue;
    v1::Outcome& outcome = *session->add_outcomes();
    outcome.set_collector(option.key);
    outcome.set_result(v1::Outcome::RESULT_FINISHED);
    for (ActivityFileId file : files) {
      const ManifestChannel& channel = *channels.at(file);
      Count(channel, &outcome);
      outcome.set_bytes(outcome.bytes() + channel.bytes + channel.aged.bytes);
    }
  }
}

// What became of the options of the application, where the session lived to write it: a dump that was interrupted has
// what was recorded only.
void AddOptionOutcomes(const Manifest& manifest, v1::SessionStatus* session) {
  for (const ManifestOption& option : manifest.options) {
    if (option.result.empty()) continue;
    auto& rows = *session->mutable_outcomes();
    const auto row = std::ranges::find(rows, option.key, &v1::Outcome::collector);
    v1::Outcome& outcome = row == rows.end() ? *session->add_outcomes() : *row;
    outcome.set_collector(option.key);
    outcome.set_result(ResultOf(option.result));
    outcome.set_detail(option.detail);
    const bool served = outcome.result() == v1::Outcome::RESULT_FINISHED || outcome.result() == v1::Outcome::RESULT_PARTIAL;
    const bool leaves_files = option.key != kMarksOption && option.key != kStacksOption && !manifest.process_files.empty();
    if (served && leaves_files) AddFiles(manifest.process_files, &outcome);
  }
}

void AddDevices(const Manifest& manifest, v1::SessionStatus* session) {
  for (const ManifestDevice& device : manifest.devices) {
    session->add_devices(static_cast<uint32_t>(device.id));
    if (!device.use) continue;
    v1::DeviceStatistics& wire = *session->add_statistics();
    wire.set_device(static_cast<uint32_t>(device.id));
    if (device.use->energy_joules) wire.set_energy_joules(*device.use->energy_joules);
    if (device.use->peak_memory_bytes) wire.set_peak_memory_bytes(*device.use->peak_memory_bytes);
    if (device.use->mean_utilization_ratio) wire.set_mean_utilization_ratio(*device.use->mean_utilization_ratio);
    if (device.use->ecc_corrected) wire.set_ecc_corrected(*device.use->ecc_corrected);
    if (device.use->ecc_uncorrected) wire.set_ecc_uncorrected(*device.use->ecc_uncorrected);
  }
}

}  // namespace

void FillProcesses(const std::vector<ManifestProcess>& processes, v1::SessionStatus* session) {
  for (const ManifestProcess& process : processes) {
    v1::SessionProcess& wire = *session->add_processes();
    wire.set_pid(process.pid);
    if (process.rank) wire.set_rank(*process.rank);
    wire.set_attached(process.attached);
    if (process.provider.empty()) continue;
    v1::ProcessCollector& collector = *wire.mutable_collector();
    collector.set_provider(EnumOf<v1::SessionSpec::Provider>(process.provider));
    collector.set_state(EnumOf<v1::ProcessCollector::State>(process.collector_state));
    collector.set_detail(process.collector_detail);
    collector.set_version(process.collector_version);
  }
}

v1::Session::State StateOf(DumpState state) {
  return state == DumpState::kRunning ? v1::Session::STATE_INTERRUPTED : EnumOf<v1::Session::State>(ToString(state));
}

v1::Session SessionFromManifest(const Manifest& manifest, const std::string& path, uint64_t bytes) {
  v1::Session session;
  session.set_session_id(manifest.session_id);
  session.mutable_owner()->set_uid(manifest.uid);
  session.mutable_owner()->set_pid(manifest.pid);
  v1::SessionSpec& spec = *session.mutable_spec();
  spec.mutable_target()->set_job_id(manifest.job_id);
  if (manifest.rank) spec.mutable_target()->set_rank(*manifest.rank);
  spec.set_label(manifest.label);
  spec.mutable_metadata()->insert(manifest.metadata.begin(), manifest.metadata.end());
  if (manifest.start_step) spec.mutable_schedule()->set_start_step(*manifest.start_step);
  if (manifest.steps != 0) spec.mutable_schedule()->set_steps(manifest.steps);
  v1::SessionStatus& status = *session.mutable_status();
  status.set_state(StateOf(manifest.state));
  status.set_reason(manifest.state == DumpState::kRunning ? "profd ended before the session did"
                                                          : manifest.reason);
  status.set_started_ns(manifest.start_wall_ns);
  if (manifest.end_wall_ns != 0) status.set_ended_ns(manifest.end_wall_ns);
  status.set_steps_done(manifest.steps_done);
  status.set_marks(manifest.marks);
  status.set_dropped_marks(manifest.dropped_marks);
  if (manifest.expected_ranks > 0) status.set_expected_ranks(manifest.expected_ranks);
  FillProcesses(manifest.processes, &status);
  status.set_dump_path(path);
  status.set_dump_bytes(bytes);
  AddDevices(manifest, &status);
  // As Session::Fill has them.
  for (const std::string& warning : std::set<std::string>(manifest.warnings.begin(), manifest.warnings.end())) status.add_warnings(warning);
  for (const ManifestOption& option : manifest.options) {
    v1::EffectiveOption& wire = *status.add_effective_options();
    wire.set_key(option.key);
    wire.set_value(option.value);
    wire.set_asked(option.asked);
    wire.set_note(option.note);
  }
  // Marks and steps have channels there too, and are counted as marks.
  for (const ManifestChannel& channel : manifest.channels) {
    if (FindCollector(channel.collector) != nullptr) AddOutcome(channel, &status);
  }
  for (const ManifestChannel& channel : manifest.channels) {
    status.set_removed_records(status.removed_records() + channel.aged.records);
  }
  // The manifest of a dump that was interrupted is a little older than its slices.
  status.set_removed_for_space(std::min(manifest.aged_for_space, status.removed_records()));
  AddActivity(manifest, &status);
  AddMarks(manifest, &status);
  AddStacks(manifest, &status);
  AddOptionOutcomes(manifest, &status);
  v1::Segment only = SegmentOf(status);
  only.set_number(static_cast<uint32_t>(std::max(1, manifest.segment)));
  *status.add_segments() = std::move(only);
  return session;
}

}  // namespace profd
