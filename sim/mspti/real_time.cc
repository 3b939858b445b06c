#include "sim/mspti/real_time.h"

#include <algorithm>

#include "sim/host_counter.h"
#include "sim/mspti/config.h"
#include "sim/mspti/vendor.h"
#include "sim/noise.h"

namespace profd::sim::mspti {

namespace {

// Of several pairs the one with the shortest time between its reads.
int64_t WallMinusRawNs(const Clock& clock) {
  int64_t least = INT64_MAX, difference = 0;
  for (int i = 0; i < 8; ++i) {
    const int64_t before = clock.MonotonicRawNs();
    const int64_t wall = clock.WallNs();
    const int64_t gap = clock.MonotonicRawNs() - before;
    if (gap >= least) continue;
    least = gap;
    difference = wall - (before + gap / 2);
  }
  return difference;
}

}  // namespace

int64_t PairErrorNs(int64_t n) {
  return static_cast<int64_t>(Hash(7, static_cast<uint64_t>(n)) % (2 * kLargestStepNs + 1)) -
         kLargestStepNs;
}

RealTime& RealTime::The() {
  static RealTime* const the = new RealTime;
  return *the;
}

RealTime::RealTime() : first_raw_ns_(clock_.MonotonicRawNs()) {
  // The vendor's way to find out what host times are: look at both.
  const auto host = static_cast<int64_t>(PROFAPI(MsprofSysCycleTime)());
  if (std::abs(host - clock_.MonotonicRawNs()) < kNsPerSecond) return;
  host_counter_hz_ = static_cast<uint64_t>(HostCounterHz(clock_));
  first_counter_ = clock_.CpuCounter();
  first_raw_ns_ = clock_.MonotonicRawNs();
}

int64_t RealTime::RawFromHost(uint64_t host) {
  if (host_counter_hz_ == 0) return static_cast<int64_t>(host);
  const auto ticks = static_cast<int64_t>(host - first_counter_);
  const double ns = static_cast<double>(ticks) * 1e9 / static_cast<double>(host_counter_hz_);
  return first_raw_ns_ + static_cast<int64_t>(ns);
}

uint64_t RealTime::FromRaw(int64_t raw_ns) {
  MutexLock lock(mutex_);
  const int64_t pair =
      std::max<int64_t>(0, (clock_.MonotonicRawNs() - first_raw_ns_) / kPairPeriodNs);
  if (pair != pair_) {
    pair_ = pair;
    offset_ns_ = WallMinusRawNs(clock_) + PairErrorNs(pair);
  }
  return static_cast<uint64_t>(raw_ns + offset_ns_ + Config::The().time_step_ns.load());
}

}  // namespace profd::sim::mspti
