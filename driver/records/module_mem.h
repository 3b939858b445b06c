// Device memory reserved by a software module: one record per module and period.
#pragma once

#include <limits>

#include "driver/abi/hal_abi.h"
#include "driver/records/record.h"

namespace profd::records {

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
