#include "driver/inventory.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cstring>
#include <functional>
#include <memory>
#include <numeric>
#include <span>
#include <utility>

#include "driver/chips.h"

namespace profd {
namespace {

// As many as a record of channel 133 has space for (driver-abi 3.6).
constexpr size_t kMaxQosStreams = 10;

// 0 when the driver does not report it (driver-abi 1.5: a value that cannot be had stays 0).
int64_t Ask(const HalLibrary& hal, uint32_t device, abi::HalModule module, abi::HalInfo info) {
  int64_t value = 0;
  return hal.GetDeviceInfo(device, module, info, &value) == abi::kDrvErrorNone ? value : 0;
}

std::vector<int> BitsOf(int64_t mask) {
  std::vector<int> bits;
  for (int bit = 0; bit < 63; ++bit) {
    if ((mask >> bit & 1) != 0) bits.push_back(bit);
  }
  return bits;
}

int64_t MaskOf(int64_t first, int64_t count) {
  int64_t mask = 0;
  for (int64_t bit = std::max<int64_t>(first, 0); bit < first + count && bit < 63; ++bit) {
    mask |= int64_t{1} << bit;
  }
  return mask;
}

void AskCores(const HalLibrary& hal, bool vector_cores, HalDevice& d) {
  auto ask = [&](abi::HalModule module, abi::HalInfo info) { return Ask(hal, d.id, module, info); };
  d.env_type = ask(abi::kModuleSystem, abi::kInfoEnv);
  const int64_t ctrl_cpus = ask(abi::kModuleCcpu, abi::kInfoCoreNum);
  d.ts_cpu_core_num = ask(abi::kModuleTscpu, abi::kInfoCoreNum);
  const int64_t ai_cpus = ask(abi::kModuleAicpu, abi::kInfoCoreNum);
  d.aicpu_occupy_bitmap = ask(abi::kModuleAicpu, abi::kInfoOccupy);
  d.ai_core_num = ask(abi::kModuleAicore, abi::kInfoCoreNum);
  if (vector_cores) {
    d.aiv_num = ask(abi::kModuleVectorCore, abi::kInfoCoreNum);
    d.aiv_mhz = ask(abi::kModuleVectorCore, abi::kInfoFreque);
  }
  d.ctrl_cpus = BitsOf(MaskOf(0, ctrl_cpus));
  d.ai_cpus = BitsOf(d.aicpu_occupy_bitmap != 0 ? d.aicpu_occupy_bitmap : MaskOf(ctrl_cpus, ai_cpus));
}

void AskClocks(const HalLibrary& hal, int api_version, const ChipFacts* chip, HalDevice& d) {
  int64_t khz = api_version >= abi::kApiOscFreq
                    ? Ask(hal, d.id, abi::kModuleSystem, abi::kInfoDevOscFreque)
                    : 0;
  const bool fixed = chip != nullptr && chip->Has(kChipFixedCounter);
  if (khz > 0 && !fixed) {
    d.counter_hz = static_cast<double>(khz) * 1000;
  } else if (chip != nullptr) {
    d.counter_hz = chip->counter_mhz * 1e6;
  }
  d.aicore_mhz = Ask(hal, d.id, abi::kModuleAicore, abi::kInfoFreque);
  if (d.aicore_mhz <= 0 && chip != nullptr) d.aicore_mhz = chip->aicore_mhz;
}

Status AskChannels(const HalLibrary& hal, HalDevice& d) {
  auto list = std::make_unique<abi::ChannelList>();
  int code = hal.ProfGetChannels(d.id, list.get());
  if (code != abi::kProfOk) {
    return Unavailable(
        fmt::format("device {}: the driver lists no channels [{}]; restart profd once it does", d.id, ProfCodeText(code)));
  }
  if (list->channel_num > abi::kMaxChannels) {
    return Internal(fmt::format("device {}: the driver lists {} channels, at most {} make sense",
                                d.id, list->channel_num, abi::kMaxChannels));
  }
  for (uint32_t i = 0; i < list->channel_num; ++i) {
    const uint32_t id = list->channel[i].channel_id;
    if (id > 0 && id < abi::kMaxChannels) d.channels.push_back(id);
  }
  std::ranges::sort(d.channels);
  d.channels.erase(std::unique(d.channels.begin(), d.channels.end()), d.channels.end());
  if (d.channels.empty()) {
    return Unimplemented(fmt::format("device {}: no sampling channel is enabled", d.id));
  }
  return Status::Ok();
}

std::vector<uint8_t> AskQosStreams(const HalLibrary& hal, uint32_t device) {
  abi::QosProfileInfo info{};
  info.dev_id = device;
  info.mode = abi::kQosModeListIds;
  int32_t size = sizeof info;
  int code = hal.GetDeviceInfoByBuff(device, abi::kModuleQos, abi::kInfoConfig, &info, &size);
  if (code != abi::kDrvErrorNone) return {};
  size_t count = std::min<size_t>(info.stream_num, kMaxQosStreams);
  return {info.mpam_id, info.mpam_id + count};
}

std::string NameQosStream(const HalLibrary& hal, uint32_t device, uint8_t id, uint16_t stream_num) {
  abi::QosProfileInfo info{};
  info.dev_id = device;
  info.stream_num = stream_num;
  info.mode = abi::kQosModeIdToName;
  info.mpam_id[0] = info.mpam_id[stream_num] = id;
  int32_t size = sizeof info;
  int code = hal.GetDeviceInfoByBuff(device, abi::kModuleQos, abi::kInfoConfig, &info, &size);
  if (code != abi::kDrvErrorNone) return "";
  return {info.stream_name, ::strnlen(info.stream_name, sizeof info.stream_name)};
}

std::vector<std::string> NameQosStreams(const HalLibrary& hal, uint32_t device,
                                        std::span<const uint8_t> streams) {
  std::vector<std::string> names;
  for (uint8_t id : streams) {
    std::string name;
    // In this mode some drivers take the number for which of mpam_id is requested, others for how many.
    for (uint16_t number = 0; number <= 1 && name.empty(); ++number) {
      name = NameQosStream(hal, device, id, number);
    }
    // Names end up in a list separated by commas, inside one line of JSON.
    bool usable = !name.empty() && std::ranges::all_of(name, [](char c) {
      return c > 0x20 && c < 0x7f && c != ',' && c != '"' && c != '\\';
    });
    names.push_back(usable ? std::move(name) : "mpam_" + std::to_string(id));
  }
  return names;
}

HalDevice Discover(const HalLibrary& hal, uint32_t id, int api_version) {
  HalDevice d;
  d.id = id;
  if (hal.GetPhysicalId(id, &d.physical_id) != abi::kDrvErrorNone) d.physical_id = id;
  int status = -1;
  int code = hal.GetDeviceStatus(id, &status);
  // A lost device is not queried further: calls for it may hang.
  if (code == abi::kDrvErrorNone && status == abi::kDrvStatusCommunicationLost) {
    d.chip_name = "unknown";
    d.usable = Unavailable(fmt::format("device {}: communication with it is lost; restart profd once it is back", id));
    return d;
  }
  int64_t version = 0;
  code = hal.GetDeviceInfo(id, abi::kModuleSystem, abi::kInfoVersion, &version);
  const ChipFacts* chip = nullptr;
  if (code == abi::kDrvErrorNone) {
    const uint32_t chip_id = abi::ChipIdOf(version);
    chip = FindChip(chip_id);
    d.chip_id = static_cast<int>(chip_id);
    d.chip_name = chip != nullptr ? std::string(chip->name) : fmt::format("chip {}", d.chip_id);
  } else {
    d.chip_name = "unknown";
    // Without an answer to this a device can be read all the same (driver-abi 1.5).
    if (code != abi::kDrvErrorNotSupport) d.usable = StatusOfDrvCode(code, fmt::format("chip of device {}", id));
  }
  const uint32_t features = chip != nullptr ? chip->features : 0;
  AskClocks(hal, api_version, chip, d);
  AskCores(hal, (features & kChipNoVectorCores) == 0, d);
  Status channels = AskChannels(hal, d);
  if (d.usable.ok()) d.usable = channels;
  // Channel 133, or channel 52 where its configuration has the streams.
  if (std::ranges::binary_search(d.channels, uint32_t{abi::kChannelQos}) ||
      (features & kChipStarsQos) != 0) {
    d.qos_streams = AskQosStreams(hal, id);
    d.qos_names = NameQosStreams(hal, id, d.qos_streams);
  }
  return d;
}

// The devices there are, each with its id and as one that has not answered.
HalInventory List(const HalLibrary& hal) {
  HalInventory inventory;
  inventory.api_version = hal.ApiVersion();
  uint32_t count = 0;
  int code = hal.GetDeviceNum(&count);
  if (code != abi::kDrvErrorNone) {
    // A stub library (1.1) returns "not supported": a host without devices, not an error.
    if (code != abi::kDrvErrorNotSupport) inventory.status = StatusOfDrvCode(code, "drvGetDevNum");
    return inventory;
  }
  if (count == 0) return inventory;
  if (count > abi::kMaxHalDevices) {
    inventory.status = Internal(fmt::format("the driver claims {} devices", count));
    return inventory;
  }
  std::array<uint32_t, abi::kMaxHalDevices> ids{};
  code = hal.GetDeviceIds(ids.data(), count);
  if (code == abi::kDrvErrorNotSupport) {
    std::iota(ids.begin(), ids.begin() + count, 0u);
  } else if (code != abi::kDrvErrorNone) {
    inventory.status = StatusOfDrvCode(code, "drvGetDevIDs");
    return inventory;
  }
  for (uint32_t i = 0; i < count; ++i) {
    // An id beyond the driver's own limit cannot be a device; a repeated one would be opened twice.
    bool seen = std::find(ids.begin(), ids.begin() + i, ids[i]) != ids.begin() + i;
    if (ids[i] >= abi::kMaxHalDevices || seen) continue;
    HalDevice& device = inventory.devices.emplace_back();
    device.id = device.physical_id = ids[i];
    device.chip_name = "unknown";
    device.usable = Unavailable(fmt::format(
        "device {} did not answer the driver when profd started: see dmesg and `npu-smi info`; "
        "restart profd once the device is back", ids[i]));
  }
  return inventory;
}

}  // namespace

HalInventory DiscoverDevices(const std::shared_ptr<const HalLibrary>& hal,
                             const StaggerPace& pace) {
  HalInventory inventory = List(*hal);
  const int api_version = inventory.api_version;
  auto found = std::make_shared<std::vector<HalDevice>>(inventory.devices);
  auto host_osc_khz = std::make_shared<int64_t>(0);
  std::vector<std::function<void()>> jobs;
  for (HalDevice& device : *found) {
    jobs.emplace_back([hal, found, &device, api_version] {
      device = Discover(*hal, device.id, api_version);
    });
  }
  if (!jobs.empty() && api_version >= abi::kApiOscFreq) {
    jobs.emplace_back([hal, host_osc_khz] {
      *host_osc_khz = Ask(*hal, 0, abi::kModuleSystem, abi::kInfoHostOscFreque);
    });
  }
  const std::vector<StaggeredEnd> ends = RunStaggered("profd-discover", std::move(jobs), pace);
  for (size_t i = 0; i < ends.size(); ++i) {
    if (ends[i] != StaggeredEnd::kReturned) {
      inventory.threads_left = true;
    } else if (i < found->size()) {
      inventory.devices[i] = std::move((*found)[i]);
    } else {
      inventory.host_osc_khz = *host_osc_khz;
    }
  }
  return inventory;
}

}  // namespace profd
