// Memory bandwidth of the QoS streams that were asked for, in MB/s.
#pragma once

#include <algorithm>
#include <array>

#include "driver/abi/hal_abi.h"
#include "driver/records/record.h"

namespace profd::records {

struct QosRecord {
  static constexpr uint32_t kMaxMegabytes = 1u << 22;  // of one stream: 4 TB/s

  uint32_t reserved[4];
  uint64_t timestamp;  // cycles of the device's counter
  std::array<uint32_t, 10> streams;

  bool IsUsual() const {
    return std::ranges::all_of(streams, [](uint32_t value) { return value <= kMaxMegabytes; });
  }
};
static_assert(sizeof(QosRecord) == 64);

inline constexpr abi::ChannelFormat kQosFormat = {
    .id = abi::kChannelQos,
    .name = "qos",
    .file = "qos.data",
    .framing = abi::Framing::kBinary,
    .record_size = sizeof(QosRecord),
    .time = abi::TimeKind::kDeviceCounter,
    .timestamp = {offsetof(QosRecord, timestamp), sizeof(QosRecord::timestamp)},
    .thinning = abi::Thinning::kPick,
    .usual = IsUsual<QosRecord>,
};

}  // namespace profd::records
