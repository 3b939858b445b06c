// Last level cache: one record per slice, PMU event and period.
#pragma once

#include <algorithm>
#include <array>

#include "driver/abi/hal_abi.h"
#include "driver/records/record.h"

namespace profd::records {

// Event codes by their number in the formulas, for llc_profiling = read and write.
inline constexpr size_t kLlcEvents = 8;
inline constexpr std::array<std::array<uint32_t, kLlcEvents>, 2> kLlcEventCodes = {{
    {0x00, 0x01, 0x02, 0x13, 0x20, 0x22, 0x34, 0x36},
    {0x00, 0x01, 0x03, 0x14, 0x21, 0x23, 0x35, 0x37},
}};

struct LlcRecord {
  static constexpr uint32_t kMaxSlices = 16;

  uint64_t timestamp;  // us since the start of the device's session
  uint64_t count;  // since the last record
  uint32_t event;  // a code
  uint32_t slice;

  bool IsPlausible() const {
    auto has = [this](const auto& codes) {
      return std::ranges::find(codes, event) != codes.end();
    };
    return slice < kMaxSlices && (has(kLlcEventCodes[0]) || has(kLlcEventCodes[1]));
  }
};
static_assert(sizeof(LlcRecord) == 24);

// Record version "2.0".
struct LlcRecordV2 {
  uint32_t reserved;
  uint32_t count;
  uint32_t event;
  uint32_t slice;
  uint64_t timestamp;  // ns since the epoch
};
static_assert(sizeof(LlcRecordV2) == 24);

inline constexpr abi::ChannelFormat kLlcFormat = {
    .id = abi::kChannelLlc,
    .name = "llc",
    .file = "llc.data",
    .framing = abi::Framing::kBinary,
    .record_size = sizeof(LlcRecord),
    .time = abi::TimeKind::kMicrosSinceStart,
    .timestamp = {offsetof(LlcRecord, timestamp), sizeof(LlcRecord::timestamp)},
    .thinning = abi::Thinning::kSum,
    .count = {offsetof(LlcRecord, count), sizeof(LlcRecord::count)},
    .key_offset = offsetof(LlcRecord, event),
    .key_length = sizeof(LlcRecord::event) + sizeof(LlcRecord::slice),
    .plausible = IsPlausible<LlcRecord>,
};

}  // namespace profd::records
