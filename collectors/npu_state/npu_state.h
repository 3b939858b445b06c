// Parts of npu_state; only its own files and tests include this.
#pragma once

#include <memory>
#include <optional>

#include "collectors/collector.h"
#include "driver/dcmi_service.h"

namespace profd {

// What is off unless asked for: the first three block the DCMI thread for the given time per NPU
// and reading, the last one makes up to 75 series per NPU.
struct NpuStateOptions {
  int pcie_bandwidth_ms = 0;  // 0: off
  int hccs_bandwidth_ms = 0;
  int rdma_bandwidth_ms = 0;
  bool core_utilization = false;
};

std::unique_ptr<PolledCollector> MakeNpuState(const Host& host, const NpuStateOptions& options,
                                              SeriesRegistry& registry);

// How often the groups are read; the fast one with every tick.
inline constexpr int64_t kMediumPeriodNs = 10 * kNsPerSecond;
inline constexpr int64_t kSlowPeriodNs = 60 * kNsPerSecond;

}  // namespace profd
