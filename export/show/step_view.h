// Training steps of a dump with operator-level records at a glance: what the devices did in each, and when they did it
// in one of them.
#pragma once

#include <array>
#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "export/operators/overlap.h"
#include "export/step_spans.h"

namespace profd::exporting {

// Of one device.
struct StepTimes {
  int rank = -1;  // -1: not known
  int device = -1;
  std::optional<int64_t> number;  // none: the dump has no steps, this is all of it
  int64_t start_ns = 0;
  int64_t end_ns = 0;
  // Three parts that together are what the device's tasks took, us.
  double computing_us = 0;
  double communication_us = 0;  // while nothing was computed
  double free_us = 0;
  double hidden_us = 0;  // communication while something was computed

  double all_us() const { return computing_us + communication_us + free_us; }
};

struct StepTimeline {
  struct Run {
    std::string name;
    int64_t start_ns = 0;
    int64_t end_ns = 0;
  };
  static constexpr size_t kMostRuns = 8;

  StepTimes step;
  std::array<operators::Intervals, operators::kOverlapKinds> intervals;  // by OverlapKind
  std::vector<Run> longest;  // operators and collectives, by start
};

struct StepView {
  static constexpr size_t kMaxSteps = 100'000;

  std::vector<StepTimes> steps;  // by device and start; without those in which its tasks did not run
  uint64_t left_out = 0;         // beyond kMaxSteps
  std::optional<StepTimeline> timeline;  // of the longest step

  void Add(const operators::Model& model, const StepSpans& spans, const std::function<int(int device)>& rank_of);
};

}  // namespace profd::exporting
