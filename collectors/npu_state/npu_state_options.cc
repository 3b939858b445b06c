#include "collectors/npu_state/npu_state.h"

#include <fmt/format.h>

#include <array>
#include <string_view>

#include "base/text.h"

namespace profd {
namespace {

struct Switch {
  std::string_view name;
  bool NpuStateOptions::*on;
};
constexpr auto kSwitches = std::to_array<Switch>({
    {"core_utilization", &NpuStateOptions::core_utilization},
    {"serdes", &NpuStateOptions::serdes},
    {"call_buckets", &NpuStateOptions::call_buckets},
});

struct Timed {
  std::string_view name;
  int NpuStateOptions::*ms;
  int min_ms;
};
// The upper end is ours: with 16 NPUs the thread that talks to libdcmi is away for 8 s a minute
// then.
constexpr int kMaxMs = 500;
constexpr int kDefaultMs = 100;
constexpr auto kTimed = std::to_array<Timed>({
    {"pcie_bandwidth", &NpuStateOptions::pcie_bandwidth_ms, 1},
    {"hccs_bandwidth", &NpuStateOptions::hccs_bandwidth_ms, 1},
    {"rdma_bandwidth", &NpuStateOptions::rdma_bandwidth_ms, 100},
});

// Empty, or what is wrong.
std::string Apply(std::string_view item, NpuStateOptions* options) {
  const size_t equals = item.find('=');
  const std::string_view name = item.substr(0, equals);
  for (const Switch& one : kSwitches) {
    if (one.name != name) continue;
    if (equals != std::string_view::npos) return fmt::format("{} takes no number", name);
    options->*one.on = true;
    return {};
  }
  for (const Timed& one : kTimed) {
    if (one.name != name) continue;
    int ms = kDefaultMs;
    if (equals != std::string_view::npos && !ParseNumber(item.substr(equals + 1), &ms)) ms = 0;
    if (ms < one.min_ms || ms > kMaxMs) {
      return fmt::format("{} takes {}..{} ms", name, one.min_ms, kMaxMs);
    }
    options->*one.ms = ms;
    return {};
  }
  return "unknown; there are core_utilization, serdes, call_buckets, pcie_bandwidth, hccs_bandwidth, "
         "rdma_bandwidth";
}

}  // namespace

NpuStateOptions ParseNpuStateOptions(std::span<const std::string> items,
                                     std::vector<std::string>* problems_or_null) {
  NpuStateOptions options;
  for (const std::string& item : items) {
    std::string problem = Apply(item, &options);
    if (problem.empty() || problems_or_null == nullptr) continue;
    problems_or_null->push_back(fmt::format("\"{}\": {}", item, problem));
  }
  return options;
}

}  // namespace profd
