// Operator-level records of one device into a rank.
#pragma once

#include "analysis/rank.h"
#include "analysis/read/readers.h"
#include "export/operators/model.h"
#include "export/step_spans.h"

namespace profd::analysis {

// `steps`: of the device.
void AddOperators(const exporting::operators::Model& model, int device, const std::vector<exporting::StepSpan>& steps,
                  const ReadContext& context, Rank* rank);

}  // namespace profd::analysis
