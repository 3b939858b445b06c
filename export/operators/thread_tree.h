// The API intervals of one thread as a tree (operator-data b.1): which interval a record belongs to.
#pragma once

#include <algorithm>
#include <cstdint>
#include <span>

#include "export/operators/host_data.h"

namespace profd::exporting::operators {

class ThreadTree {
 public:
  // Of one level, by begin; indices of the tree.
  using Level = Large<int32_t>;

  // Whether it has a place in the tree: calls of these levels that took some time.
  static bool Takes(const Api& api);

  // `apis`: sorted as HostData::apis; outlive the tree.
  explicit ThreadTree(std::span<const Api> apis);

  const Api& Of(int32_t index) const { return all_[apis_[static_cast<size_t>(index)]]; }
  int32_t ParentOf(int32_t index) const { return parents_[static_cast<size_t>(index)]; }
  // Its number among those of its level; of the two levels below.
  size_t OrdinalOf(int32_t index) const { return ordinals_[static_cast<size_t>(index)]; }
  const Level& nodes() const { return nodes_; }
  const Level& communication() const { return communication_; }

  // The innermost with begin < time <= end; -1: none. `from`: 0, then what the call with an earlier time left there.
  int32_t Find(uint64_t time, size_t* from) const;
  // The innermost of the level around `index`, which may be itself; -1: none.
  int32_t Above(int32_t index, uint16_t level) const;

  // Each record with the ordinal of the interval of the level it belongs to; those between two belong to none.
  // `to_inner`: the first inner one that contains the record gets it. `records` by time.
  template <class Record, class Take>
  void Attach(const Level& level, std::span<const Record> records, bool to_inner, Take take) const {
    size_t at = 0;
    size_t inner = 0;  // those before it have ended
    for (size_t i = 0; i < records.size(); ++i) {
      const uint64_t time = records[i].time;
      while (at < level.size() && Of(level[at]).end < time) ++at;
      if (at == level.size()) return;
      if (time <= Of(level[at]).begin) continue;
      size_t owner = at;
      if (to_inner) {
        inner = std::max(inner, at + 1);
        while (inner < level.size() && Of(level[inner]).end < time) ++inner;
        if (inner < level.size() && Of(level[inner]).begin <= time) owner = inner;
      }
      take(owner, i);
    }
  }

 private:
  std::span<const Api> all_;
  Large<uint32_t> apis_;  // indices of all_
  Large<int32_t> parents_;
  Large<uint32_t> ordinals_;
  Level nodes_;
  Level communication_;
};

}  // namespace profd::exporting::operators
