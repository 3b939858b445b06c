// What profd says about itself, written into the metric store about once a second. Lives on the
// control strand.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <tuple>
#include <vector>

#include "base/clock.h"
#include "collectors/collector.h"
#include "collectors/metric_table.h"
#include "daemon/collect/collector_stats.h"
#include "daemon/metrics/metric_store.h"

namespace profd {

class SelfMetrics {
 public:
  // `proc` is the daemon's view of /proc.
  SelfMetrics(MetricStore& store, const Host& host);
  ~SelfMetrics();

  // Sets one value; the series is interned on first use and kept.
  void Set(MetricId metric, double value, std::string_view a = {}, std::string_view b = {},
           std::string_view c = {});
  // Writes everything set since the last time in one go, stamped now.
  void Commit();

  // The collectors' counters and the process's own figures.
  void SetCollectors(const CollectorStatsTable& stats);
  void SetProcess();

 private:
  MetricStore& store_;
  const Host& host_;
  std::map<std::tuple<MetricId, std::string, std::string, std::string>, SeriesId> ids_;
  std::vector<Sample> batch_;
  double start_time_s_ = 0;
  std::vector<bool> available_;
  int probe_countdown_ = 0;
};

}  // namespace profd
