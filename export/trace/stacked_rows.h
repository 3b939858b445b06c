// Slices that come by begin, outer before inner, as begins and ends: Perfetto ends the latest slice of a row that has
// begun, so those of a row must nest. What overlaps goes to a further row.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

namespace profd::exporting {

class StackedRows {
 public:
  static constexpr size_t kRows = 64;

  // The row of the next slice; kRows: as many already overlap it. `end(t_ns, row)`: a slice ends before it begins.
  template <class End>
  size_t Place(int64_t begin_ns, int64_t end_ns, const End& end) {
    for (size_t row = 0; row < kRows; ++row) {
      if (row == rows_.size()) rows_.emplace_back();
      std::vector<int64_t>& open = rows_[row];
      for (; !open.empty() && open.back() <= begin_ns; open.pop_back()) end(open.back(), row);
      if (!open.empty() && open.back() < end_ns) continue;
      open.push_back(end_ns);
      return row;
    }
    return kRows;
  }
  template <class End>
  void Finish(const End& end) {
    for (size_t row = 0; row < rows_.size(); ++row) {
      for (std::vector<int64_t>& open = rows_[row]; !open.empty(); open.pop_back()) end(open.back(), row);
    }
    rows_.clear();
  }

 private:
  std::vector<std::vector<int64_t>> rows_;  // ends of what is open, inner ones last
};

}  // namespace profd::exporting
