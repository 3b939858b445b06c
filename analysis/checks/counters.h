// What counters of the hardware and the host say of a part of a run's time. Slow counters cover the time up to each
// sample: a sample counts by how much of that lies in the part.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "analysis/checks/check.h"

namespace profd::analysis {

struct Watched {
  std::string_view series;  // begins with it
  std::string_view label;   // and holds it; may be empty
  std::string_view limit;   // of the check: from this mean on
};
struct SeriesMean {
  const Series* series = nullptr;
  double mean = 0;
};

// The mean of a series over the part of the time that lies in `part`, which is by start and without overlaps; no value:
// there are no samples of it.
std::optional<double> MeanDuring(const Series& series, const Intervals& part);
// All of the rank's series that reach their limit; the largest first. `part` empty: all the time.
std::vector<SeriesMean> SeriesOverLimit(const CheckInput& input, std::string_view check, std::span<const Watched> watched, const Intervals& part);
// Adds a row for each: name, unit, mean, max.
void AddRows(const std::vector<SeriesMean>& seen, Finding* finding);

}  // namespace profd::analysis
