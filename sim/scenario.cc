#include "sim/scenario.h"

#include <fmt/format.h>
#include <toml++/toml.h>

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <limits>

#include "base/text.h"
#include "driver/abi/channels.h"
#include "driver/abi/hal_abi.h"
#include "sim/chip.h"
#include "sim/table_reader.h"

namespace profd::sim {
namespace {

constexpr std::array<std::string_view, kPhases> kPhaseKeys = {
    "forward_ms", "backward_ms", "all_reduce_ms", "update_ms", "data_wait_ms"};

struct KindRow {
  std::string_view name;
  FaultKind kind;
  std::vector<std::string_view> keys;  // beside kind, at, for, device
};

const std::vector<KindRow>& KindTable() {
  static const std::vector<KindRow> table = {
      {"throttle", FaultKind::kThrottle, {"mhz", "cause"}},
      {"slow_hccs", FaultKind::kSlowHccs, {"link", "factor"}},
      {"roce_retrans", FaultKind::kRoceRetrans, {"rate"}},
      {"ecc", FaultKind::kEcc, {"single", "double"}},
      {"card_drop", FaultKind::kCardDrop, {"mode"}},
      {"channel_busy", FaultKind::kChannelBusy, {"channel"}},
      {"start_error", FaultKind::kStartError, {"channel", "code"}},
      {"short_read", FaultKind::kShortRead, {"channel", "bytes"}},
      {"garbage", FaultKind::kGarbage, {"channel", "mode", "every"}},
      {"poll_error", FaultKind::kPollError, {"code"}},
      {"stop_hang", FaultKind::kStopHang, {"channel"}},
      {"dcmi_error", FaultKind::kDcmiError, {"code"}},
      {"link_down", FaultKind::kLinkDown, {"flap"}},
      {"optical", FaultKind::kOptical, {"mode", "lane", "factor"}},
      {"hccn_tool", FaultKind::kHccnTool, {"mode", "code"}},
  };
  return table;
}

class ScenarioTable : public TableReader {
 public:
  using TableReader::TableReader;

