// A series is a metric with its labels filled in. Collectors intern their series once, when they
// start, and then emit {series, time, value} triples: nothing is allocated or hashed per sample.
#pragma once

#include <cstdint>
#include <initializer_list>
#include <span>
#include <string_view>
#include <vector>

#include "collectors/metric_spec.h"

namespace profd {

using SeriesId = uint32_t;
inline constexpr SeriesId kNoSeries = UINT32_MAX;
inline constexpr int kHostDevice = -1;

struct Sample {
  SeriesId series;
  int64_t time_ns;  // host CLOCK_MONOTONIC_RAW
  double value;
};

// Thread-safe. Bounded: when full, Intern answers kNoSeries (emitting to it is legal and ignored) and
// counts the refusal.
class SeriesRegistry {
 public:
  virtual ~SeriesRegistry() = default;
  // The id of metric{labels} for `device` (logical id; kHostDevice for node metrics). `labels` are
  // the values of the metric's own labels, in the order of the table. Same arguments, same id;
  // every Intern wants one Release.
  virtual SeriesId Intern(MetricId metric, int device, std::span<const std::string_view> labels) = 0;
  // The series vanishes from /metrics and streams when its last owner released it.
  virtual void Release(SeriesId series) = 0;
  // What a counter stands at, for those whose sum must not begin anew or fall; that of a device also
  // when its last owner released it earlier in the daemon's life. 0 if there is no such value.
  virtual double LastTotal(SeriesId) const { return 0; }
  // The device stopped answering at `time_ns`: whatever was sampled on it until then is no longer
  // shown, also where the series has other owners.
  virtual void DeviceGone(int /*device*/, int64_t /*time_ns*/) {}

  SeriesId Intern(MetricId metric, int device, std::initializer_list<std::string_view> labels = {}) {
    return Intern(metric, device, std::span(labels.begin(), labels.size()));
  }
};

// Keeps ids of interned series and releases them together. Movable, owned by a collector.
class SeriesSet {
 public:
  explicit SeriesSet(SeriesRegistry& registry) : registry_(&registry) {}
  ~SeriesSet() { Clear(); }
  SeriesSet(const SeriesSet&) = delete;
  SeriesSet& operator=(const SeriesSet&) = delete;

  SeriesId Add(MetricId metric, int device, std::initializer_list<std::string_view> labels = {}) {
    ids_.push_back(registry_->Intern(metric, device, labels));
    return ids_.back();
  }
  double LastTotal(SeriesId series) const { return registry_->LastTotal(series); }
  // Releases one series early (a process that exited).
  void Drop(SeriesId series) {
    for (size_t i = 0; i < ids_.size(); ++i) {
      if (ids_[i] != series) continue;
      ids_[i] = ids_.back();
      ids_.pop_back();
      registry_->Release(series);
      return;
    }
  }
  void Clear() {
    for (SeriesId id : ids_) registry_->Release(id);
    ids_.clear();
  }

 private:
  SeriesRegistry* registry_;
  std::vector<SeriesId> ids_;
};

}  // namespace profd
