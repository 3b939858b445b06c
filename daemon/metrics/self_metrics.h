// What profd says about itself, written into the metric store about once a second. Lives on the
// control strand.
#pragma once

#include <array>
#include <compare>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "base/clock.h"
#include "base/fd.h"
#include "collectors/collector.h"
#include "collectors/metric_table.h"
#include "daemon/collect/collector_stats.h"
#include "daemon/metrics/metric_store.h"
#include "driver/rooted_fs.h"

namespace profd {

class SelfMetrics {
 public:
  // `proc` is the daemon's view of /proc.
  SelfMetrics(MetricStore& store, const Host& host);
  ~SelfMetrics();

  // Sets one value; the series is interned on first use and kept. Cheapest where calls come in the
  // same order every time: the one that came next the last time is looked at first.
  void Set(MetricId metric, double value, std::string_view a = {}, std::string_view b = {},
           std::string_view c = {});
  // Of a counter with many label values, most of which never count: its series begins with the first
  // event.
  void SetCount(MetricId metric, double value, std::string_view a = {}, std::string_view b = {});
  // Writes everything set since the last time in one go, stamped now.
  void Commit();

  // The collectors' counters and the process's own figures.
  void SetCollectors(const CollectorStatsTable& stats);
  void SetProcess();

 private:
  struct Name {
    MetricId metric = 0;
    std::array<std::string, 3> labels;
    auto operator<=>(const Name&) const = default;
  };
  struct Turn {
    const Name* name;  // in ids_
    SeriesId id;
  };

  void SetMemory();
  void SetFiles();
  SeriesId Find(MetricId metric, std::string_view a, std::string_view b, std::string_view c);

  MetricStore& store_;
  const Host& host_;
  std::map<Name, SeriesId> ids_;
  std::vector<Turn> turns_;  // as the calls came before the last Commit
  size_t next_ = 0;
  std::vector<Sample> batch_;
  double start_time_s_ = 0;
  std::vector<bool> available_;
  int probe_countdown_ = 0;
  KeptFile statm_;
  UniqueFd files_;  // /proc/self/fd
};

}  // namespace profd
