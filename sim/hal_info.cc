#include "sim/hal_info.h"

#include <cstring>

#include "driver/abi/hal_abi.h"
#include "sim/emitters.h"
#include "sim/host_counter.h"

namespace profd::sim {

int HalInfo::Check(uint32_t device) {
  if (!node_.HasDevice(device)) return abi::kDrvErrorInvalidDevice;
  wait_.WhileHanging(node_, static_cast<int>(device));
  const bool missing = node_.faults().Drop(DropMode::kMissing, node_.ScenarioNow(),
                                           static_cast<int>(device)) != nullptr;
  return missing ? abi::kDrvErrorNoDevice : abi::kDrvErrorNone;
}

int HalInfo::DeviceStatus(uint32_t device, int* status) {
  if (status == nullptr) return abi::kDrvErrorInvalidDevice;
  const int code = Check(device);
  if (code == abi::kDrvErrorInvalidDevice) return code;
  *status = code == abi::kDrvErrorNone ? abi::kDrvStatusWork : abi::kDrvStatusCommunicationLost;
  return abi::kDrvErrorNone;
}

int HalInfo::DeviceInfo(uint32_t device, int32_t module, int32_t info, int64_t* value) {
  if (value == nullptr) return abi::kDrvErrorInvalidDevice;
  if (const int code = Check(device); code != abi::kDrvErrorNone) return code;
  return module == abi::kModuleSystem ? SystemInfo(device, info, value)
                                      : CoreInfo(device, module, info, value);
}

int HalInfo::SystemInfo(uint32_t device, int32_t info, int64_t* value) {
  const DeviceClock& clock = node_.device_clock(device);
  const auto per_card = static_cast<unsigned>(node_.chip().devices_per_card);
  const auto answer = [value](int64_t number) {
    *value = number;
    return abi::kDrvErrorNone;
  };
  switch (info) {
    case abi::kInfoEnv:
      return answer(3);  // none of the pre-silicon environments
    case abi::kInfoVersion:
      return answer(int64_t{node_.chip().chip_id} << 8);
    case abi::kInfoMonotonicRaw:
      return answer(clock.FromHost(node_.RawNow()));
    case abi::kInfoSysCount:
      return answer(static_cast<int64_t>(clock.Counter(clock.FromHost(node_.RawNow()))));
    case abi::kInfoHostOscFreque:
      return answer(ReportedHostCounterHz(node_.clock(), node_.played().scale()) / 1'000);
    case abi::kInfoDevOscFreque:
      return answer(node_.chip().counter_hz / 1'000);
    case abi::kInfoPhyChipId:
      return answer(device / per_card);
    case abi::kInfoPhyDieId:
      return answer(device % per_card);
    default:
      return abi::kDrvErrorNotSupport;
  }
}

int HalInfo::CoreInfo(uint32_t device, int32_t module, int32_t info, int64_t* value) {
  struct Row {
    int32_t module;
    int32_t info;
    int64_t value;
  };
  const ChipSpec& chip = node_.chip();
  constexpr int64_t kNone = -1;  // this chip has no vector cores of their own
  const bool vector = chip.aiv_cores > 0;
  const int64_t t = node_.ScenarioNow();
  const Row rows[] = {
      {abi::kModuleCcpu, abi::kInfoId, 0},
      {abi::kModuleCcpu, abi::kInfoCoreNum, 1},
      {abi::kModuleCcpu, abi::kInfoEndian, 1},
      {abi::kModuleAicpu, abi::kInfoCoreNum, chip.aicpu_cores},
      {abi::kModuleAicpu, abi::kInfoId, 1},
      {abi::kModuleAicpu, abi::kInfoOccupy, ((int64_t{1} << chip.aicpu_cores) - 1) << 1},
      {abi::kModuleTscpu, abi::kInfoCoreNum, 1},
      {abi::kModuleAicore, abi::kInfoCoreNum, chip.aic_cores},
      {abi::kModuleAicore, abi::kInfoId, 0},
      {abi::kModuleAicore, abi::kInfoFreque, chip.aic_mhz},
      {abi::kModuleAicore, abi::kInfoCurrentFreq, node_.model(device).AicoreMhz(t)},
      {abi::kModuleVectorCore, abi::kInfoCoreNum, vector ? int64_t{chip.aiv_cores} : kNone},
      {abi::kModuleVectorCore, abi::kInfoFreque, vector ? int64_t{chip.aic_mhz} : kNone},
  };
  for (const Row& row : rows) {
    if (row.module != module || row.info != info || row.value < 0) continue;
    *value = row.value;
    return abi::kDrvErrorNone;
  }
  return abi::kDrvErrorNotSupport;
}

int HalInfo::DeviceInfoByBuff(uint32_t device, int32_t module, int32_t info, void* buf,
                              int32_t* size) {
  if (buf == nullptr || size == nullptr) return abi::kDrvErrorInvalidDevice;
  if (const int code = Check(device); code != abi::kDrvErrorNone) return code;
  const std::span<const QosStream> streams = QosStreams(node_.chip());
  if (module != abi::kModuleQos || info != abi::kInfoConfig || streams.empty() ||
      *size < static_cast<int32_t>(sizeof(abi::QosProfileInfo))) {
    return abi::kDrvErrorNotSupport;
  }
  abi::QosProfileInfo config;
  std::memcpy(&config, buf, sizeof config);
  config.stream_name[sizeof config.stream_name - 1] = '\0';
  // With an id given, stream_num selects one of mpam_id, from 0.
  const bool by_id = config.mode == abi::kQosModeIdToName;
  if (by_id && config.stream_num >= abi::kMaxMpamIds) return abi::kDrvErrorNotSupport;
  const int asked = by_id ? config.mpam_id[config.stream_num] : -1;
  uint16_t found = 0;
  for (const QosStream& stream : streams) {
    if (config.mode == abi::kQosModeListIds ||
        (config.mode == abi::kQosModeNameToId && stream.name == config.stream_name)) {
      config.mpam_id[found++] = stream.mpam_id;
    } else if (asked == stream.mpam_id) {
      std::memset(config.stream_name, 0, sizeof config.stream_name);
      std::memcpy(config.stream_name, stream.name.data(), stream.name.size());
      found = 1;
    }
  }
  if (found == 0) return abi::kDrvErrorNotSupport;
  config.stream_num = found;
  std::memcpy(buf, &config, sizeof config);
  *size = sizeof config;
  return abi::kDrvErrorNone;
}

int HalInfo::SplitMode(uint32_t device, unsigned* mode) {
  if (mode == nullptr) return abi::kDrvErrorInvalidDevice;
  if (const int code = Check(device); code != abi::kDrvErrorNone) return code;
  *mode = 0;
  return abi::kDrvErrorNone;
}

int HalInfo::PhyId(uint32_t device, uint32_t* phy_id) {
  if (phy_id == nullptr || !node_.HasDevice(device)) return abi::kDrvErrorInvalidDevice;
  *phy_id = device;
  return abi::kDrvErrorNone;
}

}  // namespace profd::sim
