// When training steps ran, by their numbers: for exports of some of them.
#pragma once

#include <cstdint>
#include <optional>

#include "export/engine.h"

namespace profd::exporting {

// Both belong to it.
struct StepNumbers {
  int64_t first = 0;
  int64_t last = 0;
};

struct FoundSteps {
  // From the begin of the first of the requested steps, on whichever rank, to before the end of the last of them. None:
  // there is no such step.
  std::optional<TimeWindow> window;
  std::optional<StepNumbers> all;  // lowest and highest number there is; none: the dumps have no steps
};

// Of the dumps and ranks of `options`, by the best source of steps that any of them has.
Result<FoundSteps> FindSteps(const ExportOptions& options, const StepNumbers& wanted);

}  // namespace profd::exporting
