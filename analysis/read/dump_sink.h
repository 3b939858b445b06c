// Rows and events of dumps that profd recorded itself, as the decoders of the exports have them.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "analysis/rank.h"
#include "base/mutex.h"
#include "export/event.h"
#include "export/format.h"
#include "export/rows/series.h"

namespace profd::analysis {

inline constexpr size_t kMaxRows = 40'000'000;  // of kernels, collectives and calls, which profd recorded itself

// One row of an activity table as it is in the dump; strings are numbers of the export.
struct Recorded {
  int64_t start_ns = 0;
  int64_t end_ns = 0;
  int64_t name = 0;
  int64_t other = 0;        // type of a kernel, communicator
  int64_t place = 0;        // stream or thread
  int64_t correlation = 0;  // ties an API call and a kernel
  int rank = -1;
};

// Of one dump and device; the host's is -1.
struct OfDevice {
  std::vector<Recorded> kernels;
  std::vector<Recorded> collectives;
  std::vector<Recorded> calls;
  std::map<std::string, std::shared_ptr<Series>> series;
};

struct Gathered {
  std::map<std::pair<size_t, int>, OfDevice> devices;
  std::vector<std::vector<exporting::Event>> parts;    // by dump: steps with their parts
  std::vector<std::vector<exporting::Event>> marks;    // by dump: marks and ranges, and losses
  uint64_t left_out = 0;
  uint64_t left_out_events = 0;   // steps and marks
  uint64_t left_out_samples = 0;  // of series
  size_t rows = 0;
};

// Of what one task of a dump keeps.
struct SinkLimits {
  size_t steps = 1'000'000;
  size_t series = 8192;
  size_t marks = 5'000'000;  // with losses
};

// Of a metric with its labels, and of a metric.
std::string SeriesNameOf(std::string_view metric, std::span<const exporting::Label> labels);
std::string SeriesUnitOf(std::string_view metric);
// It counts: its series is its growth per second.
inline bool Grows(std::string_view metric) { return metric.ends_with("_total"); }
class GrowthRate {
 public:
  // Since the value before; none: there is none, or it was larger, or not earlier.
  std::optional<double> At(int64_t t_ns, double value);

 private:
  std::optional<double> last_;
  int64_t last_ns_ = 0;
};

// A metric's series.
struct Counter {
  Series* series = nullptr;
  std::optional<GrowthRate> growth;

  Counter() = default;
  Counter(Series* of, bool grows) : series(of), growth(grows ? std::optional(GrowthRate()) : std::nullopt) {}
  void Add(int64_t t_ns, double value) {
    const auto shown = growth ? growth->At(t_ns, value) : std::optional(value);
    if (shown) series->Add(t_ns, *shown);
  }
};

// Of one task of dump number `dump`. What it gathers is in `out`, under `mutex`, once it has finished.
std::unique_ptr<exporting::FormatSink> MakeDumpSink(size_t dump, const exporting::Strings& strings, Gathered* out, Mutex* mutex,
                                                   const SinkLimits& limits = {});

}  // namespace profd::analysis
