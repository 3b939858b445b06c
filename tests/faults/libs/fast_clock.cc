// Loaded in front of the C library (LD_PRELOAD): a host whose CLOCK_MONOTONIC_RAW runs
// PROFD_SIM_TIME_SCALE times as fast, as the simulator's devices do by the same variable. The two then
// agree as on a real node, to their crystals' drift; timers and deadlines stay in real time.
#include <dlfcn.h>
#include <time.h>

#include <cstdint>
#include <cstdlib>

namespace {

using Read = int (*)(clockid_t, timespec*);
constexpr int64_t kNsPerSecond = 1'000'000'000;

int64_t Ns(Read read) {
  timespec now{};
  read(CLOCK_MONOTONIC_RAW, &now);
  return int64_t{now.tv_sec} * kNsPerSecond + now.tv_nsec;
}

int64_t Scale() {
  const char* text = std::getenv("PROFD_SIM_TIME_SCALE");
  const long scale = text == nullptr ? 1 : std::strtol(text, nullptr, 10);
  return scale < 1 ? 1 : scale;
}

}  // namespace

extern "C" __attribute__((visibility("default"))) int clock_gettime(clockid_t clock,
                                                                    timespec* out) {
  static const auto next = reinterpret_cast<Read>(::dlsym(RTLD_NEXT, "clock_gettime"));
  if (clock != CLOCK_MONOTONIC_RAW) return next(clock, out);
  static const int64_t scale = Scale();
  static const int64_t begin = Ns(next);
  const int64_t ns = begin + (Ns(next) - begin) * scale;
  out->tv_sec = static_cast<time_t>(ns / kNsPerSecond);
  out->tv_nsec = static_cast<long>(ns % kNsPerSecond);
  return 0;
}
