// Which step something belongs to, by its time.
#pragma once

#include <algorithm>
#include <cstdint>
#include <iterator>
#include <vector>

#include "analysis/rank.h"

namespace profd::analysis {

class StepFinder {
 public:
  static constexpr int64_t kNone = -1;

  explicit StepFinder(const Rank& rank) : steps_(rank.steps) {}
  // Number of the step in whose time it begins.
  int64_t At(int64_t t_ns) const {
    const auto next = std::ranges::upper_bound(steps_, t_ns, {}, &Step::start_ns);
    if (next == steps_.begin() || t_ns >= std::prev(next)->end_ns) return kNone;
    return std::prev(next)->number;
  }
  // The one that its record names, else by its time.
  int64_t Of(const Collective& collective) const { return collective.step >= 0 ? collective.step : At(collective.start_ns); }

 private:
  const std::vector<Step>& steps_;
};

}  // namespace profd::analysis
