// The host CPU's counter (cntvct_el0, TSC) as the driver knows it: its frequency and its value at a
// given CLOCK_MONOTONIC_RAW.
#pragma once

#include <cstdint>

#include "base/clock.h"

namespace profd::sim {

// Hz. Measured once per process over 10 ms where the CPU does not report it.
int64_t HostCounterHz(const Clock& clock);
// What the driver reports. With `scale` above 1 the process's own clock may be in fast motion, too:
// cycles per second of what the C library calls CLOCK_MONOTONIC_RAW, measured once.
int64_t ReportedHostCounterHz(const Clock& clock, int64_t scale);
uint64_t HostCounterAt(const Clock& clock, int64_t raw_ns);

}  // namespace profd::sim
