#include "analysis/rules/slowest_rank.h"

#include <algorithm>
#include <vector>

namespace profd::analysis {

double MedianOf(std::span<const double> values) {
  std::vector<double> sorted(values.begin(), values.end());
  const auto middle = sorted.begin() + static_cast<std::ptrdiff_t>(sorted.size() / 2);
  std::nth_element(sorted.begin(), middle, sorted.end());
  if (sorted.size() % 2 == 1) return *middle;
  return (*middle + *std::max_element(sorted.begin(), middle)) / 2;
}

std::optional<SlowestRank> FindSlowestRank(std::span<const RankShare> ranks) {
  if (ranks.size() < 2) return std::nullopt;
  size_t slowest = 0;
  double step_ms = 0;
  for (size_t i = 0; i < ranks.size(); ++i) {
    if (ranks[i].own_ms > ranks[slowest].own_ms) slowest = i;
    step_ms += (ranks[i].own_ms + ranks[i].wait_ms) / static_cast<double>(ranks.size());
  }
  std::vector<double> own;
  std::vector<double> wait;
  for (size_t i = 0; i < ranks.size(); ++i) {
    if (i == slowest) continue;
    own.push_back(ranks[i].own_ms);
    wait.push_back(ranks[i].wait_ms);
  }
  const double behind_ms = ranks[slowest].own_ms - MedianOf(own);
  if (behind_ms <= 0 || step_ms <= 0 || ranks[slowest].wait_ms > MedianOf(wait)) return std::nullopt;
  return SlowestRank{slowest, behind_ms, behind_ms / step_ms};
}

}  // namespace profd::analysis