  // "all" or absent: `all`.
  int Device(int all, int devices) {
    const toml::node* node = table_.get("device");
    if (node == nullptr || (node->is_string() && node->value<std::string>() == "all")) return all;
    return static_cast<int>(Int("device", all, 0, devices - 1));
  }
  // A channel id, or a name of driver/abi/channels.h; absent or "all": every channel.
  unsigned Channel() {
    const toml::node* node = table_.get("channel");
    if (node == nullptr) return kAllChannels;
    if (!node->is_string()) {
      return static_cast<unsigned>(Int("channel", kAllChannels, 1, abi::kMaxChannels - 1));
    }
    const std::string name = String("channel", "all");
    if (name == "all") return kAllChannels;
    for (const abi::ChannelFormat& format : abi::kChannelFormats) {
      if (format.name == name) return format.id;
    }
    Fail(*node, fmt::format("unknown channel '{}'", name));
    return kAllChannels;
  }
};

int64_t SecondsToNs(double seconds) { return static_cast<int64_t>(std::llround(seconds * 1e9)); }

constexpr double kMaxSeconds = 1e8;
constexpr int64_t kIntMin = std::numeric_limits<int32_t>::min();
constexpr int64_t kIntMax = std::numeric_limits<int32_t>::max();

// Faults of the network port, which only the vendor's program shows.
void ReadPortKeys(ScenarioTable& reader, Fault& fault) {
  if (fault.kind == FaultKind::kLinkDown) {
    if (reader.Has("flap")) fault.flap_ns = SecondsToNs(reader.Number("flap", 1, 0.1, kMaxSeconds));
  } else if (fault.kind == FaultKind::kOptical) {
    fault.optical = static_cast<OpticalMode>(reader.OneOf("mode", {"missing", "low_power"}));
    fault.lane = static_cast<int>(reader.Int("lane", kAllLanes, 0, kOpticalLanes - 1));
    fault.factor = reader.Number("factor", 0.05, 0.0001, 1);
  } else {
    fault.tool = static_cast<ToolMode>(reader.OneOf("mode", {"hang", "garbage", "flood", "exit"}));
    fault.code = static_cast<int>(reader.Int("code", 1, 1, 125));
  }
}

void ReadKindKeys(ScenarioTable& reader, const Scenario& scenario, Fault& fault) {
  const ChipSpec& chip = *FindChip(scenario.chip);
  fault.channel = reader.Channel();
  switch (fault.kind) {
    case FaultKind::kThrottle:
      fault.mhz =
          static_cast<unsigned>(reader.Int("mhz", chip.aic_mhz * 55 / 100, 100, chip.aic_mhz));
      fault.cause = static_cast<uint32_t>(reader.Int("cause", 1, 1, 0xFFFF));
      break;
    case FaultKind::kSlowHccs:
      fault.link = static_cast<unsigned>(
          reader.Int("link", kFirstHccsLink, kFirstHccsLink, kFirstHccsLink + chip.hccs_links - 1));
      fault.factor = reader.Number("factor", 0.25, 0.01, 1);
      break;
    case FaultKind::kRoceRetrans:
      fault.rate = reader.Number("rate", 200, 0.001, 1e7);
      break;
    case FaultKind::kEcc:
      fault.single = static_cast<uint32_t>(reader.Int("single", 0, 0, 1'000'000));
      fault.double_ = static_cast<uint32_t>(reader.Int("double", 0, 0, 1'000'000));
      if (fault.single + fault.double_ == 0) reader.Fail("ecc needs 'single' or 'double' above 0");
      break;
    case FaultKind::kShortRead:
      fault.bytes = static_cast<unsigned>(reader.Int("bytes", 7, 1, 1 << 20));
      break;
    case FaultKind::kCardDrop:
      fault.drop = static_cast<DropMode>(reader.OneOf("mode", {"missing", "hang", "dcmi_hang"}));
      break;
    case FaultKind::kGarbage:
      fault.garbage = static_cast<GarbageMode>(reader.OneOf("mode", {"flip", "junk"}));
      fault.every = static_cast<unsigned>(reader.Int("every", 10, 1, 1'000'000));
      break;
    case FaultKind::kStartError:
      fault.code = static_cast<int>(reader.Int("code", abi::kProfError, kIntMin, kIntMax));
      if (fault.code == 0) reader.Fail("'code' must not be 0");
      break;
    case FaultKind::kPollError:
      fault.code = static_cast<int>(reader.Int("code", abi::kProfError, kIntMin, -1));
      break;
    case FaultKind::kDcmiError:
      fault.code = static_cast<int>(reader.Int("code", -8005, kIntMin, -1));
      break;
    case FaultKind::kLinkDown:
    case FaultKind::kOptical:
    case FaultKind::kHccnTool:
      ReadPortKeys(reader, fault);
      break;
    case FaultKind::kChannelBusy:
    case FaultKind::kStopHang:
      break;
  }
}

Status ReadFault(const toml::table& table, Scenario& scenario) {
  ScenarioTable reader(table, " in [[fault]]");
  const std::string kind = reader.String("kind", "");
  const auto row = std::ranges::find(KindTable(), kind, &KindRow::name);
  if (row == KindTable().end()) {
    reader.Fail(fmt::format("unknown fault kind '{}'", kind));
    return reader.status();
  }
  std::vector<std::string_view> known = {"kind", "at", "for", "device"};
  known.insert(known.end(), row->keys.begin(), row->keys.end());
  reader.CheckKeys(known);
  Fault fault{.kind = row->kind};
  fault.begin_ns = SecondsToNs(reader.Number("at", 0, 0, kMaxSeconds));
  if (reader.Has("for")) {
    fault.end_ns = fault.begin_ns + SecondsToNs(reader.Number("for", 1, 1e-6, kMaxSeconds));
  }
  fault.device = reader.Device(kAllDevices, scenario.devices);
  ReadKindKeys(reader, scenario, fault);
  RETURN_IF_ERROR(reader.status());
  scenario.faults.push_back(fault);
  return {};
}

Status ReadProcess(const toml::table& table, Scenario& scenario) {
  ScenarioTable reader(table, " in [[process]]");
  reader.CheckKeys({"pid", "device", "memory_mb"});
  SimProcess process;
  process.pid = static_cast<int>(reader.Int("pid", 0, 1, kIntMax));
  process.device = reader.Device(kAllDevices, scenario.devices);
  process.memory_bytes = static_cast<uint64_t>(reader.Int("memory_mb", 20480, 0, 1 << 20)) << 20;
  if (!reader.Has("pid")) reader.Fail("[[process]] needs 'pid'");
  RETURN_IF_ERROR(reader.status());
  scenario.processes.push_back(process);
  return {};
}

Status ReadVnpu(const toml::table& table, Scenario& scenario) {
  constexpr int64_t kFirstId = 100, kLastId = 1123;  // what drivers give out
  ScenarioTable reader(table, " in [[vnpu]]");
  reader.CheckKeys({"id", "device", "share", "memory_mb"});
  SimVnpu vnpu{};
  vnpu.id = static_cast<uint32_t>(reader.Int("id", kFirstId, kFirstId, kLastId));
  vnpu.device = reader.Device(0, scenario.devices);
  vnpu.share = reader.Number("share", 0.5, 0, 1);
  vnpu.memory_bytes = static_cast<uint64_t>(reader.Int("memory_mb", 8192, 1, 1 << 20)) << 20;
  if (!reader.Has("id")) reader.Fail("[[vnpu]] needs 'id'");
  if (scenario.chip != "910") reader.Fail("only chip 910 is split into virtual NPUs");
  RETURN_IF_ERROR(reader.status());
  scenario.vnpus.push_back(vnpu);
  return {};
}

Status ReadPhases(const toml::table& root, ScenarioTable& top, Scenario& scenario) {
  if (const toml::node* node = root.get("phases"); node != nullptr) {
    if (!node->is_table()) return InvalidArgument("'phases' must be a table");
    ScenarioTable reader(*node->as_table(), " in [phases]");
    reader.CheckKeys({kPhaseKeys.begin(), kPhaseKeys.end()});
    for (unsigned p = 0; p < kPhases; ++p) {
      const double fallback = static_cast<double>(scenario.phase_ns[p]) / 1e6;
      scenario.phase_ns[p] = SecondsToNs(reader.Number(kPhaseKeys[p], fallback, 0, 3.6e6) / 1e3);
    }
    RETURN_IF_ERROR(reader.status());
  }
  int64_t sum = 0;
  for (int64_t ns : scenario.phase_ns) sum += ns;
  constexpr int64_t kMinStepNs = 1'000'000;
  if (sum < kMinStepNs) return InvalidArgument("a step must last at least 1 ms");
  if (top.Has("step_ms")) {
    const double scale = top.Number("step_ms", 1, 1, 3.6e6) * 1e6 / static_cast<double>(sum);
    for (int64_t& ns : scenario.phase_ns) {
      ns = static_cast<int64_t>(std::llround(static_cast<double>(ns) * scale));
    }
  }
  return top.status();
}

// Arrays of tables only; anything else under these names is an error.
Status ForEachTable(const toml::table& root, std::string_view key, Scenario& scenario,
                    Status (*read)(const toml::table&, Scenario&)) {
  const toml::node* node = root.get(key);
  if (node == nullptr) return {};
  if (!node->is_array_of_tables()) {
    return InvalidArgument(fmt::format("'{0}' must be written as [[{0}]]", key));
  }
  if (node->as_array()->size() > kMaxFaults) {
    return InvalidArgument(fmt::format("more than {} [[{}]] entries", kMaxFaults, key));
  }
  for (const toml::node& element : *node->as_array()) {
    RETURN_IF_ERROR(read(*element.as_table(), scenario));
  }
  return {};
}

Result<Scenario> FromTable(const toml::table& root) {
  Scenario scenario;
  ScenarioTable top(root, "");
  top.CheckKeys(
      {"chip", "devices", "seed", "step_ms", "time_scale", "phases", "processes_file", "process", "vnpu",
       "fault"});
  scenario.chip = top.String("chip", scenario.chip);
  if (FindChip(scenario.chip) == nullptr) {
    top.Fail(fmt::format("unknown chip '{}' (910, 910B, A3, 950)", scenario.chip));
  }
  const bool paired = scenario.chip == "A3";
  scenario.devices = static_cast<int>(top.Int("devices", paired ? 16 : 8, 1, kMaxSimDevices));
  if (paired && scenario.devices % 2 != 0) top.Fail("A3 devices come in pairs (two dies a card)");
  scenario.seed = static_cast<uint64_t>(top.Int("seed", 1, 0, INT64_MAX));
  scenario.time_scale = top.Int("time_scale", 1, 1, kMaxTimeScale);
  scenario.processes_file = top.String("processes_file", "");
  RETURN_IF_ERROR(top.status());
  RETURN_IF_ERROR(ReadPhases(root, top, scenario));
  RETURN_IF_ERROR(ForEachTable(root, "process", scenario, ReadProcess));
  RETURN_IF_ERROR(ForEachTable(root, "vnpu", scenario, ReadVnpu));
  RETURN_IF_ERROR(ForEachTable(root, "fault", scenario, ReadFault));
  return scenario;
}

}  // namespace

Result<Scenario> ParseScenario(std::string_view toml_text) { return ParseToml(toml_text, FromTable); }

Result<Scenario> LoadScenario(const std::string& path) { return ParseFile(path, ParseScenario); }

Result<Scenario> ScenarioFromEnvironment() {
  Scenario scenario;
  const char* path = std::getenv(std::string(kScenarioEnv).c_str());
  if (path != nullptr && *path != '\0') {
    Result<Scenario> loaded = LoadScenario(path);
    if (!loaded.ok()) return loaded;
    scenario = std::move(loaded).value();
  }
  const char* scale = std::getenv(std::string(kTimeScaleEnv).c_str());
  if (scale == nullptr || *scale == '\0') return scenario;
  if (!ParseNumber(std::string_view(scale), &scenario.time_scale) || scenario.time_scale < 1 ||
      scenario.time_scale > kMaxTimeScale) {
    return InvalidArgument(
        fmt::format("{} must be an integer in 1..{}", kTimeScaleEnv, kMaxTimeScale));
  }
  return scenario;
}

}  // namespace profd::sim
