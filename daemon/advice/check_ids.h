// The ids of the live checks (checks.cc has what they are): as limits, metrics, triggers and profctl name them.
#pragma once

#include <array>
#include <string_view>

namespace profd {

inline constexpr auto kLiveChecks = std::to_array<std::string_view>(
    {"hang", "slow_rank", "steps_slower", "computation_slower", "communication_slower", "dataloader", "gc",
     "operator_dispatch", "aicpu", "free_time", "device_memory"});

}  // namespace profd
