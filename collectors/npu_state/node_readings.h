// Metrics of the node's driver, and of our own calls into it.
#pragma once

#include <map>

#include "collectors/collector_list.h"
#include "collectors/histogram.h"
#include "collectors/metric_table.h"
#include "collectors/npu_state/npu_state.h"
#include "collectors/npu_state/series_slot.h"

namespace profd {

// How the NPUs are, counted anew with every tick.
struct NpuCounts {
  size_t present = 0;
  size_t healthy = 0;
  size_t unhealthy = 0;
  size_t unknown = 0;
};

class NodeReadings {
 public:
  NodeReadings(DcmiService& dcmi, const NpuStateOptions& options, SeriesRegistry& registry);
  void Fast(SampleBatch& out, int64_t now_ns, const NpuCounts& counts);
  // False: our thread was given up.
  bool Medium(SampleBatch& out, int64_t now_ns);

 private:
  void PutStatistics(SampleBatch& out, int64_t now_ns);
  void PutDurations(SampleBatch& out, int64_t now_ns,
                    const std::vector<DcmiCallStatistics>& statistics);
  void PutRefused(SampleBatch& out, int64_t now_ns);

  DcmiService& dcmi_;
  SeriesRegistry& registry_;
  const bool call_buckets_;
  SlotOwner owner_;
  SeriesSlot driver_health_{MetricByName("atlas_driver_health_status")};
  std::array<SeriesSlot, 4> npus_;
  SeriesId driver_info_ = kNoSeries;
  std::array<SeriesSlot, kDcmiCallCount> calls_;
  std::map<std::string_view, HistogramSeries> durations_;  // by function
  std::map<std::pair<size_t, size_t>, SeriesSlot> errors_;  // call, error; both bounded
  ComingAndGoing<std::pair<int, DcmiCall>> refused_;        // device index, call
};

}  // namespace profd
