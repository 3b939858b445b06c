// Device memory reserved by a software module: one record per module and period.
#pragma once

#include <algorithm>
#include <array>
#include <limits>
#include <string_view>

#include "driver/abi/hal_abi.h"
#include "driver/records/record.h"

namespace profd::records {

// The vendor's names by number, with nothing between two commas where there is none (dump-format 2.10).
inline constexpr std::string_view kModuleNames =
    "SLOG,IDEDD,SCC,HCCL,FMK,CCU,DVPP,RUNTIME,CCE,HDC,DRV,NET,,,,,,,,,,,DEVMM,KERNEL,LIBMEDIA,CCECPU,,ROS,HCCP,ROCE,"
    "TEFUSION,PROFILING,DP,APP,TS,TSDUMP,AICPU,LP,TDT,FE,MD,MB,ME,IMU,IMP,GE,,CAMERA,ASCENDCL,TEEOS,ISP,SIS,HSM,DSS,"
    "PROCMGR,BBOX,AIVECTOR,TBE,FV,,TUNE,HSS,FFTS,OP,UDF,HICAID,TSYNC,AUDIO,TPRT,ASCENDCKERNEL,ASYS,ATRACE,RTC,"
    "SYSMONITOR,AMP,ADETECT,MBUFF,CUSTOM";

// The same, each for itself.
inline constexpr auto kModules = [] {
  std::array<std::string_view, 1 + std::ranges::count(kModuleNames, ',')> names;
  std::string_view rest = kModuleNames;
  for (std::string_view& name : names) {
    name = rest.substr(0, rest.find(','));
    rest.remove_prefix(std::min(name.size() + 1, rest.size()));
  }
  return names;
}();
// Empty for one that has none.
constexpr std::string_view ModuleName(uint64_t module) {
  return module < kModules.size() ? kModules[module] : std::string_view();
}
static_assert(ModuleName(22) == "DEVMM" && ModuleName(33) == "APP" && ModuleName(47) == "CAMERA" && ModuleName(52) == "HSM" &&
              ModuleName(60) == "TUNE" && ModuleName(69) == "ASCENDCKERNEL" && ModuleName(77) == "CUSTOM" &&
              ModuleName(12).empty() && ModuleName(59).empty() && ModuleName(78).empty());

struct ModuleMemRecord {
  static constexpr uint32_t kMaxModules = 4096;

  uint32_t module;
  uint32_t reserved;
  uint64_t timestamp;  // cycles of the host's counter
  uint64_t bytes;  // see IsKnown

  bool IsKnown() const {
    return bytes <= static_cast<uint64_t>(std::numeric_limits<int64_t>::max());
  }
  bool IsPlausible() const {
    return module < kMaxModules && (!IsKnown() || bytes < kMaxMemoryBytes);
  }
};
static_assert(sizeof(ModuleMemRecord) == 24);

inline constexpr abi::ChannelFormat kModuleMemFormat = {
    .id = abi::kChannelNpuModuleMem,
    .name = "npu_module_mem",
    .file = "npu_module_mem.data",
    .framing = abi::Framing::kBinary,
    .record_size = sizeof(ModuleMemRecord),
    .time = abi::TimeKind::kHostCounter,
    .timestamp = {offsetof(ModuleMemRecord, timestamp), sizeof(ModuleMemRecord::timestamp)},
    .thinning = abi::Thinning::kPick,
    .key_offset = offsetof(ModuleMemRecord, module),
    .key_length = sizeof(ModuleMemRecord::module),
    .plausible = IsPlausible<ModuleMemRecord>,
};

}  // namespace profd::records
