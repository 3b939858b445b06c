// How the NPUs are connected: what libdcmi reported (in the metric store) and what /sys has.
#pragma once

#include "collectors/collector.h"
#include "daemon/health/npu_health.h"
#include "daemon/metrics/metric_store.h"

namespace profd {

namespace v1 {
class Topology;
}

void DescribeTopology(const Host& host, const MetricStore& store, const NpuHealth& health, v1::Topology* out);

}  // namespace profd
