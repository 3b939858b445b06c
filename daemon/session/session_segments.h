// The dumps of a session that a daemon did not live to end, as clients see them.
#pragma once

#include <algorithm>
#include <cstdint>
#include <string_view>
#include <vector>

#include "profd/v1/profd.pb.h"

namespace profd {

// Of one whose only dump it is; with the number that its segment has, if it has one.
v1::Segment SegmentOf(const v1::SessionStatus& status);
// A session that has ended gets one more segment, and is shown as its last one is.
void AddSegment(const v1::SessionStatus& found, v1::SessionStatus* session);
// `dump`: the name of the directory that is gone.
void DropSegment(std::string_view dump, v1::SessionStatus* session);

// Of a session that continues: each segment as it was found, oldest first.
class PastSegments {
 public:
  // In place of one of the same dump.
  void Add(v1::SessionStatus segment);
  // `dump`: the name of its directory.
  void Forget(std::string_view dump);
  const std::vector<v1::SessionStatus>& all() const { return segments_; }
  // There were so many, of which some may be gone.
  void SetCount(uint32_t count) { count_ = count; }
  // Of the segment after them: a number is not given twice.
  uint32_t NextNumber() const { return std::max(count_, static_cast<uint32_t>(segments_.size())) + 1; }
  // One for each dump; what is counted is counted over all of them.
  void Fill(v1::SessionStatus* out) const;

 private:
  std::vector<v1::SessionStatus> segments_;
  uint32_t count_ = 0;
};

}  // namespace profd
