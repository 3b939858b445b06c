// Metrics for the receivers that [push] names: what /metrics has, in the words of each. Control strand; the sinks read the
// store on threads of their own.
#pragma once

#include <string_view>
#include <utility>
#include <vector>

#include "daemon/config/daemon_config.h"
#include "daemon/metrics/metric_store.h"
#include "daemon/metrics/self_metrics.h"
#include "daemon/push/push_sink.h"

namespace profd {

class PushService {
 public:
  PushService(const MetricStore& store, const SelfMetrics& self) : store_(store), self_(self) {}

  // Before the control strand has tasks.
  Status Start(const DaemonConfig& config);
  // No sink reads the store any more.
  void Stop() { sinks_.clear(); }
  void UpdateMetrics(SelfMetrics* self) const;

 private:
  const MetricStore& store_;
  const SelfMetrics& self_;
  std::vector<std::pair<std::string_view, std::unique_ptr<PushSink>>> sinks_;
};

}  // namespace profd
