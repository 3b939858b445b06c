#include "dump/process_files.h"

#include <fmt/format.h>
#include <sys/stat.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cmath>
#include <cstdlib>
#include <map>
#include <nlohmann/json.hpp>
#include <optional>
#include <span>

#include "base/clock.h"
#include "base/text.h"
#include "dump/data_name.h"
#include "dump/dump_io.h"
#include "dump/dump_root.h"
#include "dump/json_depth.h"
#include "dump/slice_journal.h"

namespace profd {
namespace {

using Json = nlohmann::ordered_json;

constexpr size_t kMaxControlText = 1u << 20;

constexpr std::array<std::string_view, 6> kControls = {"info.json", "sample.json",    "start_info",
                                                       "end_info",  "host_start.log", "dev_start.log"};

// Two pairs of clock and counter are some milliseconds apart, and crystals differ by some ppm.
constexpr double kSlackNs = 20e6;
constexpr double kDrift = 1e-4;

// What the vendor's collector sets for options of the application (driver-abi 4.2, dump-format 1.5).
constexpr auto kApplicationKeys = std::to_array<std::string_view>({
    "acl", "runtimeApi", "aicpuTrace", "runtimeTrace", "hcclTrace", "msproftx", "mstxDomainInclude", "mstxDomainExclude",
    "taskTrace", "taskTime", "aicoreShape", "taskMemory", "prof_level", "profLevel", "geApi", "ts_task_track",
    "ts_task_time", "ts_timeline", "ts_memcpy", "ts_keypoint", "taskTsfw", "ts_fw_training", "hwts_log", "hwts_log1",
    "l2CacheTaskProfiling", "l2CacheTaskProfilingEvents", "stars_acsq_task", "taskBlock", "taskBlockShink", "aicScale",
    "memServiceflow", "npuEvents", "ntsMetrics", "ntsPmuEvents", "profMode",
});
// Only one of both can have the counters of the AI Cores.
constexpr auto kAicoreKeys = std::to_array<std::string_view>({
    "ai_core_profiling", "ai_core_profiling_mode", "ai_core_profiling_events", "ai_core_profiling_metrics",
    "ai_core_metrics", "ai_core_status", "aicore_sampling_interval", "aiv_profiling", "aiv_profiling_mode",
    "aiv_profiling_events", "aiv_profiling_metrics", "aiv_metrics", "aiv_sampling_interval", "ai_vector_status",
});

bool IsOneOf(std::span<const std::string_view> keys, std::string_view key) {
  return std::ranges::find(keys, key) != keys.end();
}

Result<Json> ParseObject(std::string_view text, const char* what) {
  constexpr int kMaxNesting = 16;
  if (text.size() > kMaxControlText || NestsTooDeep(text, kMaxNesting)) {
    return InvalidArgument(fmt::format("{} is too long, or nests too deep", what));
  }
  Json json = Json::parse(text, nullptr, false);
  if (!json.is_object()) return InvalidArgument(fmt::format("{} is not a JSON object", what));
  return json;
}

std::string OneLine(const Json& json) { return json.dump(-1, ' ', false, Json::error_handler_t::replace) + "\n"; }

bool IsSet(const Json& value) {
  if (!value.is_string()) return true;
  const std::string& text = value.get_ref<const std::string&>();
  return !text.empty() && text != "off";
}

// The first object of a list, or null.
const Json* FirstOf(const Json& json, const char* list) {
  const auto found = json.find(list);
  if (found == json.end() || !found->is_array() || found->empty() || !found->front().is_object()) return nullptr;
  return &found->front();
}

// In Hz; 0: there is none.
double FrequencyOf(const Json& json, const char* list, const char* key) {
  const Json* const object = FirstOf(json, list);
  if (object == nullptr) return 0;
  const auto found = object->find(key);
  if (found == object->end() || !found->is_string()) return 0;
  const double mhz = std::strtod(found->get_ref<const std::string&>().c_str(), nullptr);
  return std::isfinite(mhz) && mhz > 0 ? mhz * 1e6 : 0;
}

struct Pair {
  int64_t ns = 0;
  uint64_t count = 0;
};
std::optional<Pair> PairOf(std::string_view text) {
  Pair pair;
  bool ns = false;
  bool count = false;
  std::string_view line;
  while (NextLine(&text, &line)) {
    const size_t colon = line.find(':');
    if (colon == std::string_view::npos) continue;
    const std::string_view key = line.substr(0, colon);
    const std::string_view value = Trim(line.substr(colon + 1));
    if (key == "clock_monotonic_raw") ns = ParseNumber(value, &pair.ns);
    if (key == "cntvct") count = ParseNumber(value, &pair.count);
  }
  if (!ns || !count) return std::nullopt;
  return pair;
}

// By how much a counter that has gone on from `a` to `b` differs from the clock.
Status CompareSpans(std::string_view what, double counted_ns, double clock_ns) {
  const double off = counted_ns - clock_ns;
  if (std::abs(off) <= kSlackNs + kDrift * std::abs(clock_ns)) return Status::Ok();
  return FailedPrecondition(fmt::format("{} differs from profd's by {:.3f} ms", what, off / 1e6));
}

double Counted(const Pair& from, const Pair& to, double hz) {
  return (static_cast<double>(to.count) - static_cast<double>(from.count)) * 1e9 / hz;
}

}  // namespace

Status FindSteps(int dir, std::string_view prefix, std::span<ProcessFile> files, const std::function<Status()>& check) {
  std::map<uint64_t, ProcessFile*> slices;
  for (ProcessFile& file : files) {
    if (!file.path.starts_with(prefix)) continue;
    const std::string_view name = std::string_view(file.path).substr(prefix.size());
    if (!name.starts_with(kStepTraceFile) || name.ends_with(kDoneSuffix) || name.find('/') != std::string_view::npos) continue;
    const std::optional<DataName> data = ParseDataName(name);
    if (data && data->base == kStepTraceFile) slices.emplace(data->slice, &file);
  }
  uint64_t before = 0;  // bytes: slices may end within a record
  for (const auto& [number, file] : slices) {
    const std::string name = file->path.substr(prefix.size());
    Result<UniqueFd> fd = OpenFileAt(dir, name);
    if (!fd.ok()) return fd.status();
    struct stat facts {};
    if (::fstat(fd->get(), &facts) != 0) return Status::FromErrno(errno, name);
    const uint64_t begun = before % kStepRecordBytes;
    Result<std::array<bool, kStepLayouts>> steps =
        FindStepRecords(fd->get(), begun == 0 ? 0 : kStepRecordBytes - begun, check);
    if (!steps.ok()) return steps.status();
    file->steps = *steps;
    before += static_cast<uint64_t>(facts.st_size);
  }
  return Status::Ok();
}

bool ParseProcessPath(std::string_view path, ProcessPath* out) {
  const size_t first = path.find('/');
  const size_t second = first == std::string_view::npos ? first : path.find('/', first + 1);
  if (second == std::string_view::npos) return false;
  out->prof = path.substr(0, first);
  out->place = path.substr(first + 1, second - first - 1);
  out->rest = path.substr(second + 1);
  const std::optional<int> device = DeviceOfFolder(out->place);
  out->device = device.value_or(-1);
  return DumpRoot::IsDumpName(out->prof) && device.has_value();
}

std::string_view BaseOfProcessFile(std::string_view name) {
  if (name.ends_with(kDoneSuffix)) name.remove_suffix(kDoneSuffix.size());
  const size_t slice = name.rfind(kSliceMark);
  if (slice == std::string_view::npos) return name;
  name = name.substr(0, slice);
  // A device's files have its number, the host's none.
  const size_t dot = name.rfind('.');
  int device = 0;
  if (dot != std::string_view::npos && ParseNumber(name.substr(dot + 1), &device)) name = name.substr(0, dot);
  return name;
}

std::string_view ControlOfProcessFile(std::string_view name, int device) {
  if (name.ends_with(kDoneSuffix)) name.remove_suffix(kDoneSuffix.size());
  for (const std::string_view control : kControls) {
    const bool suffix = device >= 0 && control != "sample.json";
    if (name == (suffix ? fmt::format("{}.{}", control, device) : std::string(control))) return control;
  }
  return {};
}

Status CheckSameClocks(const StartClocks& dump, const StartClocks& process, int device) {
  Result<Json> ours = ParseObject(dump.info_json, "info.json");
  if (!ours.ok()) return ours.status();
  Result<Json> theirs = ParseObject(process.info_json, "the profiler's info.json");
  if (!theirs.ok()) return theirs.status();
  const std::optional<Pair> our_host = PairOf(dump.host_start);
  const std::optional<Pair> host = PairOf(process.host_start);
  if (!our_host || !host) return FailedPrecondition("a host_start.log has no clocks");
  const auto clock_ns = static_cast<double>(host->ns - our_host->ns);
  if (device < 0) {
    const double hz = FrequencyOf(*theirs, "CPU", "Frequency");
    return hz == 0 ? Status::Ok() : CompareSpans("the host's counter", Counted(*our_host, *host, hz), clock_ns);
  }
  const double hz = FrequencyOf(*ours, "DeviceInfo", "hwts_frequency");
  if (hz == 0 || hz != FrequencyOf(*theirs, "DeviceInfo", "hwts_frequency")) {
    return FailedPrecondition("the frequency of the device's counter differs");
  }
  const std::optional<Pair> our_device = PairOf(dump.dev_start);
  const std::optional<Pair> of_device = PairOf(process.dev_start);
  if (!our_device || !of_device) return FailedPrecondition("a dev_start.log has no clocks");
  return CompareSpans("the device's counter", Counted(*our_device, *of_device, hz), clock_ns);
}

Result<std::string> MergeSampleJson(std::string_view dump, std::string_view process) {
  Result<Json> ours = ParseObject(dump, "sample.json");
  if (!ours.ok()) return ours.status();
  Result<Json> theirs = ParseObject(process, "the profiler's sample.json");
  if (!theirs.ok()) return theirs.status();
  const auto aicore = theirs->find("ai_core_profiling");
  const bool takes_aicore = aicore != theirs->end() && *aicore == "on";
  for (const auto& [key, value] : theirs->items()) {
    const bool known = ours->contains(key);
    const bool configured = (IsOneOf(kApplicationKeys, key) && IsSet(value)) || (IsOneOf(kAicoreKeys, key) && takes_aicore);
    if (!known || configured) (*ours)[key] = value;
  }
  // Two names of one value, of which readers take the first that is there; the profiler may write either.
  for (const char* level : {"profLevel", "prof_level"}) {
    const auto found = theirs->find(level);
    if (found == theirs->end() || !IsSet(*found)) continue;
    for (const char* name : {"profLevel", "prof_level"}) {
      if (ours->contains(name)) (*ours)[name] = *found;
    }
    break;
  }
  return OneLine(*ours);
}

Result<std::string> MergeInfoJson(std::string_view dump, std::string_view process, bool host) {
  Result<Json> ours = ParseObject(dump, "info.json");
  if (!ours.ok()) return ours.status();
  Result<Json> theirs = ParseObject(process, "the profiler's info.json");
  if (!theirs.ok()) return theirs.status();
  for (const auto& [key, value] : theirs->items()) {
    if (!ours->contains(key)) (*ours)[key] = value;
  }
  for (const char* key : {"pid", "pid_name"}) {
    if (const auto found = theirs->find(key); found != theirs->end() && found->is_string()) (*ours)[key] = *found;
  }
  if (host && FirstOf(*theirs, "CPU") != nullptr) (*ours)["CPU"] = (*theirs)["CPU"];
  if (const Json* const device = FirstOf(*theirs, "DeviceInfo"); device != nullptr && FirstOf(*ours, "DeviceInfo")) {
    Json& own = (*ours)["DeviceInfo"].front();
    for (const auto& [key, value] : device->items()) {
      if (!own.contains(key)) own[key] = value;
    }
  }
  return OneLine(*ours);
}

}  // namespace profd
