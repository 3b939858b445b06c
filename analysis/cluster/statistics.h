// Which of some values does not belong to the others (analysis 1.9).
#pragma once

#include <cstddef>
#include <optional>
#include <span>
#include <vector>

namespace profd::analysis {

// Up to so many values Dixon's test decides, above three standard deviations from the mean do.
inline constexpr size_t kMostForDixon = 100;

// Index of the smallest value, where it is an outlier at 99.5 %. None too of fewer than three values, or where at most
// three of them differ.
std::optional<size_t> LowOutlier(std::span<const double> values);
// Of the largest value.
std::optional<size_t> HighOutlier(std::span<const double> values);

// Mean and standard deviation (of all values, not of a sample).
struct Spread {
  double mean = 0;
  double deviation = 0;
  // How many deviations from the mean; 0 where values do not differ.
  double ScoreOf(double value) const { return deviation > 0 ? (value - mean) / deviation : 0; }
};
Spread SpreadOf(std::span<const double> values);

}  // namespace profd::analysis
