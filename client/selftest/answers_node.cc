// Answers from what profd knows of its node.
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <map>

#include "client/render.h"
#include "client/selftest/selftest.h"
#include "proto/enum_word/enum_word.h"

namespace profd::client::selftest {
namespace {

constexpr uint32_t kApiOfClocks = 0x071905;
constexpr int64_t kGoodPairNs = 1'000'000;
constexpr int kMostDevices = 64;
constexpr uint32_t kStepTrace = 44;
constexpr uint32_t kStarsLog = 50;

Answer YesOrNo(bool yes, std::string why, Json evidence = Json::object()) {
  return {yes ? Verdict::kYes : Verdict::kNo, std::move(why), std::move(evidence)};
}

// While a session of ours ran, where there was one.
const v1::Node& Busiest(const Facts& facts) {
  return facts.channels && facts.channels->status.ok() ? facts.channels->node : facts.node;
}

Answer NoDevices() { return Open("profd has no devices here"); }

}  // namespace

Answer AskHalIsReal(const Facts& facts) {
  const v1::DriverInfo& driver = facts.node.driver();
  if (facts.node.simulated()) return YesOrNo(false, "profd runs on the simulator", {{"simulated", true}});
  if (driver.hal_path().empty()) return Open("no libascend_hal.so is loaded: " + driver.hal_error());
  const Json evidence = {{"hal_path", driver.hal_path()}, {"devices", facts.node.devices_size()}, {"driver_version", driver.driver_version()}};
  if (facts.node.devices().empty()) return YesOrNo(false, "it loads and has no devices: a stub of the toolkit (devlib), or a node without NPUs", evidence);
  return YesOrNo(true, CountText(static_cast<uint64_t>(facts.node.devices_size()), "device"), evidence);
}

Answer AskHalComplete(const Facts& facts) {
  const v1::DriverInfo& driver = facts.node.driver();
  if (driver.hal_path().empty()) return Open("no libascend_hal.so is loaded: " + driver.hal_error());
  Json missing = Json::array();
  for (const std::string& symbol : driver.missing_symbols()) missing.push_back(symbol);
  if (missing.empty()) return YesOrNo(true, "nothing is missing");
  return YesOrNo(false, fmt::format("{} functions are missing, what needs them is off", missing.size()), {{"missing", missing}});
}

Answer AskHalGates(const Facts& facts) {
  const v1::DriverInfo& driver = facts.node.driver();
  if (!driver.has_hal_api_version() || driver.hal_api_version() == 0) return Open("the HAL does not say its version");
  const std::string version = fmt::format("{:#08x}", driver.hal_api_version());
  return YesOrNo(driver.hal_api_version() >= kApiOfClocks, "API " + version, {{"hal_api_version", version}});
}

Answer AskChipsKnown(const Facts& facts) {
  if (facts.node.devices().empty()) return NoDevices();
  Json chips = Json::array();
  bool known = true;
  std::string first;
  for (const v1::Device& device : facts.node.devices()) {
    // The inventory's word for a number that is in no table.
    known = known && device.has_chip_id() && !device.chip().starts_with("chip ") && !device.chip().empty();
    const Json id = device.has_chip_id() ? Json(device.chip_id()) : Json();
    chips.push_back({{"device", device.id()}, {"chip_id", id}, {"chip", device.chip()}});
    if (first.empty()) first = fmt::format("{} is {}", id.dump(), device.chip());
  }
  return YesOrNo(known, known ? first + "; say which product this is" : "a number that no table has, or none", {{"devices", chips}});
}

Answer AskLogicalIds(const Facts& facts) {
  if (facts.node.devices().empty()) return NoDevices();
  Json pairs = Json::array();
  bool same = true;
  for (const v1::Device& device : facts.node.devices()) {
    same = same && device.id() == device.physical_id();
    pairs.push_back({device.id(), device.physical_id()});
  }
  return YesOrNo(same, same ? "for all devices" : "records of this node have ids of their own: see the evidence", {{"logical_physical", pairs}});
}

Answer AskTaskChannels(const Facts& facts) {
  if (facts.node.devices().empty()) return NoDevices();
  Json devices = Json::array();
  size_t with = 0;
  for (const v1::Device& device : facts.node.devices()) {
    Json ids = Json::array();
    size_t found = 0;
    for (const v1::Channel& channel : device.channels()) {
      ids.push_back(channel.id());
      found += channel.id() == kStepTrace || channel.id() == kStarsLog ? 1 : 0;
    }
    with += found == 2 ? 1 : 0;
    devices.push_back({{"device", device.id()}, {"chip", device.chip()}, {"channels", ids}});
  }
  const auto all = static_cast<size_t>(facts.node.devices_size());
  return YesOrNo(with == all, fmt::format("{} of {} devices list both", with, all), {{"devices", devices}});
}

Answer AskRecordLayouts(const Facts& facts) {
  uint64_t bytes = 0;
  uint64_t garbage = 0;
  struct Sum {
    std::string name;
    uint64_t devices = 0;
    uint64_t bytes = 0;
    uint64_t records = 0;
    uint64_t garbage = 0;
  };
  std::map<uint32_t, Sum> sums;
  for (const v1::Device& device : Busiest(facts).devices()) {
    for (const v1::Channel& channel : device.channels()) {
      if (channel.bytes() == 0) continue;
      bytes += channel.bytes();
      garbage += channel.garbage_bytes();
      Sum& sum = sums[channel.id()];
      sum.name = channel.name();
      ++sum.devices;
      sum.bytes += channel.bytes();
      sum.records += channel.records();
      sum.garbage += channel.garbage_bytes();
    }
  }
  Json channels = Json::array();
  for (const auto& [id, sum] : sums) {
    channels.push_back({{"channel", id}, {"name", sum.name}, {"devices", sum.devices}, {"bytes", sum.bytes}, {"records", sum.records}, {"garbage_bytes", sum.garbage}});
  }
  if (bytes == 0) return Open("no channel has delivered anything yet: profctl selftest --active runs them for 5 s");
  return YesOrNo(garbage == 0, garbage == 0 ? fmt::format("{}, {} bytes", CountText(channels.size(), "channel"), bytes) : fmt::format("{} of {} bytes are not records", garbage, bytes),
             {{"channels", channels}});
}

Answer AskChannelsFree(const Facts& facts) {
  if (facts.node.devices().empty()) return NoDevices();
  Json held = Json::array();
  Json failed = Json::array();
  size_t used = 0;
  for (const v1::Device& device : Busiest(facts).devices()) {
    for (const v1::Channel& channel : device.channels()) {
      used += channel.state() == v1::Channel::STATE_RUNNING ? 1 : 0;
      Json* list = channel.state() == v1::Channel::STATE_BUSY ? &held : channel.state() == v1::Channel::STATE_FAILED ? &failed : nullptr;
      if (list != nullptr) list->push_back({{"device", device.id()}, {"channel", channel.id()}, {"name", channel.name()}, {"detail", channel.detail()}});
    }
  }
  const Json evidence = {{"running", used}, {"held", held}, {"failed", failed}};
  if (!held.empty()) return YesOrNo(false, fmt::format("{} are held by another program", held.size()), evidence);
  if (used == 0) return Open("none is in use now: profctl selftest --active starts them");
  return YesOrNo(true, fmt::format("{} run, none is refused", used), evidence);
}

Answer AskClockPairs(const Facts& facts) {
  Json pairs = Json::array();
  int64_t worst = 0;
  for (const v1::Device& device : Busiest(facts).devices()) {
    if (!device.has_clock() || device.clock().host_ns() == 0) continue;
    worst = std::max(worst, device.clock().uncertainty_ns());
    pairs.push_back({{"device", device.id()}, {"counter_hz", device.counter_hz()}, {"host_ns", device.clock().host_ns()},
                     {"device_ns", device.clock().device_ns()}, {"device_count", device.clock().device_count()},
                     {"uncertainty_ns", device.clock().uncertainty_ns()}});
  }
  if (pairs.empty()) return Open("no clock was read yet: profctl selftest --active starts a session");
  return YesOrNo(worst <= kGoodPairNs, fmt::format("the worst of {} is known to {:.1f} us", pairs.size(), static_cast<double>(worst) / 1e3), {{"pairs", pairs}});
}

Answer AskCallsReturn(const Facts& facts) {
  if (facts.node.devices().empty()) return NoDevices();
  Json stuck = Json::array();
  for (const v1::Device& device : Busiest(facts).devices()) {
    for (const int flag : device.health().flags()) {
      if (flag != v1::Health::FLAG_HUNG && flag != v1::Health::FLAG_STUCK) continue;
      stuck.push_back({{"device", device.id()}, {"flag", EnumWord(static_cast<v1::Health::Flag>(flag))}, {"problem", device.problem()}});
    }
  }
  const double hours = static_cast<double>(facts.node.uptime_ns()) / 3.6e12;
  return YesOrNo(stuck.empty(), stuck.empty() ? fmt::format("in the {:.1f} h since profd started", hours) : "calls hang", {{"stuck", stuck}, {"hours", hours}});
}

Answer AskDeviceNodes(const Facts& facts) {
  Json nodes = Json::array();
  size_t may = 0;
  std::vector<std::string> names = {"davinci_manager", "devmm_svm", "hisi_hdc"};
  for (int number = 0; number < kMostDevices; ++number) names.push_back(fmt::format("davinci{}", number));
  for (const std::string& name : names) {
    const std::string path = facts.dev + "/" + name;
    struct stat info {};
    if (::stat(path.c_str(), &info) != 0) continue;
    const bool allowed = ::access(path.c_str(), R_OK | W_OK) == 0;
    may += allowed ? 1 : 0;
    nodes.push_back({{"node", name}, {"mode", fmt::format("{:04o}", info.st_mode & 07777)}, {"gid", info.st_gid}, {"root", info.st_uid == 0}, {"allowed", allowed}});
  }
  if (nodes.empty()) return Open("there are none below " + facts.dev);
  return YesOrNo(may == nodes.size(), fmt::format("{} of {}", may, nodes.size()), {{"nodes", nodes}, {"as_root", ::geteuid() == 0}});
}

}  // namespace profd::client::selftest
