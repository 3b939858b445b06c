#pragma once

#include <cstdint>
#include <ctime>

namespace profd::lib::mspti {

inline int64_t ReadClock(clockid_t clock) {
  timespec now{};
  ::clock_gettime(clock, &now);
  return int64_t{now.tv_sec} * 1'000'000'000 + now.tv_nsec;
}

// The same moment on both clocks: the vendor's library speaks CLOCK_REALTIME, profd
// CLOCK_MONOTONIC_RAW.
struct ClockPair {
  int64_t real_ns = 0;
  int64_t raw_ns = 0;

  static ClockPair Now() {
    const int64_t before = ReadClock(CLOCK_MONOTONIC_RAW);
    const int64_t real = ReadClock(CLOCK_REALTIME);
    const int64_t after = ReadClock(CLOCK_MONOTONIC_RAW);
    return {real, before + (after - before) / 2};
  }
  // Without overflow: any 64 bits may be a time of the vendor's.
  int64_t ToRaw(uint64_t vendor_real_ns) const {
    return static_cast<int64_t>(vendor_real_ns - static_cast<uint64_t>(real_ns) +
                                static_cast<uint64_t>(raw_ns));
  }
};

}  // namespace profd::lib::mspti
