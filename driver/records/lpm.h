// Changes of the AI Core clock, and of voltages where the chip reports them (lpmFreqConv,
// lpmInfoConv).
#pragma once

#include "driver/abi/hal_abi.h"
#include "driver/records/record.h"

namespace profd::records {

struct LpmEntry {
  uint64_t device_count;
  uint32_t value;
  uint32_t reserved;
};
static_assert(sizeof(LpmEntry) == 16);

// Mostly unused entries: read in place.
class LpmRecord {
 public:
  static constexpr size_t kMaxEntries = 55;
  static constexpr size_t kEntries = 8;  // behind u32 count, u32 type
  static constexpr size_t kTypeAt = 4;
  static constexpr size_t kSize = kEntries + kMaxEntries * sizeof(LpmEntry);

  // Of lpmInfoConv; undefined on chips without voltages.
  enum Type : uint32_t { kFrequencyMhz, kAicoreMillivolts, kBusMillivolts };
  static constexpr size_t kTypes = 3;

  explicit LpmRecord(Bytes record) : record_(record) {}

  uint32_t count() const { return LoadUnchecked<uint32_t>(record_, 0); }
  uint32_t type() const { return LoadUnchecked<uint32_t>(record_, kTypeAt); }
  // `i` is below count(), and that at most kMaxEntries.
  LpmEntry entry(size_t i) const {
    return Read<LpmEntry>(record_.subspan(kEntries + i * sizeof(LpmEntry)));
  }

  bool IsPlausible() const { return count() <= kMaxEntries; }
  // An empty record has no information, and the zeros behind a record's last entry look like one. The type is whatever
  // was in memory on chips without voltages. A counter of full 2^32 is a reserved word and half of the next entry's.
  bool IsUsual() const {
    if (count() == 0 || count() > kMaxEntries) return false;
    for (uint32_t i = 0; i < count(); ++i) {
      const LpmEntry change = entry(i);
      const bool counted = static_cast<uint32_t>(change.device_count) != 0 && change.device_count <= kMaxTimestamp;
      if (!counted || change.value > kMaxValue) return false;
    }
    return true;
  }

 private:
  static constexpr uint32_t kMaxValue = 1'000'000;  // MHz or mV
  Bytes record_;
};
static_assert(LpmRecord::kSize == 888);

inline constexpr abi::ChannelFormat kLpmFormat = {
    .id = abi::kChannelLp,
    .name = "lp",
    .file = "lpmFreqConv.data",
    .framing = abi::Framing::kBinary,
    .record_size = LpmRecord::kSize,
    .time = abi::TimeKind::kDeviceCounter,
    .timestamp = {LpmRecord::kEntries, sizeof(LpmEntry::device_count)},
    .thinning = abi::Thinning::kEvent,
    .key_offset = LpmRecord::kTypeAt,
    .key_length = sizeof(uint32_t),
    .plausible = IsPlausible<LpmRecord>,
    .usual = IsUsual<LpmRecord>,
};

}  // namespace profd::records
