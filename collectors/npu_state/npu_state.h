// Parts of npu_state; only its own files and tests include this.
#pragma once

#include <memory>
#include <optional>

#include "collectors/collector.h"
#include "driver/dcmi_service.h"

namespace profd {

using NpuStateOptions = NpuExtras;

std::unique_ptr<PolledCollector> MakeNpuState(const Host& host, const NpuStateOptions& options,
                                              SeriesRegistry& registry);

// How often the groups are read; the fast one with every tick.
inline constexpr int64_t kMediumPeriodNs = 10 * kNsPerSecond;
inline constexpr int64_t kSlowPeriodNs = 60 * kNsPerSecond;

}  // namespace profd
