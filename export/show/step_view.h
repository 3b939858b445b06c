// Training steps of a dump at a glance: what the devices did in each, and when they did it in one of them. Of
// operator-level records, and of kernels and communication that profd recorded itself.
#pragma once

#include <array>
#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "export/batch.h"
#include "export/operators/overlap.h"
#include "export/step_spans.h"
#include "export/strings.h"

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
  uint64_t left_out_runs = 0;    // beyond RecordedWork::kMaxRuns: the steps do not have them
  std::optional<StepTimeline> timeline;  // of the longest step

  using Runs = std::vector<StepTimeline::Run>;
  // A device; its steps by start. `longest`: of the step, asked if it is the longest so far.
  void Add(int rank, int device, const operators::Overlap& overlap, const std::vector<StepSpan>& its_steps,
           const std::function<Runs(const StepTimes&)>& longest);
  void Add(const operators::Model& model, const StepSpans& spans, const std::function<int(int device)>& rank_of);
};

// What profd recorded: kernels and communication of each device.
class RecordedWork {
 public:
  static constexpr size_t kMaxRuns = 4'000'000;  // 24 bytes each

  void Add(const Batch& batch, bool communication);
  void Merge(RecordedWork other);
  void AddTo(StepView* view, const StepSpans& spans, const Strings& strings) const;
  uint64_t left_out() const { return left_out_; }

 private:
  struct Run {
    operators::Interval when;
    int64_t name = 0;
  };
  struct Device {
    int rank = -1;
    std::vector<Run> kernels;
    std::vector<Run> communication;
  };
  StepView::Runs Longest(const Device& device, const StepTimes& step, const Strings& strings) const;

  std::map<int, Device> devices_;
  size_t runs_ = 0;
  uint64_t left_out_ = 0;
};

}  // namespace profd::exporting
