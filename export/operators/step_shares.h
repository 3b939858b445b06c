// What a device did in each training step: computing, communication, neither (the overlap of operator-data d.5, cut by
// steps as PyTorch's profiler does).
#pragma once

#include <array>
#include <optional>
#include <span>
#include <vector>

#include "export/operators/model.h"
#include "export/operators/overlap.h"
#include "export/step_spans.h"

namespace profd::exporting::operators {

struct StepShare {
  std::optional<StepSpan> step;  // none: there are no steps, all of it is one
  std::array<double, kOverlapKinds> us = {};  // by OverlapKind: the intervals that begin in it, added in their order
  double receive_us = 0;  // operations that wait for another rank's data
  double whole_us = 0;    // from the begin of the first interval to the end of the last
  double before_us = 0;   // from the begin of the step to what is computed or communicated first

  double Of(OverlapKind kind) const { return us[static_cast<size_t>(kind)]; }
};

// In order of `steps`; an interval belongs to the step in whose time it begins.
std::vector<StepShare> StepShares(const Overlap& overlap, const Intervals& receives, std::span<const StepSpan> steps);

// "receive" is part of the name of an operation's type.
bool IsReceive(std::string_view type);
// Those of the device, by start.
Intervals ReceivesOf(const Model& model, int device);

}  // namespace profd::exporting::operators
