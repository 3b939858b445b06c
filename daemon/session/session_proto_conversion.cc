// A session as its dump's control files and manifest have it, and its clients.
#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <cmath>
#include <set>
#include <string>

#include "base/log.h"
#include "base/text.h"
#include "collectors/channel_options.h"
#include "daemon/session/local_cpus.h"
#include "daemon/session/session.h"
#include "daemon/session/session_poll_sink.h"
#include "profd/v1/profd.pb.h"
#include "proto/enum_word/enum_word.h"

namespace profd {
namespace {

// As the contract's words; a collector that has not answered has failed.
std::string ManifestState(v1::Outcome::Result state) {
  return EnumWord(state == v1::Outcome::RESULT_UNSPECIFIED ? v1::Outcome::RESULT_FAILED : state);
}

// Of zstd: a profile's records shrink well at the least effort.
constexpr int kCompressLevel = 1;

// What of a collector hangs on the option, at which rate; 0 = nothing of it runs.
int RateBy(const PlannedCollector& planned, const CollectorSpec& spec, std::string_view key) {
  const CollectorOption* use = FindOption(spec, key);
  if (use == nullptr) return 0;
  const bool part = use->use == OptionUse::kPart;
  return static_cast<int>(std::lround(part ? ValueOf(spec, *use, planned.channel) : planned.hz));
}

void NoteChannel(const PlannedCollector& planned, const CollectorSpec& spec,
                 SampleOptions* options) {
  auto note = [&](std::string_view key, int* rate) {
    *rate = std::max(*rate, RateBy(planned, spec, key));
  };
  note("sys_hardware_mem_freq", &options->hardware_mem_hz);
  note("sys_io_sampling_freq", &options->io_hz);
  note("sys_interconnection_freq", &options->interconnect_hz);
  note("dvpp_freq", &options->dvpp_hz);
}

void NoteHost(const PlannedCollector& planned, const CollectorSpec& spec, SampleOptions* options) {
  const CollectorOption* use = FindOption(spec, "host_sys");
  if (use == nullptr) return;
  const bool cpu = use->item == "cpu";
  const ProcessScope& scope = planned.poll.processes;
  (cpu ? options->host_sys_cpu : options->host_sys_mem) =
      !scope.pids.empty() || !scope.job_id.empty();
  (cpu ? options->host_usage_cpu : options->host_usage_mem) = scope.all || planned.poll.system;
  options->host_usage_hz = std::max(options->host_usage_hz, RateBy(planned, spec, use->key));
  if (!scope.pids.empty()) options->host_sys_pid = scope.pids.front();
}

}  // namespace

SampleOptions SampleFactsOf(const SessionPlan& plan, std::span<const DeviceInfo> known) {
  SampleOptions options;
  std::vector<const DeviceInfo*> devices;
  for (const DeviceInfo& device : known) {
    if (std::ranges::count(plan.devices, device.id) > 0) devices.push_back(&device);
  }
  options.storage_limit_mb = plan.storage_limited ? plan.max_bytes >> 20 : 0;
  for (const PlannedCollector& planned : plan.collectors) {
    const CollectorEntry& entry = Collectors()[planned.index];
    const CollectorSpec& spec = *entry.spec;
    if (entry.sample != nullptr) options.collectors.merge(entry.sample(planned.channel, devices));
    if (spec.source == CollectorSource::kChannel) {
      NoteChannel(planned, spec, &options);
    } else {
      NoteHost(planned, spec, &options);
    }
  }
  for (const options::Effective& effective : plan.options) {
    if (effective.was_asked) options.asked[effective.key] = effective.asked;
  }
  for (const auto& [key, value] : plan.application_options) {
    // What was not requested and is not reported is not claimed in a file of the vendor's.
    if (options.asked.contains(key)) options.application[key] = value;
  }
  return options;
}

std::map<int, std::optional<DumpClocks>> Session::ClocksForDump() const {
  std::map<int, std::optional<DumpClocks>> result;
  for (int device : plan_.devices) {
    auto clock = clocks_.find(device);
    result[device] = clock == clocks_.end() ? std::nullopt
                                            : std::optional(ForDump(clock->second));
  }
  return result;
}

// What the dump has of the request from its first moment on.
void Session::DescribeManifest(Manifest* out) const {
  Manifest& manifest = *out;
  manifest = deps_.manifest_base;
  manifest.session_id = id_;
  manifest.uid = owner_.uid;
  manifest.gid = owner_.gid;
  manifest.pid = owner_.pid;
  const v1::SessionSpec::Target& target = spec_.target();
  manifest.job_id = target.job_id();
  if (target.has_rank()) manifest.rank = target.rank();
  manifest.label = spec_.label();
  manifest.metadata.insert(spec_.metadata().begin(), spec_.metadata().end());
  manifest.start_step = StartStepOf(spec_);
  manifest.steps = spec_.schedule().steps();
  manifest.warnings = plan_.warnings;
  if (!past_.empty()) {
    manifest.segment = static_cast<int>(past_.size()) + 1;
    manifest.continues = BaseName(past_.back().dump_path());
  }
  processes_->Describe(&manifest);
  for (const PlannedCollector& planned : plan_.collectors) {
    std::string name(Collectors()[planned.index].spec->name);
    manifest.effective[name] = planned.hz > 0 ? fmt::format("{} Hz", planned.hz) : "on";
    if (planned.named) manifest.requested[name] = manifest.effective[name];
  }
  for (const options::Effective& one : plan_.options) {
    manifest.options.push_back({one.key, one.value, one.asked, one.note});
  }
  for (int id : plan_.devices) {
    if (const DeviceInfo* device = deps_.host.FindDevice(id)) manifest.devices.push_back(Described(*device));
  }
}

ManifestDevice Session::Described(const DeviceInfo& device) const {
  return {device.id,   device.physical_id, device.chip_name, device.chip_id,
          device.uuid, device.counter_hz,  device.aicore_mhz,  0,
          LocalCpusOf(deps_.host, deps_.store, device.id)};
}

SampleOptions Session::SampleFacts() const {
  SampleOptions options = SampleFactsOf(plan_, deps_.host.devices);
  options.duration_s = LeftMs() / 1000;
  return options;
}

SessionDumpOptions Session::DumpOptions() const {
  SessionDumpOptions options;
  options.session.session_id = id_;
  options.session.pid = plan_.pids.empty() ? ::getpid() : plan_.pids.front();
  options.session.job_id = spec_.target().job_id();
  options.session.rank = spec_.target().has_rank() ? spec_.target().rank() : -1;
  options.session.devices = plan_.devices;
  options.session.options = SampleFacts();
  options.session.start_wall_ns = start_wall_ns_;
  options.session.start_raw_ns = start_raw_ns_;
  options.node = deps_.node;
  for (int device : plan_.devices) {
    SessionDumpOptions::Device facts;
    facts.facts = deps_.devices.FactsOf(device);
    options.devices.push_back(std::move(facts));
  }
  options.clocks_later = true;
  options.host_clocks = ForDump(host_clock_);
  options.owner = {owner_.uid, owner_.gid};
  options.max_bytes = plan_.max_bytes;
  options.compress = spec_.compress() ? kCompressLevel : 0;
  options.age_at_limit = plan_.limit_ages;
  if (plan_.storage_limited) options.place_bytes = PlaceLimit(plan_.max_bytes);
  DescribeManifest(&options.manifest);
  return options;
}

// Data files that will be open at once.
size_t Session::ExpectedFiles() const {
  constexpr size_t kPerPoller = 4;  // what it reads of the system; files of processes vary
  size_t files = 0;
  for (const PlannedCollector& planned : plan_.collectors) {
    const CollectorEntry& entry = Collectors()[planned.index];
    if (entry.spec->source != CollectorSource::kChannel) {
      files += kPerPoller;
      continue;
    }
    for (const DeviceInfo& device : deps_.host.devices) {
      const bool used = std::find(plan_.devices.begin(), plan_.devices.end(), device.id) != plan_.devices.end();
      if (used) files += entry.plan(device, planned.channel).size();
    }
  }
  return files;
}

void Session::NoteOutcomes() {
  if (dump_ == nullptr) return;
  std::vector<Row> rows = rows_;
  for (Row& row : rows) row.answer = AnswerOf(row);
  dump_->EditManifest([self = shared_from_this(), rows = std::move(rows)](Manifest& manifest) {
    self->WriteOutcomes(manifest, rows);
  });
}

// Runs on the writer thread with a copy of the rows: only what never changes and their answers.
void Session::WriteOutcomes(Manifest& manifest, const std::vector<Row>& rows) const {
  for (const Row& row : rows) {
    auto note = [&](uint32_t channel_id, std::string_view file) {
      std::string_view name = Collectors()[row.collector].spec->name;
      auto entry = std::find_if(manifest.channels.begin(), manifest.channels.end(),
                                [&](const ManifestChannel& channel) {
                                  return channel.collector == name &&
                                         channel.device == row.device &&
                                         channel.channel == channel_id;
                                });
      if (entry == manifest.channels.end()) {
        manifest.channels.emplace_back();
        entry = manifest.channels.end() - 1;
        entry->collector = name;
        entry->device = row.device;
        entry->channel = channel_id;
        entry->file = file;
      }
      entry->state = ManifestState(row.answer.state);
      entry->detail = row.answer.detail;
      entry->garbage_bytes = row.answer.garbage_bytes;
      auto own = row.answer.channels.find(channel_id);
      if (own == row.answer.channels.end()) return;
      bool finished = row.answer.state == v1::Outcome::RESULT_FINISHED &&
                      own->second.state == v1::Outcome::RESULT_RUNNING;
      entry->state = ManifestState(finished ? v1::Outcome::RESULT_FINISHED : own->second.state);
      entry->detail = own->second.detail;
      entry->garbage_bytes = own->second.garbage_bytes;
    };
    for (const DumpFeed* feed : row.feeds) {
      const FeedOptions& options = feed->options();
      std::string_view file = options.file;
      if (file.empty() && options.format != nullptr) file = options.format->file;
      note(options.channel, file);
    }
    if (row.feeds.empty()) note(0, {});
  }
}

void Session::Fill(v1::Session* out) const {
  DCHECK_ON(deps_.control);
  out->set_session_id(id_);
  out->mutable_owner()->set_uid(owner_.uid);
  out->mutable_owner()->set_pid(owner_.pid);
  *out->mutable_spec() = spec_;
  v1::SessionStatus& status = *out->mutable_status();
  status.set_state(state_);
  status.set_reason(reason_);
  for (int device : plan_.devices) status.add_devices(static_cast<uint32_t>(device));
  const bool went_on = continues_ && continues_->started_wall_ns != 0;
  const int64_t started_ns = went_on                  ? continues_->started_wall_ns
                             : ordered_wall_ns_ != 0 ? ordered_wall_ns_
                                                     : start_wall_ns_;
  if (started_ns != 0 && state_ != v1::Session::STATE_SCHEDULED) status.set_started_ns(started_ns);
  if (ordered_wall_ns_ != 0) status.set_since_ns(start_wall_ns_);
  if (end_wall_ns_ != 0) status.set_ended_ns(end_wall_ns_);
  status.set_dump_path(dump_path_);
  status.set_dump_bytes(written_bytes());
  if (const int64_t left_ms = lease_.left_ms(deps_.host.clock.SteadyNs()); left_ms > 0 && !finished()) {
    status.set_lease_left_ms(static_cast<uint64_t>(left_ms));
  }
  processes_->Fill(&status);
  statistics_.Fill(&status);
  FillRows(&status);
  for (const options::Effective& effective : plan_.options) ToWire(effective, status.add_effective_options());
  processes_->FillOptions(&status);
  if (discards_dump() && !dump_path_.empty()) ForgetRecorded(&status);
  FillSegments(&status);
}

// Of the present segment.
void Session::ForgetRecorded(v1::SessionStatus* out) const {
  out->set_dump_path(past_.empty() ? "" : past_.back().dump_path());
  out->clear_dump_bytes();
  out->clear_records();
  out->clear_removed_records();
  out->clear_removed_for_space();
  for (v1::Outcome& outcome : *out->mutable_outcomes()) {
    outcome.clear_records();
    outcome.clear_bytes();
  }
}

void Session::FillRows(v1::SessionStatus* out) const {
  const WriterSession::Removed removed = dump_ != nullptr ? dump_->removed() : WriterSession::Removed();
  out->set_removed_records(removed.records);
  out->set_removed_for_space(removed.for_space);
  std::set<std::string> warnings(warnings_.begin(), warnings_.end());
  for (const std::string& warning : warnings) out->add_warnings(warning);
  for (const Row& row : rows_) {
    v1::Outcome& outcome = *out->add_outcomes();
    ClaimAnswer answer = AnswerOf(row);
    bool over = finished() && answer.state == v1::Outcome::RESULT_RUNNING;
    outcome.set_collector(std::string(Collectors()[row.collector].spec->name));
    if (row.device != kHostDevice) outcome.set_device(static_cast<uint32_t>(row.device));
    outcome.set_result(over ? v1::Outcome::RESULT_FINISHED : answer.state);
    outcome.set_detail(answer.detail);
    outcome.set_holder(answer.holder);
    if (answer.hz > 0) outcome.set_hz(answer.hz);
    outcome.set_garbage_bytes(answer.garbage_bytes);
    uint64_t records = 0, bytes = 0, dropped_records = 0, dropped_bytes = 0;
    for (const DumpFeed* feed : row.feeds) {
      const FeedCounters& counters = feed->counters();
      records += counters.records.load(std::memory_order_relaxed);
      bytes += counters.bytes.load(std::memory_order_relaxed);
      const LossLedger::Amount lost = feed->losses().Total();
      dropped_records += lost.records;
      dropped_bytes += lost.bytes;
      if (feed->thinned()) outcome.set_thinned(true);
      if (feed->rebased()) outcome.set_rebased(true);
    }
    if (dump_ == nullptr && row.sink != nullptr) records = row.sink->readings();
    outcome.set_records(records);
    outcome.set_bytes(bytes);
    outcome.set_dropped_records(dropped_records);
    outcome.set_dropped_bytes(dropped_bytes);
    out->set_records(out->records() + records);
    out->set_dropped_records(out->dropped_records() + dropped_records);
    out->set_dropped_bytes(out->dropped_bytes() + dropped_bytes);
  }
}

void Session::TakeStatistics() {
  if (plan_.devices.empty()) return;
  statistics_.Take(ReadDevices(deps_.store, deps_.host.devices, deps_.host.clock.MonotonicRawNs()),
                   plan_.devices);
}

// What a limit removed that the user did not ask for.
void Session::LogRemoved(bool last) {
  if (dump_ == nullptr) return;
  const WriterSession::Removed removed = dump_->removed();
  const uint64_t unasked = plan_.storage_limited ? removed.for_space : removed.records;
  const uint64_t more = unasked - removed_logged_;
  uint64_t left_out = 0;
  if (more == 0 || (!removals_logged_.Allow(0, deps_.host.clock.SteadyNs(), &left_out) && !last)) return;
  removed_logged_ = unasked;
  log::Warning("the oldest records of a dump were removed for lack of space",
               {{"session", id_}, {"records", more}, {"total", unasked}, {"for_min_free_mb", removed.for_space}});
}

}  // namespace profd
