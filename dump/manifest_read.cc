// Reading manifests. Nothing throws; a wrong type is remembered.
#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <nlohmann/json.hpp>
#include <type_traits>

#include "dump/data_name.h"
#include "dump/json_depth.h"
#include "dump/manifest.h"

namespace profd {
namespace {

using Json = nlohmann::ordered_json;

constexpr size_t kMaxListItems = 400'000;

class Reader {
 public:
  template <class T>
  void Get(const Json& json, const char* key, std::optional<T>* out) {
    auto it = json.find(key);
    if (it == json.end() || it->is_null()) return;
    Get(json, key, &out->emplace());
  }
  // Takes json[key] into *out if it is there and not null; a wrong type or range is an error.
  template <class T>
  void Get(const Json& json, const char* key, T* out) {
    auto it = json.find(key);
    if (it == json.end() || it->is_null()) return;
    if (!Take(*it, out)) Fail(key);
  }
  // The object or array at `key`; an empty one if it is missing.
  const Json& Child(const Json& json, const char* key, bool array) {
    static const Json kEmptyObject = Json::object();
    static const Json kEmptyArray = Json::array();
    const Json& empty = array ? kEmptyArray : kEmptyObject;
    auto it = json.find(key);
    if (it == json.end() || it->is_null()) return empty;
    if (array ? !it->is_array() || it->size() > kMaxListItems : !it->is_object()) {
      Fail(key);
      return empty;
    }
    return *it;
  }
  // Calls f(object) for each item of the array at `key`.
  template <class F>
  void Each(const Json& json, const char* key, F f) {
    for (const Json& item : Child(json, key, true)) {
      if (!item.is_object()) return Fail(key);
      f(item);
    }
  }
  // Eight digits of hex.
  void GetHex(const Json& json, const char* key, std::optional<uint32_t>* out) {
    std::optional<std::string> text;
    Get(json, key, &text);
    if (!text) return;
    uint32_t value = 0;
    const char* end = text->data() + text->size();
    auto [stop, error] = std::from_chars(text->data(), end, value, 16);
    if (text->size() != 8 || error != std::errc() || stop != end) return Fail(key);
    *out = value;
  }
  void Fail(const char* key) {
    if (error_.empty()) error_ = key;
  }
  const std::string& error() const { return error_; }

 private:
  static bool Take(const Json& json, std::string* out) {
    if (!json.is_string()) return false;
    *out = json.get_ref<const std::string&>();
    return true;
  }
  static bool Take(const Json& json, bool* out) {
    if (!json.is_boolean()) return false;
    *out = json.get<bool>();
    return true;
  }
  static bool Take(const Json& json, double* out) {
    if (!json.is_number()) return false;
    *out = json.get<double>();
    return true;
  }
  template <class T>
  requires std::is_integral_v<T>
  static bool Take(const Json& json, T* out) {
    if (json.is_number_unsigned()) {
      auto value = json.get<uint64_t>();
      if (!std::in_range<T>(value)) return false;
      *out = static_cast<T>(value);
      return true;
    }
    if (!json.is_number_integer()) return false;
    auto value = json.get<int64_t>();
    if (!std::in_range<T>(value)) return false;
    *out = static_cast<T>(value);
    return true;
  }
  static bool Take(const Json& json, std::vector<int>* out) {
    if (!json.is_array() || json.size() > kMaxListItems) return false;
    return std::all_of(json.begin(), json.end(),
                       [out](const Json& item) { return Take(item, &out->emplace_back()); });
  }
  static bool Take(const Json& json, std::map<std::string, std::string>* out) {
    if (!json.is_object() || json.size() > kMaxListItems) return false;
    for (const auto& [key, value] : json.items()) {
      if (!Take(value, &(*out)[key])) return false;
    }
    return true;
  }

