// Which counters belong to which execution of a task (operator-data b.3).
#include <algorithm>
#include <numeric>
#include <span>
#include <tuple>
#include <utility>

#include "export/operators/model.h"
#include "export/operators/sort_records.h"

namespace profd::exporting::operators {
namespace {

template <class Record>
auto KeyOf(const Record& record) {
  return std::tuple(record.stream, record.batch, record.task, record.context);
}

constexpr uint8_t kMixAic = 6;
constexpr uint8_t kMixAiv = 7;

// The blocks of the other kind of core that ran within the task, at most so many.
PmuCounts SumBlocks(const DeviceTasks& ran, const PmuRecord& main, const DeviceTask& task, uint32_t most, bool* any) {
  PmuCounts sum;
  const auto place = [](const PmuRecord& block) { return std::tuple(KeyOf(block), block.end); };
  const auto begin = std::ranges::lower_bound(ran.block_pmu, std::tuple(KeyOf(main), task.start), {}, place);
  const auto end = std::ranges::upper_bound(begin, ran.block_pmu.end(), std::tuple(KeyOf(main), task.end), {}, place);
  for (const PmuRecord& block : std::span(begin, end)) {
    if (most == 0) break;
    if (block.sub_type != main.sub_type || block.vector_core != (main.sub_type == kMixAic)) continue;
    --most;
    *any = true;
    const PmuCounts counts = ran.pmu_counts.Of(block);
    sum.cycles += counts.cycles;
    for (size_t i = 0; i < kPmuCounters; ++i) sum.counters[i] += counts.counters[i];
  }
  return sum;
}

void SortByKey(Large<PmuRecord>* records) {
  SortRecords(records, [](const PmuRecord& a, const PmuRecord& b) {
    return std::tuple(KeyOf(a), a.end) < std::tuple(KeyOf(b), b.end);
  });
}

// Those of `records` whose key no task has; both by key.
template <class KeyOfRecord, class KeyOfTask>
uint64_t CountStray(std::span<const PmuRecord> records, std::span<const uint32_t> tasks, KeyOfRecord key_of_record,
                    KeyOfTask key_of_task) {
  uint64_t stray = 0;
  auto task = tasks.begin();
  for (const PmuRecord& record : records) {
    const auto key = key_of_record(record);
    while (task != tasks.end() && key_of_task(*task) < key) ++task;
    if (task == tasks.end() || key_of_task(*task) != key) ++stray;
  }
  return stray;
}

}  // namespace

void DeviceTasks::MatchCounters() {
  if (!pmu_has_times || pmu.empty()) return;
  SortByKey(&pmu);
  SortByKey(&block_pmu);
  Large<uint32_t> order(tasks.size());
  std::iota(order.begin(), order.end(), 0u);
  SortSmall(&order, [this](uint32_t a, uint32_t b) {
    return std::tuple(KeyOf(tasks[a]), tasks[a].start) < std::tuple(KeyOf(tasks[b]), tasks[b].start);
  });
  pmu_of.assign(tasks.size(), -1);
  size_t next = 0;
  for (const uint32_t at : order) {
    const DeviceTask& task = tasks[at];
    const auto before = [&](const PmuRecord& one) {
      return KeyOf(one) < KeyOf(task) || (KeyOf(one) == KeyOf(task) && one.end < task.start);
    };
    while (next < pmu.size() && before(pmu[next])) ++next;
    if (next == pmu.size()) break;
    if (KeyOf(pmu[next]) == KeyOf(task) && pmu[next].end <= task.end) pmu_of[at] = static_cast<int32_t>(next++);
  }
  stray_counters = CountStray(pmu, order, [](const PmuRecord& record) { return KeyOf(record); },
                              [this](uint32_t at) { return KeyOf(tasks[at]); });
}

double DevicePmu::MhzAt(uint64_t count) const {
  const auto after = std::ranges::upper_bound(clock, count, {}, &std::pair<uint64_t, double>::first);
  return after == clock.begin() ? mhz : std::prev(after)->second;
}

// The device's records become the model's; those of no row stay, they are few. Index of the first.
size_t Model::TakePmu(DeviceTasks* ran) {
  const size_t first = pmu.size();
  if (pmu.empty()) {
    pmu = std::move(ran->pmu);
  } else {
    pmu.insert(pmu.end(), ran->pmu.begin(), ran->pmu.end());
  }
  pmu_counts.Append(ran->pmu_counts, std::span(pmu).subspan(first));
  return first;
}

// The first counters of a stream and task are of its first execution on an AI Core, and so on: they have no times and
// know of no batches.
void Model::JoinPmuInOrder(DeviceTasks ran, std::span<const uint32_t> joined, size_t first_row) {
  const auto id_of = [](const auto& record) { return std::tuple(record.stream, record.task); };
  SortRecords(&ran.pmu, [&](const PmuRecord& a, const PmuRecord& b) { return id_of(a) < id_of(b); });
  constexpr uint16_t kAiCore = 0;
  Large<uint32_t> order;  // of the rows
  order.reserve(joined.size());
  for (uint32_t at = 0; at < joined.size(); ++at) {
    if (ran.tasks[joined[at]].type == kAiCore) order.push_back(at);
  }
  std::ranges::stable_sort(order, {}, [&](uint32_t at) {
    const DeviceTask& task = ran.tasks[joined[at]];
    return std::tuple(task.stream, task.task, task.start);
  });
  const size_t first_pmu = TakePmu(&ran);
  size_t next = first_pmu;
  for (const uint32_t at : order) {
    const DeviceTask& task = ran.tasks[joined[at]];
    while (next < pmu.size() && id_of(pmu[next]) < id_of(task)) ++next;
    if (next == pmu.size()) break;
    if (id_of(pmu[next]) != id_of(task)) continue;
    rows[first_row + at].pmu = static_cast<int32_t>(next++);
  }
  stray_counters += CountStray(std::span(pmu).subspan(first_pmu), order, id_of,
                               [&](uint32_t at) { return id_of(ran.tasks[joined[at]]); });
}

void Model::JoinPmu(DeviceTasks ran, std::span<const uint32_t> joined, size_t first_row) {
  if (!ran.pmu_has_times) return JoinPmuInOrder(std::move(ran), joined, first_row);
  if (ran.pmu_of.empty()) ran.MatchCounters();
  const size_t first_pmu = TakePmu(&ran);
  for (size_t i = 0; i < joined.size(); ++i) {
    const int32_t found = ran.pmu_of[joined[i]];
    if (found < 0) continue;
    TaskRow& row = rows[first_row + i];
    row.pmu = static_cast<int32_t>(first_pmu) + found;
    const PmuRecord record = pmu[static_cast<size_t>(row.pmu)];
    const HostTask* host_task = HostOf(row);
    if (host_task == nullptr || (record.sub_type != kMixAic && record.sub_type != kMixAiv)) continue;
    bool any = false;
    const PmuCounts counts = SumBlocks(ran, record, ran.tasks[joined[i]], host_task->mix_blocks, &any);
    if (!any) continue;
    PmuRecord other = record;
    other.vector_core = !record.vector_core;
    pmu_counts.Pack(counts, &other);
    row.other_pmu = static_cast<int32_t>(pmu.size());
    pmu.push_back(other);
  }
  stray_counters += ran.stray_counters;
}

}  // namespace profd::exporting::operators
