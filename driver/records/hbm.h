// HBM traffic: one record per stack, direction and period.
#pragma once

#include "driver/abi/hal_abi.h"
#include "driver/records/record.h"

namespace profd::records {

struct HbmRecord {
  static constexpr uint32_t kEvents = 2;  // 0 read, 1 write
  static constexpr uint32_t kMaxStacks = 64;

  uint64_t timestamp;  // us since the start of the device's session
  uint64_t count;  // accesses of 32 bytes since the last record
  uint32_t event;
  uint32_t stack;

  bool IsPlausible() const { return event < kEvents && stack < kMaxStacks; }
};
static_assert(sizeof(HbmRecord) == 24);

// Record version "2.0".
struct HbmRecordV2 {
  uint32_t reserved[2];
  uint32_t event;
  uint32_t stack;
  uint64_t count;
  uint64_t timestamp;  // ns since the epoch
};
static_assert(sizeof(HbmRecordV2) == 32);

inline constexpr abi::ChannelFormat kHbmFormat = {
    .id = abi::kChannelHbm,
    .name = "hbm",
    .file = "hbm.data",
    .framing = abi::Framing::kBinary,
    .record_size = sizeof(HbmRecord),
    .time = abi::TimeKind::kMicrosSinceStart,
    .timestamp = {offsetof(HbmRecord, timestamp), sizeof(HbmRecord::timestamp)},
    .thinning = abi::Thinning::kSum,
    .count = {offsetof(HbmRecord, count), sizeof(HbmRecord::count)},
    .key_offset = offsetof(HbmRecord, event),
    .key_length = sizeof(HbmRecord::event) + sizeof(HbmRecord::stack),
    .plausible = IsPlausible<HbmRecord>,
};

}  // namespace profd::records