  std::string error_;
};

DumpClocks ReadClocks(Reader& reader, const Json& json) {
  DumpClocks clocks;
  reader.Get(json, "host_ns", &clocks.host_ns);
  reader.Get(json, "host_count", &clocks.host_count);
  reader.Get(json, "device_ns", &clocks.device_ns);
  reader.Get(json, "device_count", &clocks.device_count);
  reader.Get(json, "uncertainty_ns", &clocks.uncertainty_ns);
  return clocks;
}

LossReason ReasonOf(Reader& reader, const Json& json) {
  std::string name;
  reader.Get(json, "reason", &name);
  return LossReasonOf(name);
}

ManifestChannel ReadChannel(Reader& reader, const Json& json) {
  ManifestChannel channel;
  reader.Get(json, "collector", &channel.collector);
  reader.Get(json, "device", &channel.device);
  reader.Get(json, "channel", &channel.channel);
  reader.Get(json, "file", &channel.file);
  reader.Get(json, "state", &channel.state);
  reader.Get(json, "detail", &channel.detail);
  reader.Get(json, "hz_asked", &channel.hz_asked);
  reader.Get(json, "hz_effective", &channel.hz_effective);
  reader.Get(json, "channel_hz", &channel.channel_hz);
  reader.Get(json, "records", &channel.records);
  reader.Get(json, "bytes", &channel.bytes);
  const Json& aged = reader.Child(json, "aged", false);
  reader.Get(aged, "slices", &channel.aged.slices);
  reader.Get(aged, "records", &channel.aged.records);
  reader.Get(aged, "bytes", &channel.aged.bytes);
  reader.Get(aged, "from_ns", &channel.aged.from_ns);
  reader.Get(aged, "to_ns", &channel.aged.to_ns);
  reader.Each(json, "dropped", [&](const Json& item) {
    ManifestLoss loss;
    loss.reason = ReasonOf(reader, item);
    reader.Get(item, "records", &loss.records);
    reader.Get(item, "bytes", &loss.bytes);
    reader.Get(item, "from_ns", &loss.from_ns);
    reader.Get(item, "to_ns", &loss.to_ns);
    channel.dropped.push_back(loss);
  });
  reader.Get(json, "garbage_bytes", &channel.garbage_bytes);
  reader.Get(json, "thinned", &channel.thinned);
  reader.Get(json, "thinned_records", &channel.thinned_records);
  reader.Get(json, "readings", &channel.readings);
  reader.Get(json, "past_hz", &channel.past_hz);
  reader.Get(json, "past_until_ns", &channel.past_until_ns);
  reader.Get(json, "rebased", &channel.rebased);
  reader.Get(json, "rebase_us", &channel.rebase_us);
  reader.Each(json, "gaps", [&](const Json& item) {
    ManifestGap gap;
    reader.Get(item, "from_ns", &gap.from_ns);
    reader.Get(item, "host_ns", &gap.host_ns);
    reader.Get(item, "lost_records", &gap.lost_records);
    gap.reason = ReasonOf(reader, item);
    channel.AddGap(gap);
  });
  channel.gap_count = 0;
  reader.Get(json, "gap_count", &channel.gap_count);
  return channel;
}

void ReadSession(Reader& reader, const Json& json, Manifest* manifest) {
  reader.Get(json, "id", &manifest->session_id);
  reader.Get(json, "uid", &manifest->uid);
  reader.Get(json, "gid", &manifest->gid);
  reader.Get(json, "pid", &manifest->pid);
  reader.Get(json, "job_id", &manifest->job_id);
  reader.Get(json, "rank", &manifest->rank);
  reader.Get(json, "label", &manifest->label);
  reader.Get(json, "requested", &manifest->requested);
  reader.Get(json, "effective", &manifest->effective);
  reader.Each(json, "options", [&](const Json& item) {
    ManifestOption option;
    reader.Get(item, "key", &option.key);
    reader.Get(item, "value", &option.value);
    reader.Get(item, "asked", &option.asked);
    reader.Get(item, "note", &option.note);
    manifest->options.push_back(std::move(option));
  });
  reader.Get(json, "metadata", &manifest->metadata);
  reader.Each(json, "processes", [&](const Json& item) {
    ManifestProcess process;
    reader.Get(item, "pid", &process.pid);
    reader.Get(item, "rank", &process.rank);
    reader.Get(item, "attached", &process.attached);
    reader.Get(item, "devices", &process.devices);
    reader.Get(item, "command", &process.command);
    reader.Get(item, "cpus", &process.cpus);
    reader.Get(item, "launch_cpus", &process.launch_cpus);
    const Json& collector = reader.Child(item, "collector", false);
    reader.Get(collector, "provider", &process.provider);
    reader.Get(collector, "state", &process.collector_state);
    reader.Get(collector, "detail", &process.collector_detail);
    reader.Get(collector, "version", &process.collector_version);
    reader.Get(collector, "cpu_ns", &process.collector_cpu_ns);
    manifest->processes.push_back(std::move(process));
  });
  reader.Get(json, "start_step", &manifest->start_step);
  reader.Get(json, "steps", &manifest->steps);
  reader.Get(json, "steps_done", &manifest->steps_done);
  reader.Get(json, "marks", &manifest->marks);
  reader.Get(json, "dropped_marks", &manifest->dropped_marks);
  reader.Get(json, "start_wall_ns", &manifest->start_wall_ns);
  reader.Get(json, "start_raw_ns", &manifest->start_raw_ns);
  reader.Get(json, "end_wall_ns", &manifest->end_wall_ns);
  reader.Get(json, "end_raw_ns", &manifest->end_raw_ns);
  reader.Get(json, "stop_raw_ns", &manifest->stop_raw_ns);
}

void ReadNode(Reader& reader, const Json& json, Manifest* manifest) {
  reader.Get(json, "hostname", &manifest->hostname);
  reader.Get(json, "os", &manifest->os);
  reader.Get(json, "machine", &manifest->machine);
  reader.Get(json, "host_counter_hz", &manifest->host_counter_hz);
  reader.Each(json, "devices", [&](const Json& item) {
    ManifestDevice device;
    reader.Get(item, "id", &device.id);
    reader.Get(item, "physical_id", &device.physical_id);
    reader.Get(item, "chip", &device.chip);
    reader.Get(item, "chip_id", &device.chip_id);
    reader.Get(item, "uuid", &device.uuid);
    reader.Get(item, "counter_hz", &device.counter_hz);
    reader.Get(item, "aicore_mhz", &device.aicore_mhz);
    reader.Get(item, "joined_raw_ns", &device.joined_raw_ns);
    reader.Get(item, "local_cpus", &device.local_cpus);
    manifest->devices.push_back(std::move(device));
  });
}

ManifestFile ReadFile(Reader& reader, const Json& json) {
  ManifestFile file;
  reader.Get(json, "path", &file.path);
  file.path = TodaysPath(std::move(file.path));
  reader.Get(json, "bytes", &file.bytes);
  reader.Get(json, "records", &file.records);
  reader.GetHex(json, "crc32c", &file.crc32c);
  reader.Get(json, "state", &file.state);
  reader.Get(json, "raw_bytes", &file.raw_bytes);
  std::optional<uint32_t> raw_sum;
  reader.GetHex(json, "raw_crc32c", &raw_sum);
  file.raw_crc32c = raw_sum.value_or(0);
  reader.Get(json, "first_ns", &file.first_ns);
  reader.Get(json, "last_ns", &file.last_ns);
  reader.Get(json, "pid", &file.pid);
  return file;
}

ManifestProcessFiles ReadProcessFiles(Reader& reader, const Json& json) {
  ManifestProcessFiles files;
  reader.Get(json, "pid", &files.pid);
  reader.Get(json, "rank", &files.rank);
  reader.Get(json, "layout", &files.layout);
  reader.Get(json, "directory", &files.directory);
  reader.Get(json, "state", &files.state);
  reader.Get(json, "files", &files.files);
  reader.Get(json, "bytes", &files.bytes);
  reader.Get(json, "refused", &files.refused);
  reader.Get(json, "refused_bytes", &files.refused_bytes);
  reader.Each(json, "examples", [&](const Json& item) {
    ManifestProcessFiles::Example one;
    reader.Get(item, "path", &one.path);
    reader.Get(item, "why", &one.why);
    files.examples.push_back(std::move(one));
  });
  reader.Get(json, "problem", &files.problem);
  return files;
}

bool ReadState(Reader& reader, const Json& json, Manifest* manifest) {
  std::string state;
  reader.Get(json, "state", &state);
  for (DumpState one : {DumpState::kRunning, DumpState::kDone, DumpState::kFailed,
                        DumpState::kInterrupted}) {
    if (state != ToString(one)) continue;
    manifest->state = one;
    return true;
  }
  return false;
}

}  // namespace

Result<Manifest> ParseManifest(std::string_view text_untrusted) {
  if (text_untrusted.size() > kMaxManifestBytes) return OutOfRange("manifest too long");
  if (NestsTooDeep(text_untrusted, 16)) return InvalidArgument("manifest nests too deep");
  Json json = Json::parse(text_untrusted.begin(), text_untrusted.end(), nullptr, false);
  if (json.is_discarded() || !json.is_object()) {
    return InvalidArgument("manifest is not a JSON object");
  }
  Reader reader;
  Manifest manifest;
  manifest.version = 0;
  reader.Get(json, "profd_manifest", &manifest.version);
  if (manifest.version < 1) return InvalidArgument("no profd manifest");
  if (manifest.version > kManifestVersion) {
    return Unimplemented(fmt::format("manifest version {}; this program reads up to {}",
                                     manifest.version, kManifestVersion));
  }
  if (!ReadState(reader, json, &manifest)) return InvalidArgument("manifest: unknown state");
  reader.Get(json, "reason", &manifest.reason);
  reader.Get(json, "segment", &manifest.segment);
  reader.Get(json, "continues", &manifest.continues);
  reader.Get(json, "limit_bytes", &manifest.limit_bytes);
  reader.Get(json, "limit_action", &manifest.limit_action);
  const Json& versions = reader.Child(json, "versions", false);
  reader.Get(versions, "profd", &manifest.profd_version);
  reader.Get(versions, "build", &manifest.build);
  reader.Get(versions, "hal_api", &manifest.hal_api_version);
  reader.Get(versions, "driver", &manifest.driver_version);
  reader.Get(versions, "dcmi", &manifest.dcmi_version);
  ReadSession(reader, reader.Child(json, "session", false), &manifest);
  ReadNode(reader, reader.Child(json, "node", false), &manifest);
  reader.Each(json, "channels",
              [&](const Json& item) { manifest.channels.push_back(ReadChannel(reader, item)); });
  reader.Each(json, "clocks", [&](const Json& item) {
    ManifestClock clock;
    reader.Get(item, "device", &clock.device);
    reader.Get(item, "when", &clock.when);
    clock.clocks = ReadClocks(reader, item);
    manifest.clocks.push_back(std::move(clock));
  });
  for (const Json& item : reader.Child(json, "warnings", true)) {
    if (!item.is_string()) {
      reader.Fail("warnings");
      break;
    }
    manifest.warnings.push_back(item.get<std::string>());
  }
  reader.Each(json, "process_files",
              [&](const Json& item) { manifest.process_files.push_back(ReadProcessFiles(reader, item)); });
  reader.Get(json, "data_bytes", &manifest.data_bytes);
  reader.Each(json, "files",
              [&](const Json& item) { manifest.files.push_back(ReadFile(reader, item)); });
  if (!reader.error().empty()) {
    return InvalidArgument(fmt::format("manifest: wrong value for '{}'", reader.error()));
  }
  return manifest;
}

}  // namespace profd
