// Operations of communication as PyTorch's profiler sums them up: how long each took, transferred and waited, and how
// much went over each link.
#pragma once

#include <cstdint>
#include <span>
#include <string>

#include "export/operators/model.h"
#include "export/step_spans.h"

namespace profd::exporting::csv {

struct CollectiveJson {
  std::string times;   // communication.json
  std::string matrix;  // communication_matrix.json
  uint64_t operations = 0;
};

// Of one device. Without steps all are of one step without a number; else those that begin in none are left out.
CollectiveJson CollectivesAsJson(const operators::Model& model, int device, std::span<const StepSpan> steps);

}  // namespace profd::exporting::csv
