// Loaded in front of the C library (LD_PRELOAD): a wall clock that is set, and a machine that
// slept. PROFD_FAULT_CLOCK names a file with "WALL BOOT": seconds added to CLOCK_REALTIME and to
// CLOCK_BOOTTIME. A sleep moves both; the monotonic clocks stand still meanwhile, and so do they here.
#include <dlfcn.h>
#include <fcntl.h>
#include <time.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>

extern "C" __attribute__((visibility("default"))) int clock_gettime(clockid_t clock,
                                                                    timespec* out) {
  static const auto next =
      reinterpret_cast<int (*)(clockid_t, timespec*)>(::dlsym(RTLD_NEXT, "clock_gettime"));
  const int result = next(clock, out);
  if (result != 0 || (clock != CLOCK_REALTIME && clock != CLOCK_REALTIME_COARSE &&
                      clock != CLOCK_BOOTTIME)) {
    return result;
  }
  const char* path = std::getenv("PROFD_FAULT_CLOCK");
  const int file = path == nullptr ? -1 : ::open(path, O_RDONLY | O_CLOEXEC);
  if (file < 0) return result;
  char text[64] = {};
  long wall = 0;
  long boot = 0;
  if (::read(file, text, sizeof text - 1) > 0 && std::sscanf(text, "%ld %ld", &wall, &boot) == 2) {
    out->tv_sec += clock == CLOCK_BOOTTIME ? boot : wall;
  }
  ::close(file);
  return result;
}
