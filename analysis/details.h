// Bounds the memory of a run of many ranks: what only a look at one rank needs is kept for the ranks that checks would look
// at, and for others while there is memory for it.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <string>
#include <utility>
#include <vector>

#include "analysis/rank.h"
#include "base/mutex.h"

namespace profd::analysis {

class Details {
 public:
  static constexpr size_t kMostBytes = size_t{1} << 30;

  explicit Details(size_t most_bytes = kMostBytes) : most_bytes_(most_bytes) {}

  // From any thread. Ranks live longer than this.
  void Add(Rank* rank);
  // When all were added: what was left out depends on the ranks only. How many ranks that are.
  size_t Finish();

  // What checks choose a rank by (analysis 1.1).
  struct Figures {
    // A value and the step that it is of. Of equal ones the first counts.
    using OfStep = std::pair<double, int64_t>;
    static constexpr OfStep kNone = {std::numeric_limits<double>::infinity(), 0};
    OfStep least_free = kNone;
    OfStep most_free = kNone;  // negative
    OfStep least_computing = kNone;
    OfStep most_computing = kNone;  // negative
    // GB/s, by kLinkTransports; a rank that did not use it is not the slowest.
    std::array<OfStep, 2> speeds = {kNone, kNone};
    std::array<OfStep, 2> speeds_of_all = {kNone, kNone};  // of all steps together: where there are too many of them
  };
  static Figures FiguresOf(const Rank& rank);

 private:
  struct LoadedRank {
    Rank* rank = nullptr;
    Figures figures;
    size_t bytes = 0;
  };
  void LeaveOut() REQUIRES(mutex_);

  const size_t most_bytes_;
  Mutex mutex_;
  std::vector<LoadedRank> held_ GUARDED_BY(mutex_);
  size_t bytes_ GUARDED_BY(mutex_) = 0;
  size_t left_out_ GUARDED_BY(mutex_) = 0;
};

// What is reported for so many ranks, as a problem of their run.
std::string DetailsLeftOut(size_t ranks);

}  // namespace profd::analysis
