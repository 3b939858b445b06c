// Host and device clocks read as nearly together as the driver allows (driver-abi 5.5).
#pragma once

#include <cstdint>

#include "base/clock.h"
#include "base/status.h"
#include "driver/hal_library.h"

namespace profd {

struct ClockPair {
  int64_t host_ns = 0;        // host CLOCK_MONOTONIC_RAW
  int64_t device_ns = 0;      // device CLOCK_MONOTONIC_RAW; the host's where it cannot be asked
  uint64_t device_count = 0;  // device system counter; 0 where it cannot be asked
  uint64_t host_count = 0;    // Clock::CpuCounter
  // The device was read somewhere within host_ns +- this.
  int64_t uncertainty_ns = 0;
};

// 5 reads to warm up, then the best of 5 rounds. Ten-odd driver calls; they may hang.
Result<ClockPair> CorrelateDeviceClock(const HalLibrary& hal, uint32_t device, const Clock& clock);

// Timestamps that count from `start_ns` of the host's clock count the device's time, which drifts from the host's by
// seconds in days: the start from which they are right by the time of `now`. `before`: an earlier pair. A clock that
// began anew has not drifted.
int64_t DriftedStart(int64_t start_ns, const ClockPair& before, const ClockPair& now);

// Host clock and counter only; device fields stay 0.
ClockPair CorrelateHostClock(const Clock& clock);

}  // namespace profd
