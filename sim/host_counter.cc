#include "sim/host_counter.h"

#include <cmath>

#include "sim/played_time.h"

namespace profd::sim {
namespace {

struct Pair {
  int64_t raw_ns;
  uint64_t counter;
};

Pair ReadPair(const Clock& clock) {
  Pair best{};
  uint64_t best_gap = UINT64_MAX;
  for (int i = 0; i < 8; ++i) {
    const uint64_t before = clock.CpuCounter();
    const int64_t raw = clock.MonotonicRawNs();
    const uint64_t gap = clock.CpuCounter() - before;
    if (gap < best_gap) {
      best_gap = gap;
      best = {raw, before + gap / 2};
    }
  }
  return best;
}

int64_t HzBetween(const Pair& first, const Pair& last) {
  return static_cast<int64_t>(std::llround(static_cast<double>(last.counter - first.counter) * 1e9 /
                                           static_cast<double>(last.raw_ns - first.raw_ns)));
}

// Of `clock`, over at least `kSpanNs` of the kernel's.
int64_t MeasureAgainstKernel(const Clock& clock) {
  constexpr int64_t kSpanNs = 30 * kNsPerMs;
  const KernelClock kernel;
  const int64_t end = kernel.MonotonicRawNs() + kSpanNs;
  const Pair first = ReadPair(clock);
  while (kernel.MonotonicRawNs() < end) {
  }
  return HzBetween(first, ReadPair(clock));
}

int64_t MeasureHz(const Clock& clock) {
#if defined(__aarch64__)
  uint64_t hz = 0;
  asm volatile("mrs %0, cntfrq_el0" : "=r"(hz));
  static_cast<void>(clock);
  return static_cast<int64_t>(hz);
#else
  constexpr int64_t kSpanNs = 10 * kNsPerMs;
  const Pair first = ReadPair(clock);
  Pair last = ReadPair(clock);
  // A clock that stands still (tests) must not hang us.
  for (int i = 0; i < 10'000'000 && last.raw_ns - first.raw_ns < kSpanNs; ++i) {
    last = ReadPair(clock);
  }
  constexpr int64_t kFallbackHz = 100'000'000;
  return last.raw_ns <= first.raw_ns ? kFallbackHz : HzBetween(first, last);
#endif
}

}  // namespace

int64_t HostCounterHz(const Clock& clock) {
  static const int64_t hz = MeasureHz(clock);
  return hz;
}

int64_t ReportedHostCounterHz(const Clock& clock, int64_t scale) {
  if (scale == 1) return HostCounterHz(clock);
  static const int64_t hz = MeasureAgainstKernel(SystemClock());
  return hz;
}

uint64_t HostCounterAt(const Clock& clock, int64_t raw_ns) {
  const int64_t hz = HostCounterHz(clock);
  const Pair now = ReadPair(clock);
  const double cycles = static_cast<double>(raw_ns - now.raw_ns) * static_cast<double>(hz) / 1e9;
  return now.counter + static_cast<uint64_t>(static_cast<int64_t>(std::llround(cycles)));
}

}  // namespace profd::sim
