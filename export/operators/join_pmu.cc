// Which counters belong to which execution of a task (operator-data b.3).
#include <algorithm>
#include <numeric>
#include <tuple>
#include <utility>

#include "export/operators/model.h"

namespace profd::exporting::operators {
namespace {

template <class Record>
auto KeyOf(const Record& record) {
  return std::tuple(record.stream, record.batch, record.task, record.context);
}

constexpr uint8_t kMixAic = 6;
constexpr uint8_t kMixAiv = 7;

// The blocks of the other kind of core that ran within the task, at most so many.
PmuCounts SumBlocks(const std::vector<PmuRecord>& blocks, const PmuRecord& main, const DeviceTask& task, uint32_t most,
                    bool* any) {
  PmuCounts sum;
  const auto [begin, end] = EqualRange(blocks, KeyOf(main), [](const PmuRecord& b) { return KeyOf(b); });
  for (const PmuRecord& block : std::span(begin, end)) {
    if (block.sub_type != main.sub_type || block.vector_core != (main.sub_type == kMixAic)) continue;
    if (block.end < task.start || block.end > task.end || most == 0) continue;
    --most;
    *any = true;
    sum.cycles += block.counts.cycles;
    for (size_t i = 0; i < kPmuCounters; ++i) sum.counters[i] += block.counts.counters[i];
  }
  return sum;
}

template <class Record>
std::vector<Record> SortedByKey(const std::vector<Record>& records) {
  std::vector<Record> sorted = records;
  std::ranges::stable_sort(sorted, [](const Record& a, const Record& b) {
    return std::tuple(KeyOf(a), a.end) < std::tuple(KeyOf(b), b.end);
  });
  return sorted;
}

}  // namespace

double DevicePmu::MhzAt(uint64_t count) const {
  const auto after = std::ranges::upper_bound(clock, count, {}, &std::pair<uint64_t, double>::first);
  return after == clock.begin() ? mhz : std::prev(after)->second;
}

void Model::JoinPmu(int device, const DeviceTasks& ran, DevicePmu setup) {
  const std::vector<PmuRecord> counters = SortedByKey(ran.pmu);
  const std::vector<PmuRecord> blocks = SortedByKey(ran.block_pmu);
  std::vector<size_t> order(joined_tasks_.size());
  std::iota(order.begin(), order.end(), size_t{0});
  std::ranges::stable_sort(order, [this](size_t a, size_t b) {
    const DeviceTask& left = joined_tasks_[a];
    const DeviceTask& right = joined_tasks_[b];
    return std::tuple(KeyOf(left), left.start) < std::tuple(KeyOf(right), right.start);
  });
  size_t next = 0;
  for (const size_t at : order) {
    const DeviceTask& task = joined_tasks_[at];
    const auto before = [&](const PmuRecord& one) {
      return KeyOf(one) < KeyOf(task) || (KeyOf(one) == KeyOf(task) && one.end < task.start);
    };
    while (next < counters.size() && before(counters[next])) ++next;
    if (next == counters.size()) break;
    const PmuRecord& found = counters[next];
    if (KeyOf(found) != KeyOf(task) || found.end > task.end) continue;
    ++next;
    TaskRow& row = rows[joined_from_ + at];
    const double mhz = setup.MhzAt(found.end);
    row.pmu = static_cast<int32_t>(pmu.size());
    pmu.push_back({found.counts, mhz, found.vector_core});
    const HostTask* host_task = HostOf(row);
    if (host_task == nullptr || (found.sub_type != kMixAic && found.sub_type != kMixAiv)) continue;
    bool any = false;
    const PmuCounts other = SumBlocks(blocks, found, task, host_task->mix_blocks, &any);
    if (!any) continue;
    row.other_pmu = static_cast<int32_t>(pmu.size());
    pmu.push_back({other, mhz, !found.vector_core});
  }
  device_pmu.insert_or_assign(device, std::move(setup));
}

}  // namespace profd::exporting::operators
