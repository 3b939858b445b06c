#include "sim/played_time.h"

#include <sys/syscall.h>
#include <unistd.h>

namespace profd::sim {

int64_t ReadKernelClock(clockid_t id) {
  timespec now{};
  ::syscall(SYS_clock_gettime, id, &now);
  return int64_t{now.tv_sec} * kNsPerSecond + now.tv_nsec;
}

}  // namespace profd::sim
