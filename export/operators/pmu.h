// Counters of tasks as the columns of op_summary (operator-data c.2): which
// columns a metric group has, the events each is made of, and the formulas.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace profd::exporting::operators {

inline constexpr size_t kPmuCounters = 8;

// Sums of one core's counters over a task.
struct PmuCounts {
  uint64_t cycles = 0;
  uint64_t counters[kPmuCounters] = {};
};

struct PmuTerm {
  uint32_t event = 0;
  double weight = 1;
  int counter = -1;  // which of PmuCounts::counters counts it; -1: none
};

struct PmuColumn {
  enum class Kind : uint8_t {
    kRatio,      // of the cycles
    kTime,       // the same share of the core's time, us
    kMissRate,   // of the second event; 0 where either is 0
    kSum,
    kBandwidth,  // GB/s of 2^30 bytes; the weight is bits an event
    kBound,      // the first by the larger of the others; 0 where these are 0
  };
  std::string name;  // with the core's prefix
  Kind kind = Kind::kSum;
  std::vector<PmuTerm> terms;
  bool only_database = false;  // of a unit that the core has not: op_summary leaves it out
};

// Of one kind of core, on one device.
struct PmuCore {
  // `events`: what is counted, in the order of the counters. Behind the columns.
  void SetEvents(std::span<const uint32_t> events);
  std::vector<const PmuColumn*> Summary() const;  // the columns of op_summary
  std::vector<PmuColumn> columns;
  int64_t cores = 0;  // of this kind
};

struct PmuGroup {
  PmuCore aic;
  PmuCore aiv;
  bool one_core = false;  // cube and vector unit are one core: all is in `aic`, and names have no prefix
  int chip = -1;          // of `one_core`
  bool cube_utilization = false;
  bool custom = false;  // events that the user chose
};

// "PipeUtilization", ..., "Custom:0x8,0xa". Without columns for a name that is not known.
PmuGroup PmuGroupOf(std::string_view aic_metrics, std::string_view aiv_metrics);
// The same of chips 1 to 4.
PmuGroup PmuGroupOfOneCore(std::string_view metrics, int chip);

// Operations a count of the vector unit's events 0x4b to 0x4f.
std::array<double, 5> VectorWidths(int chip);

// Is it the name of a group of either chip, or of events one by one?
bool IsPmuGroup(std::string_view metrics);

// us; `mhz` as it was when the task ended, `blocks` its block number.
double PmuTime(const PmuCounts& counts, int64_t cores, double mhz, uint32_t blocks);
// `time_us`: as PmuTime; `mhz`: the nominal one. None: the column's events were not counted.
std::optional<double> PmuValue(const PmuColumn& column, const PmuCounts& counts, double time_us, double mhz);

}  // namespace profd::exporting::operators
