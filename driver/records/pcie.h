// PCIe bandwidth (bytes per us) and read latency (ns) since the last record, by kind of
// transaction.
#pragma once

#include <algorithm>
#include <array>

#include "driver/abi/hal_abi.h"
#include "driver/records/record.h"

namespace profd::records {

struct PcieRecord {
  static constexpr uint32_t kMaxDevices = 1024;
  static constexpr uint32_t kNoMinimum = 0xFFFFF;  // there was nothing to measure
  static constexpr uint32_t kMaxValue = 1u << 24;  // 16 TB/s, 17 ms

  struct Stats {
    uint32_t min;
    uint32_t max;
    uint32_t avg;
    uint32_t Minimum() const { return min == kNoMinimum ? 0 : min; }
  };
  static constexpr size_t kLatency = 3;  // of the groups, what is a latency

  uint64_t timestamp;  // ns of the device's monotonic clock
  uint32_t device;
  // tx posted, nonposted, completion; latency of tx nonposted; rx posted, nonposted, completion.
  std::array<Stats, 7> groups;

  // The vendor's readers leave out records whose tx posted maximum is below the minimum, those of an idle link (no
  // minimum, all 0) with them. An idle link is no reason for a value to go away.
  bool HasValues() const { return groups[0].max >= groups[0].Minimum(); }
  bool IsPlausible() const { return device < kMaxDevices; }
  bool IsUsual() const {
    return IsPlausible() && std::ranges::all_of(groups, [](const Stats& s) {
             return s.min <= kMaxValue && s.max <= kMaxValue && s.avg <= kMaxValue;
           });
  }
};
static_assert(sizeof(PcieRecord) == 96);

inline constexpr abi::ChannelFormat kPcieFormat = {
    .id = abi::kChannelPcie,
    .name = "pcie",
    .file = "pcie.data",
    .framing = abi::Framing::kBinary,
    .record_size = sizeof(PcieRecord),
    .time = abi::TimeKind::kDeviceMonotonicNs,
    .timestamp = {offsetof(PcieRecord, timestamp), sizeof(PcieRecord::timestamp)},
    .thinning = abi::Thinning::kPick,
    .key_offset = offsetof(PcieRecord, device),
    .key_length = sizeof(PcieRecord::device),
    .plausible = IsPlausible<PcieRecord>,
    .usual = IsUsual<PcieRecord>,
};

}  // namespace profd::records
