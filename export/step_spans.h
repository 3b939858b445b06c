// Training steps as the events of a dump report them, from any source.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <utility>
#include <vector>

#include "export/event.h"

namespace profd::exporting {

struct StepSpan {
  int64_t number = 0;
  int64_t start_ns = 0;
  int64_t end_ns = 0;
  int device = -1;  // whose step trace has it; -1: a process marked it
  int rank = -1;    // of that process; -1: not known

  // What begins when a step ends belongs to the next one.
  bool Has(int64_t t_ns) const { return t_ns >= start_ns && t_ns < end_ns; }
};

// Best first: marked by the process, in the step trace of its devices, iterations of a graph, ranges that PyTorch's
// profiler calls `ProfilerStep#<N>`.
enum class StepSource : uint8_t { kMarked, kOfDevices, kIterations, kFramework };
inline constexpr size_t kStepSources = 4;

// None: the event is not a step.
std::optional<std::pair<StepSource, StepSpan>> StepOf(const Event& event);

// Those of one dump that lie completely in its session.
class StepSpans {
 public:
  static constexpr size_t kMaxSteps = 1'000'000;

  void Add(const Event& event);
  void Add(StepSource source, const StepSpan& span);
  void Merge(StepSpans other);
  // Of the best source that has any: the device's, those of its rank's process (-1: not known), and those of which
  // neither is known; by start.
  std::vector<StepSpan> For(int device, int rank) const;

 private:
  std::array<std::vector<StepSpan>, kStepSources> spans_;
};

}  // namespace profd::exporting
