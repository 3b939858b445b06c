// The health of the NPUs, judged once a second from what the driver reports and what was measured: logged where it changes,
// and what GetNode, the page and atlas_npu_verdict show. Control strand.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "base/clock.h"
#include "base/strand.h"
#include "daemon/health/health_board.h"
#include "daemon/metrics/metric_store.h"

namespace profd {

namespace v1 {
class Device;
class Node;
}  // namespace v1

class NpuHealth {
 public:
  // The references outlive the object.
  NpuHealth(const Strand& control, MetricStore& store, const Clock& clock) : control_(control), store_(store), clock_(clock) {}

  // `facts`: of each device what the driver reports. `dcmi_only`: of those that cannot be profiled because the HAL does
  // not list them, which are not the node's, but have the metric. True: something has changed.
  bool Update(std::vector<HealthFacts> facts, std::vector<HealthFacts> dcmi_only = {});

  // Null before the first update.
  const DeviceRecord* Of(int device) const;
  bool IsDown(int device) const;
  void Describe(int device, v1::Device* out) const;
  // `driver_problem`: why there are no devices, where there are none.
  void Describe(const std::string& driver_problem, v1::Node* out) const;

 private:
  void Write(int device, Verdict verdict, int64_t now_ns);

  const Strand& control_;
  MetricStore& store_;
  const Clock& clock_;
  HealthBoard board_;
  std::map<int, SeriesId> verdict_series_;  // by device
};

}  // namespace profd
