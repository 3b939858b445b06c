// DDR traffic: one record per controller, direction and period; and, beside it, of single masters.
#pragma once

#include "driver/abi/hal_abi.h"
#include "driver/records/record.h"

namespace profd::records {

struct DdrRecord {
  static constexpr uint32_t kEvents = 2;  // 0 read, 1 write
  static constexpr uint32_t kMaxControllers = 64;

  uint32_t timestamp;  // us since the start of the device's session; wraps
  uint32_t count;  // accesses of the bus' width since the last record
  uint32_t event;
  uint32_t controller;
  uint32_t master;  // abi::kAllMasters: all of them together

  bool IsPlausible() const { return event < kEvents && controller < kMaxControllers; }
};
static_assert(sizeof(DdrRecord) == 20);

// Width of the bus of one controller.
constexpr int DdrBits(int chip) { return chip >= 1 && chip <= 4 ? 256 : 128; }

inline constexpr abi::ChannelFormat kDdrFormat = {
    .id = abi::kChannelDdr,
    .name = "ddr",
    .file = "ddr.data",
    .framing = abi::Framing::kBinary,
    .record_size = sizeof(DdrRecord),
    .time = abi::TimeKind::kMicrosSinceStart,
    .timestamp = {offsetof(DdrRecord, timestamp), sizeof(DdrRecord::timestamp)},
    .thinning = abi::Thinning::kSum,
    .count = {offsetof(DdrRecord, count), sizeof(DdrRecord::count)},
    .key_offset = offsetof(DdrRecord, event),
    .key_length = sizeof(DdrRecord::event) + sizeof(DdrRecord::controller),
    .plausible = IsPlausible<DdrRecord>,
};

}  // namespace profd::records
