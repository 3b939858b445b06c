// A device's own clocks: CLOCK_MONOTONIC_RAW shifted and drifting by a few ppm against the host's,
// and a system counter on the same crystal. Pure functions of the host's CLOCK_MONOTONIC_RAW.
#pragma once

#include <cstdint>

#include "sim/noise.h"

namespace profd::sim {

class DeviceClock {
 public:
  DeviceClock(uint64_t seed, int device, int64_t counter_hz)
      : ns_per_tick_(1'000'000'000 / counter_hz) {
    const auto d = static_cast<uint64_t>(device);
    offset_ns_ =
        static_cast<int64_t>(Hash(seed, kNoiseClock, d, 0) % 3'600'000'000'000ULL) + 1'000'000'000;
    drift_ppb_ = static_cast<int64_t>(Hash(seed, kNoiseClock, d, 1) % 10'001) - 5'000;
    counter_offset_ = Hash(seed, kNoiseClock, d, 2) % 1'000'000'000'000ULL;
  }

  int64_t FromHost(int64_t raw_ns) const { return raw_ns + offset_ns_ + Drift(raw_ns); }
  // Inverse of FromHost to within 1 ns.
  int64_t ToHost(int64_t device_ns) const {
    const int64_t shifted = device_ns - offset_ns_;
    return shifted - Drift(shifted - Drift(shifted));
  }
  uint64_t Counter(int64_t device_ns) const {
    return static_cast<uint64_t>(device_ns / ns_per_tick_) + counter_offset_;
  }
  int64_t offset_ns() const { return offset_ns_; }
  int64_t drift_ppb() const { return drift_ppb_; }

 private:
  int64_t Drift(int64_t ns) const { return ns / 1'000 * drift_ppb_ / 1'000'000; }

  int64_t ns_per_tick_;
  int64_t offset_ns_;
  int64_t drift_ppb_;
  uint64_t counter_offset_;
};

}  // namespace profd::sim
