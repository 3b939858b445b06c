// AI Core counters. profd does not collect them; it reads them in the vendor's dumps.
#pragma once

#include <array>

#include "driver/records/record.h"

namespace profd::records {

// Of tasks; and sample-based ones, in files of the same names: sample.json has the mode.
inline constexpr uint16_t kTaskPmuRecordBytes = 128;

template <size_t kEventCount, uint8_t kLastAicore>
struct AicoreSampleOf {
  static constexpr uint8_t kLastAicoreId = kLastAicore;  // above: AI Vector cores

  uint8_t mode;  // not 0
  uint8_t reserved_1;
  uint16_t reserved_2[3];
  std::array<uint64_t, kEventCount> events;
  uint64_t cycles;
  uint64_t timestamp;  // ns of the device's clock; of AicoreSampleV6, cycles of its counter
  uint8_t event_count;
  uint8_t core;
  uint8_t reserved_3[6];
};
using AicoreSample = AicoreSampleOf<8, 24>;
using AicoreSampleV6 = AicoreSampleOf<10, 35>;  // chips 15 and 16
static_assert(sizeof(AicoreSample) == 96 && offsetof(AicoreSample, core) == 89);
static_assert(sizeof(AicoreSampleV6) == 112);

}  // namespace profd::records
