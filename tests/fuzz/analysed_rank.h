// What holds of a rank whatever it was read from.
#pragma once

#include "analysis/rank.h"
#include "tests/fuzz/fuzz_input.h"

namespace profd::analysis {

inline void CheckRank(const Rank& rank) {
  for (const Execution& each : rank.executions) {
    FUZZ_EXPECT(each.start_ns <= each.end_ns);
    FUZZ_EXPECT(each.op >= 0 && each.op < static_cast<int32_t>(rank.operators.size()));
    FUZZ_EXPECT(each.lane >= 0 && each.lane < static_cast<int32_t>(rank.lanes.size()));
  }
  for (const Slice& each : rank.slices) {
    FUZZ_EXPECT(each.start_ns <= each.end_ns);
    FUZZ_EXPECT(each.lane >= 0 && each.lane < static_cast<int32_t>(rank.lanes.size()));
  }
  for (const Flow& flow : rank.flows) {
    FUZZ_EXPECT(flow.slice < rank.slices.size() && flow.execution < rank.executions.size());
  }
}

}  // namespace profd::analysis
