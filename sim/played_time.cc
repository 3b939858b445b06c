#include "sim/played_time.h"

#include <sys/syscall.h>
#include <unistd.h>

#include <ctime>

namespace profd::sim {

int64_t KernelClock::MonotonicRawNs() const {
  timespec now{};
  ::syscall(SYS_clock_gettime, CLOCK_MONOTONIC_RAW, &now);
  return int64_t{now.tv_sec} * kNsPerSecond + now.tv_nsec;
}

}  // namespace profd::sim
