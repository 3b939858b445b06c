// What profd reports about itself: families of a prometheus::Registry, brought up to date about once a second.
// Lives on the control strand; Collect on any thread.
#pragma once

#include <prometheus/collectable.h>
#include <prometheus/registry.h>

#include <array>
#include <compare>
#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "base/clock.h"
#include "base/fd.h"
#include "collectors/collector.h"
#include "collectors/metric_table.h"
#include "daemon/collect/collector_stats.h"
#include "driver/rooted_fs.h"

namespace profd {

class SelfMetrics final : public prometheus::Collectable {
 public:
  // `host.proc` is the daemon's view of /proc.
  explicit SelfMetrics(const Host& host);

  // Sets one value. Its series is there until a round in which it is not set.
  template <class Number>
  void Set(MetricId metric, Number value, std::string_view a = {}, std::string_view b = {},
           std::string_view c = {}, std::string_view d = {}) {
    SetValue(metric, static_cast<double>(value), {a, b, c, d});
  }
  // Of a counter with many label values, most of which never count: its series begins with the first
  // event.
  void SetCount(MetricId metric, double value, std::string_view a = {}, std::string_view b = {});
  // Ends a round.
  void Commit();

  // The collectors' counters and the process's own figures.
  void SetCollectors(const CollectorStatsTable& stats);
  void SetProcess();

  std::vector<prometheus::MetricFamily> Collect() const override { return registry_.Collect(); }

 private:
  static constexpr size_t kMostLabels = 4;
  struct Name {
    MetricId metric = 0;
    std::array<std::string, kMostLabels> labels;
    auto operator<=>(const Name&) const = default;
  };
  struct Series {
    prometheus::Gauge* gauge = nullptr;  // one of the two
    prometheus::Counter* counter = nullptr;
    uint64_t round = 0;  // when it was set last
  };

  void SetValue(MetricId metric, double value, const std::array<std::string_view, kMostLabels>& labels);
  void Add(const Name& name, Series* series);
  void Remove(const Name& name, const Series& series);
  void SetMemory();
  void SetFiles();

  const Host& host_;
  prometheus::Registry registry_;
  std::map<Name, Series> series_;
  uint64_t round_ = 0;
  double start_time_s_ = 0;
  std::vector<bool> available_;
  int probe_countdown_ = 0;
  KeptFile statm_;
  UniqueFd files_;  // /proc/self/fd
};

}  // namespace profd
