// How far times of runs may lie from zero.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>

namespace profd::analysis {

// Until the year 2116: no difference of two of them is too long.
inline constexpr int64_t kLatestNs = (int64_t{1} << 62) - 1;
constexpr bool IsTime(int64_t t_ns) { return t_ns >= -kLatestNs && t_ns <= kLatestNs; }
// What lies beyond is put at the border, in its order.
constexpr int64_t BoundedTime(int64_t t_ns) { return std::clamp(t_ns, -kLatestNs, kLatestNs); }
// The end of what took so many ms by its record: not before its begin.
inline int64_t EndOf(int64_t start_ns, double length_ms) {
  const double length_ns = length_ms * 1e6;
  if (!(length_ns > 0)) return start_ns;
  return BoundedTime(start_ns + (length_ns < static_cast<double>(kLatestNs) ? std::llround(length_ns) : kLatestNs));
}

}  // namespace profd::analysis
