// What the host does instead of the step's work, as the ranges that applications mark say it.
#pragma once

#include <cstdint>
#include <string_view>

namespace profd::analysis {

enum class HostWork : uint8_t { kNone, kGc, kDataloader, kCompile };
HostWork HostWorkOf(std::string_view range_name);

// The first steps compile and load, which is not a fault.
inline constexpr int64_t kFirstSteps = 10;

}  // namespace profd::analysis
