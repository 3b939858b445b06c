#include "export/trace/nested_lanes.h"

#include <algorithm>
#include <functional>
#include <utility>

namespace profd::exporting {

bool NestedLanes::Waiting::operator<(const Waiting& other) const {
  // std::push_heap has the greatest in front.
  if (slice.t_ns != other.slice.t_ns) return slice.t_ns > other.slice.t_ns;
  if (slice.dur_ns != other.slice.dur_ns) return slice.dur_ns < other.slice.dur_ns;
  return number > other.number;
}

void NestedLanes::Add(size_t lane, Slice slice) {
  if (lane >= lanes_.size()) lanes_.resize(lane + 1);
  std::vector<Waiting>& waiting = lanes_[lane].waiting;
  waiting.push_back({std::move(slice), ++number_});
  std::ranges::push_heap(waiting, std::less<>());
  ++waiting_;
  if (waiting.size() > kWaiting || waiting_ > kAllWaiting) Take(lane);
}

void NestedLanes::Finish() {
  for (size_t lane = 0; lane < lanes_.size(); ++lane) {
    while (!lanes_[lane].waiting.empty()) Take(lane);
    for (size_t row = 0; row < lanes_[lane].rows.size(); ++row) {
      std::vector<int64_t>& open = lanes_[lane].rows[row].open;
      for (; !open.empty(); open.pop_back()) events_.End(open.back(), lane, row);
    }
  }
}

void NestedLanes::Take(size_t lane) {
  std::vector<Waiting>& waiting = lanes_[lane].waiting;
  std::ranges::pop_heap(waiting, std::less<>());
  const Slice slice = std::move(waiting.back().slice);
  waiting.pop_back();
  --waiting_;
  const size_t row = RowFor(lane, slice);
  if (row == kRows) return events_.Crowded(slice, lane);
  events_.Begin(slice, lane, row);
  lanes_[lane].rows[row].last_ns = slice.t_ns;
  lanes_[lane].rows[row].open.push_back(slice.t_ns + slice.dur_ns);
}

size_t NestedLanes::RowFor(size_t lane, const Slice& slice) {
  std::vector<Row>& rows = lanes_[lane].rows;
  for (size_t i = 0; i < rows.size(); ++i) {
    Row& row = rows[i];
    if (slice.t_ns < row.last_ns) continue;
    for (; !row.open.empty() && row.open.back() <= slice.t_ns; row.open.pop_back()) {
      events_.End(row.open.back(), lane, i);
    }
    const bool nests = row.open.empty() || slice.t_ns + slice.dur_ns <= row.open.back();
    if (nests && row.open.size() < kDepth) return i;
  }
  if (rows.size() >= kRows) return kRows;
  rows.emplace_back();
  return rows.size() - 1;
}

}  // namespace profd::exporting
