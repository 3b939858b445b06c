// The node as clients, the judge of its health and Prometheus see it. Control strand.
#pragma once

#include <string>
#include <vector>

#include "daemon/collect/collector_stats.h"
#include "daemon/health/npu_health.h"
#include "daemon/metrics/self_metrics.h"
#include "daemon/node/node.h"

namespace profd {

// What both driver libraries report of each device. `off`: metrics.disable, here and below.
std::vector<HealthFacts> DriverFacts(const Node& node, const ChannelArbiter& arbiter, const std::vector<std::string>& off);
// Of the NPUs that libdcmi alone lists.
std::vector<HealthFacts> DcmiOnlyFacts(const Node& node, const std::vector<std::string>& off);

void DescribeDevices(const Node& node, const ChannelArbiter& arbiter, const NpuHealth& health, v1::Node* out);
void DescribeCollectors(const Node& node, const CollectorStatsTable& stats, const std::vector<std::string>& off,
                        v1::Node* out);

// Of channels, the pump and devices that hang.
void UpdateNodeMetrics(const Node& node, SelfMetrics* self);

}  // namespace profd
