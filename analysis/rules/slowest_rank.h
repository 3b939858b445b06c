// Which rank the others wait for. Pure: the daemon compares the ranks of its node with it, profctl those of many.
#pragma once

#include <cstddef>
#include <optional>
#include <span>

namespace profd::analysis {

// Of one rank, per step. What it does for itself (computation and free time) and its wait (communication without
// computation) make the step.
struct RankShare {
  double own_ms = 0;
  double wait_ms = 0;
};

struct SlowestRank {
  size_t index = 0;
  double behind_ms = 0;  // its own time less the median of the others
  double share = 0;      // of the step, means over the ranks
};

// The rank with the most time of its own. None: fewer than two ranks, or it is not behind, or it waits longer in
// communication than the median of the others (then it is not the one that is waited for).
std::optional<SlowestRank> FindSlowestRank(std::span<const RankShare> ranks);

// The middle of some values, at least one; of an even number the mean of both.
double MedianOf(std::span<const double> values);

}  // namespace profd::analysis
