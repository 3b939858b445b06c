#include "daemon/config/npu_extras.h"

#include <fmt/format.h>

#include <array>
#include <string_view>

#include "base/text.h"

namespace profd {
namespace {

struct Switch {
  std::string_view name;
  bool NpuExtras::*on;
};
constexpr auto kSwitches = std::to_array<Switch>({
    {"core_utilization", &NpuExtras::core_utilization},
    {"serdes", &NpuExtras::serdes},
    {"call_buckets", &NpuExtras::call_buckets},
});

struct Timed {
  std::string_view name;
  int NpuExtras::*ms;
  int min_ms;
};
// The upper end is ours: with 16 NPUs the thread that talks to libdcmi is away for 8 s a minute
// then.
constexpr int kMaxMs = 500;
constexpr int kDefaultMs = 100;
constexpr auto kTimed = std::to_array<Timed>({
    {"pcie_bandwidth", &NpuExtras::pcie_bandwidth_ms, 1},
    {"hccs_bandwidth", &NpuExtras::hccs_bandwidth_ms, 1},
    {"rdma_bandwidth", &NpuExtras::rdma_bandwidth_ms, 100},
});

// Empty, or what is wrong.
std::string Apply(std::string_view item, NpuExtras* extras) {
  const size_t equals = item.find('=');
  const std::string_view name = item.substr(0, equals);
  for (const Switch& one : kSwitches) {
    if (one.name != name) continue;
    if (equals != std::string_view::npos) return fmt::format("{} takes no number", name);
    extras->*one.on = true;
    return {};
  }
  for (const Timed& one : kTimed) {
    if (one.name != name) continue;
    int ms = kDefaultMs;
    if (equals != std::string_view::npos && !ParseNumber(item.substr(equals + 1), &ms)) ms = 0;
    if (ms < one.min_ms || ms > kMaxMs) {
      return fmt::format("{} takes {}..{} ms", name, one.min_ms, kMaxMs);
    }
    extras->*one.ms = ms;
    return {};
  }
  return "unknown; there are core_utilization, serdes, call_buckets, pcie_bandwidth, hccs_bandwidth, "
         "rdma_bandwidth";
}

}  // namespace

NpuExtras ParseNpuExtras(const std::vector<std::string>& items,
                         std::vector<std::string>* problems_or_null) {
  NpuExtras extras;
  for (const std::string& item : items) {
    std::string problem = Apply(item, &extras);
    if (problem.empty() || problems_or_null == nullptr) continue;
    problems_or_null->push_back(fmt::format("metrics.npu_extra: \"{}\": {}", item, problem));
  }
  return extras;
}

}  // namespace profd
