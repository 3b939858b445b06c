// What each rank spent in each step: the rows of `slow_rank` and `slow_link`, by which a rank is chosen to look at.
#pragma once

#include <array>
#include <cstdint>
#include <string_view>
#include <vector>

#include "analysis/run.h"

namespace profd::analysis {

enum class StepPart : uint8_t { kComputing, kCommunication, kFree };

struct StepRow {
  const Rank* rank = nullptr;
  int64_t step = -1;              // -1: all
  std::array<double, 3> ms = {};  // by StepPart; of communication what nothing covers
  double At(StepPart part) const { return ms[static_cast<size_t>(part)]; }
};
// By step, then in the order of the ranks.
std::vector<StepRow> StepRowsOf(const Run& run);
std::vector<StepRow> StepRowsOf(const Rank& rank);
// A recording may begin and end within a step, which then looks free. Where no step is recorded from begin to end, all count.
void KeepCompleteSteps(const Run& run, std::vector<StepRow>* rows);
// A row for each rank that has some, in the order of `run`: its mean step. Where a rank has no steps, all that each recorded.
std::vector<StepRow> MeanRowsOf(const Run& run, const std::vector<StepRow>& rows);

inline constexpr std::array<std::string_view, 2> kLinkTransports = {"RDMA", "SDMA"};

// What a rank moved in one step.
struct LinkRow {
  int64_t step = -1;  // -1: of what is of no known step
  const Rank* rank = nullptr;
  std::array<Transport, kLinkTransports.size()> sums;
};
// By step, then in the order of the ranks.
std::vector<LinkRow> LinkRowsOf(const Run& run);
std::vector<LinkRow> LinkRowsOf(const Rank& rank);

}  // namespace profd::analysis
