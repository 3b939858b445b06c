// The series of one histogram (a metric of type kHistogram with its labels filled in). In the
// registry it is a series for each upper bound, one for "+Inf" and one for the sum, distinguished by a
// last label value `le` behind the metric's own ones: "0.001", "+Inf", kHistogramSum. The table
// does not list `le`.
#pragma once

#include <fmt/format.h>

#include <cstdint>
#include <initializer_list>
#include <span>
#include <string_view>
#include <utility>
#include <vector>

#include "collectors/collector.h"
#include "collectors/series.h"

namespace profd {

inline constexpr std::string_view kHistogramSum = "sum";
inline constexpr std::string_view kHistogramInfinity = "+Inf";

// Movable; releases its series when it goes.
class HistogramSeries {
 public:
  // `bounds`: upper bounds in the metric's unit, ascending; DurationCounts::kBoundsSeconds for
  // calls. None: only the number of events and their sum.
  HistogramSeries(SeriesRegistry& registry, MetricId metric, int device,
                  std::initializer_list<std::string_view> labels, std::span<const double> bounds)
      : registry_(&registry) {
    std::vector<std::string_view> values(labels);
    values.emplace_back();
    auto add = [&](std::string_view le) {
      values.back() = le;
      ids_.push_back(registry.Intern(metric, device, values));
    };
    for (double bound : bounds) add(fmt::to_string(bound));
    add(kHistogramInfinity);
    add(kHistogramSum);
  }
  ~HistogramSeries() {
    for (SeriesId id : ids_) registry_->Release(id);
  }
  HistogramSeries(HistogramSeries&& other) noexcept
      : registry_(other.registry_), ids_(std::move(other.ids_)) {
    other.ids_.clear();
  }
  HistogramSeries(const HistogramSeries&) = delete;
  HistogramSeries& operator=(const HistogramSeries&) = delete;
  HistogramSeries& operator=(HistogramSeries&&) = delete;

  // `counts`: of each class alone since the beginning; without bounds the sum of them counts.
  void Emit(std::span<const uint64_t> counts, double sum, int64_t time_ns, SampleBatch& out) const {
    const size_t bounds = ids_.size() - 2;
    uint64_t upto = 0;
    for (size_t i = 0; i < counts.size(); ++i) {
      upto += counts[i];
      if (i < bounds) out.Emit(ids_[i], time_ns, static_cast<double>(upto));
    }
    out.Emit(ids_[bounds], time_ns, static_cast<double>(upto));
    out.Emit(ids_.back(), time_ns, sum);
  }

 private:
  SeriesRegistry* registry_;
  std::vector<SeriesId> ids_;  // bounds, infinity, sum
};

}  // namespace profd
