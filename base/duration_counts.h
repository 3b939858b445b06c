// Durations counted by size, for histograms on /metrics. Copyable; the owner synchronises.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>

namespace profd {

struct DurationCounts {
  // Upper bounds of the classes in ns; one more class has none. A decade each: calls are either
  // table look-ups or they block, and every bound costs a series.
  static constexpr std::array<int64_t, 6> kBoundsNs = {100'000,     1'000'000,     10'000'000,
                                                       100'000'000, 1'000'000'000, 10'000'000'000};
  // The same in seconds, as the label `le` shows them.
  static constexpr std::array<double, 6> kBoundsSeconds = {0.0001, 0.001, 0.01, 0.1, 1, 10};

  void Observe(int64_t ns) {
    size_t i = 0;
    while (i < kBoundsNs.size() && ns > kBoundsNs[i]) ++i;
    ++counts[i];
    sum_ns += ns > 0 ? static_cast<uint64_t>(ns) : 0;
  }
  double sum_seconds() const { return static_cast<double>(sum_ns) * 1e-9; }

  std::array<uint64_t, kBoundsNs.size() + 1> counts{};  // of each class alone, not cumulative
  uint64_t sum_ns = 0;
};

}  // namespace profd
