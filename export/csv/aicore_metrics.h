// Metrics of sample-based AI Core profiling: which a group has, and how they are made of the sums
// of a core's event counters (dump-format 2.11).
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace profd::exporting::csv {

// What is known of one core.
struct CoreCounters {
  std::span<const uint32_t> events;  // codes
  std::span<const int64_t> sums;     // by the same index
  int64_t cycles = 0;
  double hz = 0;
  int chip = -1;

  // Absent: the code is not among the events.
  std::optional<double> Sum(uint32_t code) const;
};

// Names of the group's metrics in the order of the CSV's columns. "Custom:0x10,0x20": its events.
std::vector<std::string> MetricsOf(std::string_view group, int chip);
// Absent: its events were not counted. 0 where it would divide by 0.
std::optional<double> MetricValue(std::string_view metric, const CoreCounters& core);
// The CSV shows it on this chip at all; `metrics` are all of the group.
bool IsShown(std::string_view metric, std::span<const std::string> metrics, int chip);
// The chip has no such counter: N/A.
bool IsNotAvailable(std::string_view metric, int chip);
// Its name in the header.
std::string ColumnOf(std::string_view metric);

}  // namespace profd::exporting::csv
