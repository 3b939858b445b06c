// The device side in fast motion: everything the simulator counts from is CLOCK_MONOTONIC_RAW as it
// would stand had it run `scale` times as fast since the start of the process. Scale 1 is the real
// clock.
#pragma once

#include <cstdint>
#include <ctime>

#include "base/clock.h"

namespace profd::sim {

class PlayedTime {
 public:
  PlayedTime(int64_t epoch_raw_ns, int64_t scale) : epoch_ns_(epoch_raw_ns), scale_(scale) {}

  int64_t FromReal(int64_t raw_ns) const { return epoch_ns_ + (raw_ns - epoch_ns_) * scale_; }
  int64_t ToReal(int64_t played_ns) const { return epoch_ns_ + (played_ns - epoch_ns_) / scale_; }
  // How long to wait for so much played time to pass; never too short.
  int64_t WaitFor(int64_t played_ns) const { return (played_ns + scale_ - 1) / scale_; }
  int64_t epoch_ns() const { return epoch_ns_; }
  int64_t scale() const { return scale_; }

 private:
  int64_t epoch_ns_;
  int64_t scale_;
};

// From the kernel itself: what the C library answers may have been put in fast motion already, for
// the process that runs the simulator (tests/faults/libs/fast_clock.cc).
int64_t ReadKernelClock(clockid_t id);

// CLOCK_MONOTONIC_RAW by ReadKernelClock.
class KernelClock final : public Clock {
 public:
  int64_t MonotonicRawNs() const override { return ReadKernelClock(CLOCK_MONOTONIC_RAW); }
  int64_t SteadyNs() const override { return system_.SteadyNs(); }
  int64_t WallNs() const override { return system_.WallNs(); }
  uint64_t CpuCounter() const override { return system_.CpuCounter(); }

 private:
  SystemClock system_;
};

}  // namespace profd::sim
