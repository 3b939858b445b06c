// npu-exporter's names, labels and units (dcmi-and-metrics section 2) for values that are in the metric
// store under ours, for dashboards and schedulers that were written for that exporter. What each is made
// from stands in npu_exporter_table.h.
#pragma once

#include <prometheus/metric_family.h>

#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <vector>

namespace profd {

class MetricStore;

// npu-exporter has rates where we have counters: what the counters were when they were seen before. One
// thread. Bounded by the number of devices.
class NpuExporterRates {
 public:
  // Growth per second between the last two different samples that were seen; -1 if there is only one,
  // or if the counter went back.
  double Note(const std::string& series, int64_t time_ns, double value);

 private:
  struct LastValue {
    int64_t time_ns = 0;
    double value = 0;
    double rate = -1;
  };
  std::map<std::string, LastValue> seen_;
};

// All rows that have a fresh value at `now_ns` (MONOTONIC_RAW), in one pass over the store. `version` is ours.
std::vector<prometheus::MetricFamily> NpuExporterFamilies(const MetricStore& store, int64_t now_ns,
                                                          std::string_view version, NpuExporterRates* rates);

}  // namespace profd
