// A session as its dump's control files and manifest have it, and its clients.
#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <cmath>
#include <set>
#include <string>

#include "base/text.h"
#include "collectors/channel_options.h"
#include "daemon/session/local_cpus.h"
#include "daemon/session/session.h"
#include "profd/v1/profd.pb.h"
#include "proto/options/options_message.h"

namespace profd {
namespace {

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
    if (options.asked.contains(key) || std::ranges::count(plan.awaited_options, key) > 0) options.application[key] = value;
  }
  return options;
}

std::map<int, std::optional<DumpClocks>> Session::ClocksForDump() const {
  std::map<int, std::optional<DumpClocks>> result;
  for (int device : plan_.devices) {
    const ClockPair* clock = clocks_->Of(device);
    result[device] = clock == nullptr ? std::nullopt : std::optional(ForDump(*clock));
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
  manifest.segment = static_cast<int>(past_.NextNumber());
  if (!past_.all().empty()) manifest.continues = BaseName(past_.all().back().dump_path());
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
  options.session.start_wall_ns = clocks_->start_wall_ns();
  options.session.start_raw_ns = clocks_->start_raw_ns();
  options.node = deps_.node;
  for (int device : plan_.devices) {
    SessionDumpOptions::Device facts;
    facts.facts = deps_.devices.FactsOf(device);
    options.devices.push_back(std::move(facts));
  }
  options.clocks_later = true;
  options.host_clocks = ForDump(clocks_->host());
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
      const bool used = std::ranges::find(plan_.devices, device.id) != plan_.devices.end();
      if (used) files += entry.plan(device, planned.channel).size();
    }
  }
  return files;
}

void Session::NoteOutcomes() {
  if (output_.dump() != nullptr) output_.dump()->EditManifest(collectors_.Outcomes());
}

// Steps are written in the device's counts. Of a device without clocks no step is: it may answer later, and the start of the
// dump is counted back from then.
SessionMarks::Device Session::MarksOf(const DeviceInfo& info, const ClockPair& clock) {
  return {info.id, static_cast<uint32_t>(info.chip_id), info.counter_hz, clock.host_ns, clock.device_count};
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
  const int64_t requested_ns = clocks_->requested_wall_ns();
  const int64_t started_ns = went_on           ? continues_->started_wall_ns
                             : requested_ns != 0 ? requested_ns
                                               : clocks_->start_wall_ns();
  if (started_ns != 0 && state_ != v1::Session::STATE_SCHEDULED) status.set_started_ns(started_ns);
  if (went_on && continues_->since_wall_ns != 0) {
    status.set_since_ns(continues_->since_wall_ns);
  } else if (requested_ns != 0) {
    status.set_since_ns(clocks_->start_wall_ns());
  }
  if (clocks_->end_wall_ns() != 0) status.set_ended_ns(clocks_->end_wall_ns());
  output_.Fill(&status);
  if (const int64_t left_ms = terms_.left_ms(); left_ms > 0 && !finished()) {
    status.set_lease_left_ms(static_cast<uint64_t>(left_ms));
  }
  processes_->Fill(&status);
  statistics_.Fill(&status);
  for (const std::string& warning : std::set<std::string>(warnings_.begin(), warnings_.end())) status.add_warnings(warning);
  collectors_.Fill(finished(), &status);
  for (const options::Effective& effective : plan_.options) ToWire(effective, status.add_effective_options());
  processes_->FillOptions(&status);
  const bool has_dump = !output_.path().empty();
  if (has_dump && discards_dump()) ForgetRecorded(&status);
  v1::Segment now = SegmentOf(status);
  now.set_started_ns(clocks_->start_wall_ns());
  now.set_number(past_.NextNumber());
  past_.Fill(&status);
  if (has_dump && !discards_dump()) *status.add_segments() = std::move(now);
}

// Of the present segment.
void Session::ForgetRecorded(v1::SessionStatus* out) const {
  out->set_dump_path(past_.all().empty() ? "" : past_.all().back().dump_path());
  out->clear_dump_bytes();
  out->clear_records();
  out->clear_removed_records();
  out->clear_removed_for_space();
  for (v1::Outcome& outcome : *out->mutable_outcomes()) {
    outcome.clear_records();
    outcome.clear_bytes();
  }
}

void Session::TakeStatistics() {
  if (plan_.devices.empty()) return;
  statistics_.Take(ReadDevices(deps_.store, deps_.host.devices, deps_.host.clock.MonotonicRawNs()),
                   plan_.devices);
}

}  // namespace profd
