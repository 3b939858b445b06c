#include "base/clock.h"

#include <ctime>

namespace profd {
namespace {

int64_t ReadNs(clockid_t id) {
  timespec now{};
  ::clock_gettime(id, &now);
  return static_cast<int64_t>(now.tv_sec) * kNsPerSecond + now.tv_nsec;
}

}  // namespace

int64_t SystemClock::MonotonicRawNs() const { return ReadNs(CLOCK_MONOTONIC_RAW); }
int64_t SystemClock::SteadyNs() const { return ReadNs(CLOCK_MONOTONIC); }
int64_t SystemClock::WallNs() const { return ReadNs(CLOCK_REALTIME); }

uint64_t SystemClock::CpuCounter() const {
#if defined(__aarch64__)
  uint64_t value;
  asm volatile("isb; mrs %0, cntvct_el0" : "=r"(value)::"memory");
  return value;
#elif defined(__x86_64__)
  return __builtin_ia32_rdtsc();
#else
  return static_cast<uint64_t>(MonotonicRawNs());
#endif
}

}  // namespace profd
