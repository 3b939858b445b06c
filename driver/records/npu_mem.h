// Device memory in use: of the application (channel 130), and of all (131).
#pragma once

#include "driver/abi/hal_abi.h"
#include "driver/records/record.h"

namespace profd::records {

struct NpuMemRecord {
  static constexpr uint32_t kKinds = 2;  // 0 application, 1 device

  uint32_t timestamp;  // us since the start of the device's session; wraps
  uint32_t kind;
  uint64_t epoch_ns;  // record version "2.0": the timestamp
  uint64_t ddr_bytes;
  uint64_t hbm_bytes;

  bool IsPlausible() const {
    return kind < kKinds && ddr_bytes < kMaxMemoryBytes && hbm_bytes < kMaxMemoryBytes;
  }
};
static_assert(sizeof(NpuMemRecord) == 32);

constexpr abi::ChannelFormat NpuMemFormat(uint32_t id, std::string_view name,
                                          std::string_view file) {
  return {
      .id = id,
      .name = name,
      .file = file,
      .framing = abi::Framing::kBinary,
      .record_size = sizeof(NpuMemRecord),
      .time = abi::TimeKind::kMicrosSinceStart,
      .timestamp = {offsetof(NpuMemRecord, timestamp), sizeof(NpuMemRecord::timestamp)},
      .thinning = abi::Thinning::kPick,
      .key_offset = offsetof(NpuMemRecord, kind),
      .key_length = sizeof(NpuMemRecord::kind),
      .plausible = IsPlausible<NpuMemRecord>,
  };
}
inline constexpr abi::ChannelFormat kNpuAppMemFormat =
    NpuMemFormat(abi::kChannelNpuAppMem, "npu_app_mem", "npu_mem.app");
inline constexpr abi::ChannelFormat kNpuMemFormat =
    NpuMemFormat(abi::kChannelNpuMem, "npu_mem", "npu_mem.data");

}  // namespace profd::records
