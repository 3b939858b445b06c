#include "dump/manifest.h"

#include <fmt/format.h>

#include <algorithm>

#include "dump/data_name.h"
#include "dump/json_depth.h"
#include "dump/json_fields.h"

namespace profd {
namespace {

constexpr JsonWritten kAlways = JsonWritten::kAlways;
constexpr JsonWritten kWhenSet = JsonWritten::kWhenSet;
constexpr std::string_view kStateNames[] = {"running", "done", "failed", "interrupted"};

}  // namespace

std::string_view ToString(DumpState state) { return kStateNames[static_cast<size_t>(state)]; }

// For the tables below.
static bool FromString(std::string_view text, DumpState* state) {
  const auto* const found = std::ranges::find(kStateNames, text);
  if (found == std::end(kStateNames)) return false;
  *state = static_cast<DumpState>(found - kStateNames);
  return true;
}

static bool FromString(std::string_view text, LossReason* reason) {
  *reason = LossReasonOf(text);
  return true;
}

static void AfterReading(ManifestFile* file) { file->path = TodaysPath(std::move(file->path)); }

static void AfterReading(ManifestChannel* channel) {
  if (channel->gaps.size() > kMaxManifestGaps) channel->gaps.resize(kMaxManifestGaps);
}

// The keys of the file. docs/dumps.md and docs/manifest.schema.json explain them.
template <>
inline constexpr auto kJsonFields<DumpClocks> = std::tuple(
    JsonField("host_ns", &DumpClocks::host_ns), JsonField("host_count", &DumpClocks::host_count), JsonField("device_ns", &DumpClocks::device_ns),
    JsonField("device_count", &DumpClocks::device_count), JsonField("uncertainty_ns", &DumpClocks::uncertainty_ns));

template <>
inline constexpr auto kJsonFields<ManifestClock> = std::tuple(
    JsonField("device", &ManifestClock::device), JsonField("when", &ManifestClock::when), JsonInline(&ManifestClock::clocks));

template <>
inline constexpr auto kJsonFields<ManifestAged> = std::tuple(
    JsonField("slices", &ManifestAged::slices), JsonField("records", &ManifestAged::records), JsonField("bytes", &ManifestAged::bytes),
    JsonField("from_ns", &ManifestAged::from_ns), JsonField("to_ns", &ManifestAged::to_ns));

template <>
inline constexpr auto kJsonFields<ManifestLoss> = std::tuple(
    JsonField("reason", &ManifestLoss::reason), JsonField("records", &ManifestLoss::records), JsonField("bytes", &ManifestLoss::bytes),
    JsonField("from_ns", &ManifestLoss::from_ns), JsonField("to_ns", &ManifestLoss::to_ns));

template <>
inline constexpr auto kJsonFields<ManifestGap> = std::tuple(
    JsonField("from_ns", &ManifestGap::from_ns), JsonField("host_ns", &ManifestGap::host_ns), JsonField("lost_records", &ManifestGap::lost_records),
    JsonField("reason", &ManifestGap::reason));

template <>
inline constexpr auto kJsonFields<ManifestChannel> = std::tuple(
    JsonField("collector", &ManifestChannel::collector), JsonField("device", &ManifestChannel::device), JsonField("channel", &ManifestChannel::channel),
    JsonField("file", &ManifestChannel::file), JsonField("state", &ManifestChannel::state), JsonField("detail", &ManifestChannel::detail),
    JsonField("hz_asked", &ManifestChannel::hz_asked), JsonField("hz_effective", &ManifestChannel::hz_effective),
    JsonField("channel_hz", &ManifestChannel::channel_hz), JsonField("records", &ManifestChannel::records),
    JsonField("bytes", &ManifestChannel::bytes), JsonField("aged", &ManifestChannel::aged), JsonField("dropped", &ManifestChannel::dropped),
    JsonField("garbage_bytes", &ManifestChannel::garbage_bytes), JsonField("thinned", &ManifestChannel::thinned),
    JsonField("thinned_records", &ManifestChannel::thinned_records), JsonField("readings", &ManifestChannel::readings),
    JsonField("past_hz", &ManifestChannel::past_hz, kWhenSet), JsonField("past_until_ns", &ManifestChannel::past_until_ns, kWhenSet),
    JsonField("rebased", &ManifestChannel::rebased), JsonField("rebase_us", &ManifestChannel::rebase_us),
    JsonField("gap_count", &ManifestChannel::gap_count), JsonField("gaps", &ManifestChannel::gaps));

template <>
inline constexpr auto kJsonFields<ManifestOption> = std::tuple(
    JsonField("key", &ManifestOption::key), JsonField("value", &ManifestOption::value), JsonField("asked", &ManifestOption::asked),
    JsonField("note", &ManifestOption::note), JsonField("result", &ManifestOption::result, kWhenSet),
    JsonField("detail", &ManifestOption::detail, kWhenSet));

template <>
inline constexpr auto kJsonFields<ManifestProcess> = std::tuple(
    JsonField("pid", &ManifestProcess::pid), JsonField("rank", &ManifestProcess::rank), JsonField("attached", &ManifestProcess::attached),
    JsonField("devices", &ManifestProcess::devices), JsonField("command", &ManifestProcess::command), JsonField("cpus", &ManifestProcess::cpus),
    JsonField("joined_raw_ns", &ManifestProcess::joined_raw_ns, kWhenSet), JsonField("launch_cpus", &ManifestProcess::launch_cpus, kWhenSet),
    JsonGroup("collector", kWhenSet, JsonField("provider", &ManifestProcess::provider, kWhenSet), JsonField("state", &ManifestProcess::collector_state),
              JsonField("detail", &ManifestProcess::collector_detail), JsonField("version", &ManifestProcess::collector_version),
              JsonField("cpu_ns", &ManifestProcess::collector_cpu_ns, kWhenSet)));

template <>
inline constexpr auto kJsonFields<ManifestUse> = std::tuple(
    JsonField("energy_joules", &ManifestUse::energy_joules, kWhenSet), JsonField("peak_memory_bytes", &ManifestUse::peak_memory_bytes, kWhenSet),
    JsonField("mean_utilization_ratio", &ManifestUse::mean_utilization_ratio, kWhenSet),
    JsonField("ecc_corrected", &ManifestUse::ecc_corrected, kWhenSet), JsonField("ecc_uncorrected", &ManifestUse::ecc_uncorrected, kWhenSet));

template <>
inline constexpr auto kJsonFields<ManifestDevice> = std::tuple(
    JsonField("id", &ManifestDevice::id), JsonField("physical_id", &ManifestDevice::physical_id), JsonField("chip", &ManifestDevice::chip),
    JsonField("chip_id", &ManifestDevice::chip_id), JsonField("uuid", &ManifestDevice::uuid), JsonField("counter_hz", &ManifestDevice::counter_hz),
    JsonField("aicore_mhz", &ManifestDevice::aicore_mhz), JsonField("local_cpus", &ManifestDevice::local_cpus),
    JsonField("joined_raw_ns", &ManifestDevice::joined_raw_ns, kWhenSet), JsonField("use", &ManifestDevice::use, kWhenSet));

// Only what is known: there may be tens of thousands.
template <>
inline constexpr auto kJsonFields<ManifestFile> = std::tuple(
    JsonField("path", &ManifestFile::path), JsonField("bytes", &ManifestFile::bytes), JsonField("records", &ManifestFile::records, kWhenSet),
    JsonHexField("crc32c", &ManifestFile::crc32c), JsonField("state", &ManifestFile::state, kWhenSet),
    JsonField("raw_bytes", &ManifestFile::raw_bytes, kWhenSet), JsonHexField("raw_crc32c", &ManifestFile::raw_crc32c),
    JsonField("first_ns", &ManifestFile::first_ns, kWhenSet), JsonField("last_ns", &ManifestFile::last_ns, kWhenSet),
    JsonField("pid", &ManifestFile::pid, kWhenSet));

template <>
inline constexpr auto kJsonFields<ManifestProcessFiles::Example> = std::tuple(
    JsonField("path", &ManifestProcessFiles::Example::path), JsonField("why", &ManifestProcessFiles::Example::why));

template <>
inline constexpr auto kJsonFields<ManifestProcessFiles> = std::tuple(
    JsonField("pid", &ManifestProcessFiles::pid), JsonField("rank", &ManifestProcessFiles::rank), JsonField("layout", &ManifestProcessFiles::layout),
    JsonField("directory", &ManifestProcessFiles::directory), JsonField("state", &ManifestProcessFiles::state),
    JsonField("files", &ManifestProcessFiles::files), JsonField("bytes", &ManifestProcessFiles::bytes),
    JsonField("refused", &ManifestProcessFiles::refused), JsonField("refused_bytes", &ManifestProcessFiles::refused_bytes),
    JsonField("examples", &ManifestProcessFiles::examples), JsonField("problem", &ManifestProcessFiles::problem));

template <>
inline constexpr auto kJsonFields<Manifest> = std::tuple(
    JsonField("profd_manifest", &Manifest::version), JsonField("state", &Manifest::state), JsonField("reason", &Manifest::reason),
    JsonField("segment", &Manifest::segment), JsonField("continues", &Manifest::continues), JsonField("limit_bytes", &Manifest::limit_bytes),
    JsonField("limit_action", &Manifest::limit_action), JsonField("aged_for_space", &Manifest::aged_for_space, kWhenSet),
    JsonGroup("versions", kAlways, JsonField("profd", &Manifest::profd_version), JsonField("build", &Manifest::build),
              JsonField("hal_api", &Manifest::hal_api_version), JsonField("driver", &Manifest::driver_version),
              JsonField("dcmi", &Manifest::dcmi_version)),
    JsonGroup("session", kAlways, JsonField("id", &Manifest::session_id), JsonField("uid", &Manifest::uid), JsonField("gid", &Manifest::gid),
              JsonField("pid", &Manifest::pid), JsonField("job_id", &Manifest::job_id), JsonField("rank", &Manifest::rank),
              JsonField("label", &Manifest::label), JsonField("requested", &Manifest::requested), JsonField("effective", &Manifest::effective),
              JsonField("options", &Manifest::options), JsonField("metadata", &Manifest::metadata), JsonField("processes", &Manifest::processes),
              JsonField("expected_ranks", &Manifest::expected_ranks, kWhenSet),
              JsonField("start_step", &Manifest::start_step), JsonField("steps", &Manifest::steps), JsonField("steps_done", &Manifest::steps_done),
              JsonField("marks", &Manifest::marks), JsonField("dropped_marks", &Manifest::dropped_marks),
              JsonField("start_wall_ns", &Manifest::start_wall_ns), JsonField("start_raw_ns", &Manifest::start_raw_ns),
              JsonField("end_wall_ns", &Manifest::end_wall_ns), JsonField("end_raw_ns", &Manifest::end_raw_ns),
              JsonField("stop_raw_ns", &Manifest::stop_raw_ns)),
    JsonGroup("node", kAlways, JsonField("hostname", &Manifest::hostname), JsonField("os", &Manifest::os), JsonField("machine", &Manifest::machine),
              JsonField("host_counter_hz", &Manifest::host_counter_hz), JsonField("devices", &Manifest::devices)),
    JsonField("channels", &Manifest::channels), JsonField("clocks", &Manifest::clocks), JsonField("warnings", &Manifest::warnings),
    JsonField("process_files", &Manifest::process_files, kWhenSet), JsonField("data_bytes", &Manifest::data_bytes),
    JsonField("files", &Manifest::files));

void Manifest::AddWarning(std::string text) {
  if (std::ranges::find(warnings, text) == warnings.end()) warnings.push_back(std::move(text));
}

ManifestChannel* Manifest::FindChannel(int device, uint32_t channel, std::string_view collector) {
  for (ManifestChannel& one : channels) {
    const bool same = one.device == device && one.channel == channel;
    if (same && (channel != 0 || one.collector == collector)) return &one;
  }
  return nullptr;
}

void ManifestChannel::AddGap(ManifestGap gap) {
  ++gap_count;
  if (gaps.size() < kMaxManifestGaps) gaps.push_back(gap);
}

void ManifestChannel::AddLoss(LossReason reason, uint64_t lost_records, uint64_t lost_bytes,
                              int64_t host_ns) {
  auto loss = std::ranges::find(dropped, reason, &ManifestLoss::reason);
  if (loss == dropped.end()) {
    loss = dropped.insert(dropped.end(), {reason, 0, 0, host_ns, host_ns});
  }
  loss->records += lost_records;
  loss->bytes += lost_bytes;
  if (host_ns == 0) return;
  if (loss->from_ns == 0 || host_ns < loss->from_ns) loss->from_ns = host_ns;
  loss->to_ns = std::max(loss->to_ns, host_ns);
}

void ManifestChannel::AddAged(uint64_t aged_records, uint64_t aged_bytes, int64_t from_ns,
                              int64_t to_ns) {
  ++aged.slices;
  aged.records += aged_records;
  aged.bytes += aged_bytes;
  if (from_ns != 0 && (aged.from_ns == 0 || from_ns < aged.from_ns)) aged.from_ns = from_ns;
  aged.to_ns = std::max(aged.to_ns, to_ns);
  AddLoss(LossReason::kAged, aged_records, aged_bytes, from_ns);
  AddLoss(LossReason::kAged, 0, 0, to_ns);
  // The oldest goes first, so what is gone is one piece.
  auto gap = std::ranges::find(gaps, LossReason::kAged, &ManifestGap::reason);
  if (gap == gaps.end()) {
    ++gap_count;
    if (gaps.size() >= kMaxManifestGaps) gaps.pop_back();
    gap = gaps.insert(gaps.begin(), {0, 0, LossReason::kAged, 0});
  }
  gap->lost_records = aged.records;
  gap->from_ns = aged.from_ns;
  gap->host_ns = aged.to_ns;
}

std::string UnknownClocksText(int device) {
  return fmt::format("the clocks of device {} could not be read; its timestamps are off by an unknown amount", device);
}

std::string UnknownClockText(int device) {
  return fmt::format("the driver has no clock (MONOTONIC_RAW) of device {}; PCIe, HCCS, network and DVPP records, which are timed by "
                     "it, are off by an unknown amount",
                     device);
}

std::string UnknownCounterText(int device) {
  return fmt::format("the driver has no counter (SYS_COUNT) of device {}; AI Core frequency, QoS, SoC and task records, which are "
                     "timed by it, are off by an unknown amount",
                     device);
}

bool CountClocksBack(int device, Manifest* manifest) {
  const ManifestClock* host = nullptr;
  const ManifestClock* first = nullptr;
  for (const ManifestClock& one : manifest->clocks) {
    if (one.device == device && one.when == "start") return false;
    if (one.device == -1 && one.when == "start") host = &one;
    if (one.device == device && (first == nullptr || one.clocks.host_ns < first->clocks.host_ns)) first = &one;
  }
  const auto known = std::ranges::find(manifest->devices, device, &ManifestDevice::id);
  if (host == nullptr || first == nullptr || known == manifest->devices.end() || known->counter_hz <= 0) return false;
  DumpClocks start = first->clocks;
  const int64_t back_ns = start.host_ns - host->clocks.host_ns;
  const bool counts = start.device_count != 0;
  const auto cycles = static_cast<uint64_t>(counts ? std::max(0.0, static_cast<double>(back_ns) * known->counter_hz / 1e9) : 0);
  if (back_ns < 0 || start.device_ns < back_ns || start.device_count < cycles) return false;
  start.host_ns = host->clocks.host_ns;
  start.host_count = host->clocks.host_count;
  start.device_ns -= back_ns;
  start.device_count -= cycles;
  manifest->clocks.push_back({device, "start", start});
  std::erase(manifest->warnings, UnknownClocksText(device));
  manifest->warnings.push_back(fmt::format("the clocks of device {} could not be read at the start; they are counted back from {:.1f} s later",
                                           device, static_cast<double>(back_ns) / 1e9));
  if (!counts) manifest->warnings.push_back(UnknownCounterText(device));
  return true;
}

std::string Serialize(const Manifest& manifest) {
  return ToJson(manifest).dump(1, ' ', false, OrderedJson::error_handler_t::replace) + "\n";
}

Result<Manifest> ParseManifest(std::string_view text_untrusted) {
  if (text_untrusted.size() > kMaxManifestBytes) return OutOfRange("manifest too long");
  if (NestsTooDeep(text_untrusted, 16)) return InvalidArgument("manifest nests too deep");
  const OrderedJson json = OrderedJson::parse(text_untrusted.begin(), text_untrusted.end(), nullptr, false);
  if (json.is_discarded() || !json.is_object()) return InvalidArgument("manifest is not a JSON object");
  JsonReader reader;
  int version = 0;
  reader.Get(json, "profd_manifest", &version);
  if (version < 1) return InvalidArgument("no profd manifest");
  if (version > kManifestVersion) {
    return Unimplemented(fmt::format("manifest version {}; this program reads up to {}", version, kManifestVersion));
  }
  if (JsonReader::Find(json, "state") == nullptr) return InvalidArgument("manifest: no state");
  Manifest manifest;
  reader.ReadFields(json, kJsonFields<Manifest>, &manifest);
  if (!reader.error().empty()) return InvalidArgument(fmt::format("manifest: wrong value for '{}'", reader.error()));
  return manifest;
}

}  // namespace profd
