#include "analysis/cluster/statistics.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <numeric>

namespace profd::analysis {
namespace {

// Critical values of Dixon's ratios at 99.5 %, in thousandths, from three values on: r10 up to 7 values, r11 to 10, r21 to
// 13, r22 above. Up to 30 they are Dixon's own within 0.006, above of later simulations.
constexpr std::array<int, kMostForDixon - 2> kDixon = {
    994, 920, 823, 744, 680, 723, 676, 638, 707, 675, 649, 672, 649, 629, 611, 595, 580, 568, 556, 545, 536, 526, 519, 510, 503,
    496, 489, 484, 478, 473, 468, 463, 458, 454, 450, 446, 442, 439, 435, 432, 429, 425, 423, 420, 417, 414, 412, 409, 407, 405,
    402, 400, 398, 396, 394, 392, 391, 388, 387, 385, 383, 382, 380, 379, 377, 376, 374, 372, 371, 370, 368, 368, 366, 365, 364,
    363, 361, 360, 359, 358, 356, 356, 355, 353, 352, 352, 351, 350, 349, 348, 347, 346, 345, 344, 344, 343, 341, 341};

// The gap below the smallest value by the range, each of the two without some values that may be outliers themselves.
double DixonRatio(const std::vector<double>& sorted) {
  const size_t n = sorted.size();
  const size_t inner = n <= 10 ? 1 : 2;
  const size_t outer = n <= 7 ? 1 : n <= 13 ? 2 : 3;
  const double range = sorted[n - outer] - sorted[0];
  return range > 0 ? (sorted[inner] - sorted[0]) / range : 0;
}

}  // namespace

std::optional<size_t> LowOutlier(std::span<const double> values) {
  constexpr size_t kLeast = 3;
  constexpr size_t kLeastDifferent = 4;
  if (values.size() < kLeast) return std::nullopt;
  const auto smallest = std::ranges::min_element(values);
  const auto index = static_cast<size_t>(smallest - values.begin());
  if (values.size() > kMostForDixon) {
    const Spread spread = SpreadOf(values);
    return *smallest < spread.mean - 3 * spread.deviation ? std::optional(index) : std::nullopt;
  }
  std::vector<double> sorted(values.begin(), values.end());
  std::ranges::sort(sorted);
  size_t different = 1;
  for (size_t i = 1; i < sorted.size(); ++i) different += sorted[i] != sorted[i - 1] ? 1 : 0;
  if (different < kLeastDifferent) return std::nullopt;
  return DixonRatio(sorted) * 1000 > kDixon[values.size() - kLeast] ? std::optional(index) : std::nullopt;
}

std::optional<size_t> HighOutlier(std::span<const double> values) {
  std::vector<double> negative(values.size());
  std::ranges::transform(values, negative.begin(), std::negate<>());
  return LowOutlier(negative);
}

Spread SpreadOf(std::span<const double> values) {
  if (values.empty()) return {};
  const auto count = static_cast<double>(values.size());
  Spread spread;
  spread.mean = std::accumulate(values.begin(), values.end(), 0.0) / count;
  double squares = 0;
  for (const double value : values) squares += (value - spread.mean) * (value - spread.mean);
  spread.deviation = std::sqrt(squares / count);
  // What adding up makes of equal values.
  if (spread.deviation <= std::abs(spread.mean) * 1e-12) spread.deviation = 0;
  return spread;
}

}  // namespace profd::analysis
