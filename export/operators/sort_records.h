// Sorting of large records without a second copy of them, which std::stable_sort takes.
#pragma once

#include <algorithm>
#include <cstdint>
#include <numeric>
#include <utility>

#include "export/large.h"

namespace profd::exporting::operators {

// Stable. Four bytes a record; nothing where they are sorted already, as those of one thread or stream mostly are.
template <class Records, class Less>
void SortRecords(Records* records, Less less) {
  if (std::ranges::is_sorted(*records, less)) return;
  Large<uint32_t> from(records->size());
  std::iota(from.begin(), from.end(), 0u);
  std::ranges::sort(from, [&](uint32_t a, uint32_t b) {
    if (less((*records)[a], (*records)[b])) return true;
    return !less((*records)[b], (*records)[a]) && a < b;
  });
  // Along each cycle: the record that belongs to `i` lies at from[i].
  for (uint32_t i = 0; i < from.size(); ++i) {
    if (from[i] == i) continue;
    auto first = std::move((*records)[i]);
    uint32_t at = i;
    while (from[at] != i) {
      (*records)[at] = std::move((*records)[from[at]]);
      at = std::exchange(from[at], at);
    }
    (*records)[at] = std::move(first);
    from[at] = at;
  }
}

// Stable, with a second copy; neither where they are sorted already.
template <class Records, class Less>
void SortSmall(Records* records, Less less) {
  if (!std::ranges::is_sorted(*records, less)) std::ranges::stable_sort(*records, less);
}

}  // namespace profd::exporting::operators
