#include "export/sqlite/task_numbers.h"

#include <algorithm>
#include <numeric>
#include <tuple>

#include "export/operators/sort_records.h"

namespace profd::exporting {
namespace {

auto TaskOf(const operators::TaskRow& row) {
  return std::tuple(row.device, row.stream, row.batch, row.task, row.context);
}
auto KeyOf(const operators::TaskRow& row) { return std::tuple(TaskOf(row), row.type); }

}  // namespace

TaskNumbers::TaskNumbers(std::span<const operators::TaskRow> rows)
    : rows_(rows), order_(rows.size()), numbers_(rows.size()), by_key_(rows.size()) {
  std::iota(order_.begin(), order_.end(), 0u);
  operators::SortSmall(&order_, [rows](uint32_t a, uint32_t b) { return rows[a].start_ns < rows[b].start_ns; });
  std::iota(by_key_.begin(), by_key_.end(), 0u);
  const auto key = [this](uint32_t place) { return KeyOf(rows_[RowAt(place)]); };
  operators::SortSmall(&by_key_, [&key](uint32_t a, uint32_t b) { return key(a) < key(b); });
  // First the place of each task's first execution, then its number.
  uint32_t first = 0;
  for (size_t i = 0; i < by_key_.size(); ++i) {
    if (i == 0 || key(by_key_[i]) != key(first)) first = by_key_[i];
    numbers_[by_key_[i]] = first;
  }
  for (uint32_t place = 0; place < numbers_.size(); ++place) {
    numbers_[place] = numbers_[place] == place ? static_cast<uint32_t>(distinct_++) : numbers_[numbers_[place]];
  }
}

int64_t TaskNumbers::Find(int16_t device, uint16_t stream, uint16_t batch, uint16_t task, uint32_t context) const {
  const std::tuple wanted(device, stream, batch, task, context);
  const auto of = [this](uint32_t place) { return TaskOf(rows_[RowAt(place)]); };
  const auto found = std::ranges::lower_bound(by_key_, wanted, {}, of);
  return found == by_key_.end() || of(*found) != wanted ? -1 : int64_t{numbers_[*found]};
}

}  // namespace profd::exporting
