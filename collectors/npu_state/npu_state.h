// Parts of npu_state; only its own files and tests include this.
#pragma once

#include <memory>
#include <span>
#include <string>
#include <vector>

#include "collectors/collector.h"
#include "driver/dcmi_service.h"

namespace profd {

// What is off unless the configuration enables it (metrics.npu_extra). The bandwidths block the
// thread that talks to libdcmi for the given time per NPU, once a minute; the others make many
// series: up to 75 (cores) and 288 (SerDes) per NPU.
struct NpuStateOptions {
  int pcie_bandwidth_ms = 0;  // 0: off
  int hccs_bandwidth_ms = 0;
  int rdma_bandwidth_ms = 0;
  bool core_utilization = false;
  bool serdes = false;
  bool call_buckets = false;  // of the histogram of libdcmi's calls
};
// Items are names, bandwidths with the milliseconds a measurement may take: "serdes",
// "hccs_bandwidth=100". What makes no sense is left out and appended to `*problems_or_null`.
NpuStateOptions ParseNpuStateOptions(std::span<const std::string> items,
                                     std::vector<std::string>* problems_or_null);

std::unique_ptr<PolledCollector> MakeNpuState(const Host& host, const NpuStateOptions& options,
                                              SeriesRegistry& registry);

// How often the groups are read; the fast one with every tick.
inline constexpr int64_t kMediumPeriodNs = 10 * kNsPerSecond;
inline constexpr int64_t kSlowPeriodNs = 60 * kNsPerSecond;

}  // namespace profd
