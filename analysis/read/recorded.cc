#include "analysis/read/recorded.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "analysis/read/operators.h"
#include "export/operators/numbers.h"

namespace profd::analysis {

Launchers::Launchers(const std::vector<Recorded>& calls) {
  for (const Recorded& call : calls) {
    if (call.correlation != 0) first_.push_back(&call);
  }
  std::ranges::stable_sort(first_, {}, [](const Recorded* call) { return std::pair(KeyOf(*call), call->end_ns); });
  // Not std::ranges::unique: clang 14 does not compile its subrange with this library.
  const auto same = [](const Recorded* a, const Recorded* b) { return KeyOf(*a) == KeyOf(*b); };
  first_.erase(std::unique(first_.begin(), first_.end(), same), first_.end());
}

bool Launchers::Has(const Recorded& call) const {
  if (call.correlation == 0) return false;
  const Recorded& first = **std::ranges::lower_bound(first_, KeyOf(call), {}, [](const Recorded* each) { return KeyOf(*each); });
  return call.start_ns <= first.start_ns && call.end_ns >= first.end_ns;
}

std::string_view CoreNameOf(std::string_view type) {
  const int core = exporting::operators::CoreOfKernel(type);
  return core < 0 ? type : exporting::operators::CoreTypeName(static_cast<uint32_t>(core));
}

void RecordedOfRank::AddDevice(const OfDevice& device, int number, Intervals* computing, Intervals* communication) {
  const auto text = [this](int64_t id) { return rank_.Text(text_of_(id)); };
  for (const Recorded& kernel : device.kernels) {
    const TextId name = text(kernel.name);
    const int32_t op = rank_.OperatorOf(name, name, rank_.Text(CoreNameOf(text_of_(kernel.other))));
    correlated_[kernel.correlation].push_back(static_cast<uint32_t>(rank_.executions.size()));
    rank_.executions.push_back({kernel.start_ns, kernel.end_ns, op, LaneOfStream(number, kernel.place, &rank_)});
    computing->push_back({kernel.start_ns, kernel.end_ns});
  }
  for (const Recorded& each : device.collectives) {
    Collective& made = rank_.collectives.emplace_back();
    made.name = made.type = text(each.name);
    made.group = text(each.other);
    made.start_ns = each.start_ns;
    made.elapse_ms = Ms(each.end_ns - each.start_ns);
    rank_.slices.push_back({each.start_ns, each.end_ns, made.name, rank_.LaneOf("Communication", fmt::format("Group {}", rank_.TextOf(made.group)))});
    communication->push_back({each.start_ns, each.end_ns});
  }
}

void RecordedOfRank::AddCall(const Recorded& call, bool is_node, const Launchers& launchers) {
  const auto slice = static_cast<uint32_t>(rank_.slices.size());
  rank_.slices.push_back({call.start_ns, call.end_ns, rank_.Text(fmt::format("{}{}", is_node ? "Node@launch " : "", text_of_(call.name))),
                          rank_.LaneOf("CANN", fmt::format("Thread {}", call.place))});
  if (!launchers.Has(call)) return;
  const auto launched = correlated_.find(call.correlation);
  if (launched == correlated_.end()) return;
  for (const uint32_t execution : launched->second) rank_.flows.push_back({slice, execution});
}

}  // namespace profd::analysis
