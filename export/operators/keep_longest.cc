// Cuts a Model down to what took longest.
#include <algorithm>
#include <cstdint>
#include <optional>
#include <set>
#include <string>
#include <tuple>
#include <unordered_map>
#include <unordered_set>
#include <utility>
#include <vector>

#include "export/operators/details.h"
#include "export/operators/model.h"
#include "export/operators/sort_records.h"

namespace profd::exporting::operators {
namespace {

using Totals = std::unordered_map<std::string, int64_t>;  // ns by name

std::unordered_set<std::string> Longest(const Totals& totals, size_t count) {
  std::vector<std::pair<int64_t, std::string_view>> by_time;
  by_time.reserve(totals.size());
  for (const auto& [name, ns] : totals) by_time.emplace_back(-ns, name);
  std::ranges::sort(by_time);
  if (by_time.size() > count) by_time.resize(count);
  std::unordered_set<std::string> kept;
  for (const auto& [ns, name] : by_time) kept.emplace(name);
  return kept;
}

// The calls that made what is kept, those around them and those in them; the others stay for the tree alone.
void HideOtherApis(const std::vector<bool>& made, Large<Api>* apis) {
  for (size_t begin = 0, end = 0; begin < apis->size(); begin = end) {
    // One thread; inner calls follow the outer ones, so all within a call come behind it.
    std::vector<size_t> open;
    std::vector<bool> kept;
    for (end = begin; end < apis->size() && (*apis)[end].thread == (*apis)[begin].thread; ++end) {
      const Api& api = (*apis)[end];
      while (!open.empty() && (*apis)[open.back()].end < api.end) open.pop_back();
      const bool inside = std::ranges::any_of(open, [&](size_t outer) { return made[outer]; });
      kept.push_back(made[end] || inside);
      for (size_t outer : open) {
        if (made[end]) kept[outer - begin] = true;
      }
      open.push_back(end);
    }
    for (size_t i = begin; i < end; ++i) {
      if (!kept[i - begin]) (*apis)[i].early = true;
    }
  }
}

// Device, stream, batch, task, context and start.
using RanTask = std::tuple<int16_t, uint16_t, uint16_t, uint16_t, uint32_t, int64_t>;

std::set<RanTask> TasksThatRan(const Model& model) {
  std::set<RanTask> ran;
  for (const CommunicationTask& task : model.communication.tasks) {
    const CommunicationHostTask& host = model.HostOf(task);
    const int16_t device = model.communication.ops[static_cast<size_t>(task.op)].device;
    ran.emplace(device, host.stream, host.batch, host.task, task.context, task.start_ns);
  }
  return ran;
}

}  // namespace

void Model::KeepLongest(size_t count) {
  OverlapsOf(*this);  // of all that ran
  longest = count;
  const auto operator_of = [this](const auto& row) -> std::optional<std::string> {
    const HostTask* task = HostOf(row);
    if (task == nullptr || !task->compute || !IsShown(*this, *task, CoreType(*task))) return std::nullopt;
    return std::string(OperatorName(*task));
  };
  Totals operators;
  for (const TaskRow& row : rows) {
    const auto name = operator_of(row);
    if (!name) continue;
    operators[*name] += row.end_ns - row.start_ns;
    before_cut.push_back({row.device, row.start_ns, row.end_ns});
  }
  Totals types;
  for (const CommunicationOp& op : communication.ops) {
    if (!op.shown) continue;
    types[TypeOf(op)] += op.end_ns - op.start_ns;
    before_cut.push_back({op.device, op.start_ns, op.end_ns});
  }
  SortSmall(&before_cut, [](const Executed& a, const Executed& b) {
    return std::tie(a.device, a.start_ns) < std::tie(b.device, b.start_ns);
  });
  const auto kept_operators = Longest(operators, count);
  const auto kept_types = Longest(types, count);
  const auto is_kept = [&](const auto& row) {
    const auto name = operator_of(row);
    return name && kept_operators.contains(*name);
  };
  KeepCacheOf(is_kept);
  for (auto& [device, of_device] : cpu) {
    std::erase_if(of_device.records.nodes, [&is_kept](const CpuNode& node) { return !is_kept(node); });
  }
  std::vector<bool> made(host.apis.size());
  const auto keep_call = [&made](int32_t api) {
    if (api >= 0) made[static_cast<size_t>(api)] = true;
  };
  for (CommunicationOp& op : communication.ops) {
    op.shown = op.shown && kept_types.contains(TypeOf(op));
    if (op.shown) keep_call(LaunchOf(op).api);
  }
  std::erase_if(communication.tasks, [this](const CommunicationTask& task) {
    return task.op < 0 || !communication.ops[static_cast<size_t>(task.op)].shown;
  });
  const std::set<RanTask> of_collectives = TasksThatRan(*this);
  std::erase_if(rows, [&](const TaskRow& row) {
    const auto name = operator_of(row);
    const bool stays = name ? kept_operators.contains(*name)
                            : of_collectives.contains(RanTask(row.device, row.stream, row.batch, row.task, row.context,
                                                              row.start_ns));
    if (stays && name) keep_call(HostOf(row)->connection);
    return !stays;
  });
  HideOtherApis(made, &host.apis);
}

const Model::Executed* Model::ExecutedBefore(int device, int64_t start_ns) const {
  const auto at = std::ranges::lower_bound(before_cut, std::pair(device, start_ns), {},
                                           [](const Executed& each) { return std::pair(each.device, each.start_ns); });
  return at != before_cut.begin() && (at - 1)->device == device ? &*(at - 1) : nullptr;
}

}  // namespace profd::exporting::operators
