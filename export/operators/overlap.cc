#include "export/operators/overlap.h"

#include <algorithm>
#include <utility>

#include "export/operators/model.h"
#include "export/operators/numbers.h"

namespace profd::exporting::operators {
namespace {

// What touches is one.
Intervals Union(Intervals parts) {
  if (!std::ranges::is_sorted(parts, {}, &Interval::start_ns)) std::ranges::sort(parts, {}, &Interval::start_ns);
  size_t joined = 0;  // in front
  for (const Interval part : parts) {
    if (joined > 0 && part.start_ns <= parts[joined - 1].end_ns) {
      parts[joined - 1].end_ns = std::max(parts[joined - 1].end_ns, part.end_ns);
    } else {
      parts[joined++] = part;
    }
  }
  parts.resize(joined);
  return parts;
}

Intervals Joined(const Intervals& a, const Intervals& b) {
  Intervals both;
  both.reserve(a.size() + b.size());
  both.insert(both.end(), a.begin(), a.end());
  both.insert(both.end(), b.begin(), b.end());
  return Union(std::move(both));
}

// Both of Union.
Intervals Without(const Intervals& from, const Intervals& what) {
  Intervals left;
  left.reserve(from.size() + what.size());
  size_t next = 0;
  for (const Interval& whole : from) {
    int64_t at = whole.start_ns;
    while (next < what.size() && what[next].end_ns <= at) ++next;
    for (size_t i = next; i < what.size() && what[i].start_ns < whole.end_ns; ++i) {
      if (what[i].start_ns > at) left.push_back({at, what[i].start_ns});
      at = std::max(at, what[i].end_ns);
    }
    if (at < whole.end_ns) left.push_back({at, whole.end_ns});
  }
  return left;
}

void Widen(std::optional<Interval>* window, const Interval& by) {
  if (!*window) {
    *window = by;
    return;
  }
  (*window)->start_ns = std::min((*window)->start_ns, by.start_ns);
  (*window)->end_ns = std::max((*window)->end_ns, by.end_ns);
}

// Host types of tasks that do not bound the time of a device.
bool IsKernelOrProfiler(std::string_view type) {
  constexpr std::string_view kTypes[] = {"KERNEL_AICORE",  "KERNEL_AIVEC",     "FFTS_PLUS",        "KERNEL_MIX_AIC",
                                         "KERNEL_MIX_AIV", "PROFILING_ENABLE", "PROFILING_DISABLE"};
  return std::ranges::find(kTypes, type) != std::end(kTypes);
}

struct DeviceTimes {
  Intervals computing;
  Intervals communication;
  std::optional<Interval> tasks;
};

}  // namespace

std::string_view OverlapName(OverlapKind kind) {
  switch (kind) {
    case OverlapKind::kComputing: return "Computing";
    case OverlapKind::kCommunication: return "Communication";
    case OverlapKind::kNotOverlapped: return "Communication(Not Overlapped)";
    case OverlapKind::kFree: return "Free";
  }
  return {};
}

Overlap MakeOverlap(Intervals computing, Intervals communication, std::optional<Interval> tasks) {
  Overlap made;
  made[OverlapKind::kComputing] = Union(std::move(computing));
  made[OverlapKind::kCommunication] = Union(std::move(communication));
  const Intervals& computed = made[OverlapKind::kComputing];
  const Intervals& communicated = made[OverlapKind::kCommunication];
  made[OverlapKind::kNotOverlapped] = Without(communicated, computed);
  const Intervals busy = Joined(computed, communicated);
  if (!busy.empty()) {  // by start, and none reaches beyond the next one
    Widen(&tasks, {busy.front().start_ns, busy.back().end_ns});
  }
  if (tasks && tasks->end_ns > tasks->start_ns) made[OverlapKind::kFree] = Without({*tasks}, busy);
  for (Intervals& each : made) {
    std::erase_if(each, [](const Interval& interval) { return interval.end_ns <= interval.start_ns; });
  }
  return made;
}

Overlap Merged(const Overlap& a, const Overlap& b) {
  const auto both = [&](OverlapKind kind) { return Joined(a[kind], b[kind]); };
  Overlap made = MakeOverlap(both(OverlapKind::kComputing), both(OverlapKind::kCommunication), std::nullopt);
  const Intervals busy = Joined(made[OverlapKind::kComputing], made[OverlapKind::kCommunication]);
  made[OverlapKind::kFree] = Without(both(OverlapKind::kFree), busy);
  return made;
}

namespace {

std::map<int, Overlap> MakeOverlaps(const Model& model) {
  std::map<int, DeviceTimes> devices;
  std::map<uint32_t, bool> bounds;  // by type of the runtime: whether such tasks bound the time
  std::map<int, size_t> rows;
  for (const TaskRow& row : model.rows) ++rows[row.device];
  for (const auto& [device, count] : rows) devices[device].computing.reserve(count);
  for (const TaskRow& row : model.rows) {
    DeviceTimes& device = devices[row.device];
    const Interval interval{row.start_ns, row.start_ns + static_cast<int64_t>(row.duration_ns())};
    const HostTask* host = model.HostOf(row);
    if (host == nullptr) {
      Widen(&device.tasks, interval);
      continue;
    }
    const auto [known, is_new] = bounds.try_emplace(host->type, false);
    if (is_new) known->second = !IsKernelOrProfiler(RuntimeTypeName(model.host, host->type));
    if (known->second) Widen(&device.tasks, interval);
    if (!host->compute || model.host.fused_communication_streams.contains(row.stream)) continue;
    const std::string_view name = model.OperatorName(*host);
    if (!name.ends_with("AicpuKernel") && !name.ends_with("AivKernel")) device.computing.push_back(interval);
  }
  for (const CommunicationOp& op : model.communication.ops) {
    if (op.shown) devices[op.device].communication.push_back({op.start_ns, op.end_ns});
  }
  std::map<int, Overlap> made;
  for (auto& [number, device] : devices) {
    made[number] = MakeOverlap(std::move(device.computing), std::move(device.communication), device.tasks);
  }
  return made;
}

}  // namespace

std::optional<Interval> ExtentOf(const Overlap& overlap) {
  std::optional<Interval> extent;
  for (const Intervals& intervals : overlap) {
    for (const Interval& each : intervals) {
      if (!extent) extent = each;
      extent->start_ns = std::min(extent->start_ns, each.start_ns);
      extent->end_ns = std::max(extent->end_ns, each.end_ns);
    }
  }
  return extent;
}

const std::map<int, Overlap>& OverlapsOf(const Model& model) { return model.overlaps.Of(model, MakeOverlaps); }

}  // namespace profd::exporting::operators
