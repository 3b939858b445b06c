// CLOCK_REALTIME of a record: a pair of clocks that is taken again every 7 s, each time with an
// error of up to 5 us, so that times step a little now and then, backwards too.
#pragma once

#include <cstdint>

#include "base/clock.h"
#include "base/mutex.h"

namespace profd::sim::mspti {

inline constexpr int64_t kPairPeriodNs = 7 * kNsPerSecond;
inline constexpr int64_t kLargestStepNs = 5'000;

// The error of the n-th pair.
int64_t PairErrorNs(int64_t n);

class RealTime {
 public:
  static RealTime& The();

  uint64_t FromRaw(int64_t raw_ns);
  // MsprofSysCycleTime: either CLOCK_MONOTONIC_RAW or the CPU's counter.
  int64_t RawFromHost(uint64_t host);
  uint64_t FromHost(uint64_t host) { return FromRaw(RawFromHost(host)); }
  uint64_t Now() { return FromRaw(clock_.MonotonicRawNs()); }

 private:
  RealTime();

  const SystemClock clock_;
  int64_t first_raw_ns_;
  uint64_t host_counter_hz_ = 0;  // 0: host times are CLOCK_MONOTONIC_RAW
  uint64_t first_counter_ = 0;
  Mutex mutex_;
  int64_t pair_ GUARDED_BY(mutex_) = -1;
  int64_t offset_ns_ GUARDED_BY(mutex_) = 0;
};

}  // namespace profd::sim::mspti
