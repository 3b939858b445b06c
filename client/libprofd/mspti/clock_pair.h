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

  static ClockPair Now() { return Of(ReadClock); }

  // Of several pairs the one with the shortest time between its reads: on a crowded host a thread may
  // wait milliseconds between two reads, and every record of a buffer would be off by half of it.
  // `read` answers for a clockid_t as ReadClock does. Mostly one round, 0.1 us.
  template <typename Read>
  static ClockPair Of(Read read) {
    constexpr int kRounds = 8;
    constexpr int64_t kCloseNs = 1'000;
    ClockPair best;
    int64_t least = INT64_MAX;
    for (int round = 0; round < kRounds && least > kCloseNs; ++round) {
      const int64_t before = read(CLOCK_MONOTONIC_RAW);
      const int64_t real = read(CLOCK_REALTIME);
      const int64_t gap = read(CLOCK_MONOTONIC_RAW) - before;
      if (gap >= least) continue;
      least = gap;
      best = {real, before + gap / 2};
    }
    return best;
  }

  // Without overflow: any 64 bits may be a time of the vendor's.
  int64_t ToRaw(uint64_t vendor_real_ns) const {
    return static_cast<int64_t>(vendor_real_ns - static_cast<uint64_t>(real_ns) +
                                static_cast<uint64_t>(raw_ns));
  }
};

}  // namespace profd::lib::mspti
