// Slices of lanes as begins and ends: Perfetto ends the latest slice of a row that has begun, so those of a
// row must nest. Slices come a little out of order, and a few overlap.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "export/trace/slices.h"

namespace profd::exporting {

// One thread. A lane is a row, and further ones for slices that overlap those of the first.
class NestedLanes {
 public:
  // Where begins and ends go; those of one row in the order of time.
  class Events {
   public:
    virtual ~Events() = default;
    virtual void Begin(const Slice& slice, size_t lane, size_t row) = 0;
    virtual void End(int64_t t_ns, size_t lane, size_t row) = 0;
    // One that more slices overlap than a lane has rows.
    virtual void Crowded(const Slice& slice, size_t lane) = 0;
  };
  static constexpr size_t kRows = 64;
  static constexpr size_t kDepth = 256;
  // Slices that wait for earlier ones: of a lane, and of all.
  static constexpr size_t kWaiting = 256;
  static constexpr size_t kAllWaiting = 16'384;

  // `events` outlives it.
  explicit NestedLanes(Events& events) : events_(events) {}

  // Lanes are numbers from 0, each the next one when it is new.
  void Add(size_t lane, Slice slice);
  void Finish();

 private:
  struct Waiting {
    Slice slice;
    uint64_t number = 0;
    // The order in which a heap gives them: outer slices before those within.
    bool operator<(const Waiting& other) const;
  };
  struct Row {
    int64_t last_ns = 0;         // of what was begun
    std::vector<int64_t> open;  // ends, inner ones last
  };
  struct Lane {
    std::vector<Waiting> waiting;  // a heap, the first one in front
    std::vector<Row> rows;
  };
  void Take(size_t lane);
  // The row on which it nests; kRows if there is none.
  size_t RowFor(size_t lane, const Slice& slice);

  Events& events_;
  std::vector<Lane> lanes_;
  size_t waiting_ = 0;
  uint64_t number_ = 0;
};

}  // namespace profd::exporting
