// Operator-level records of the devices of one rank into it.
#pragma once

#include <cstdint>
#include <set>
#include <vector>

#include "analysis/rank.h"
#include "analysis/read/readers.h"
#include "export/operators/model.h"
#include "export/operators/overlap.h"
#include "export/step_spans.h"

namespace profd::analysis {

// `steps`: of the devices.
void AddOperators(const exporting::operators::Model& model, const std::set<int>& devices, const std::vector<exporting::StepSpan>& steps,
                  const ReadContext& context, Rank* rank);

// To what other devices or recordings of the rank did. `receives`: operations that wait for another rank's data.
void AddOverlap(const exporting::operators::Overlap& overlap, const exporting::operators::Intervals& receives,
                const std::vector<exporting::StepSpan>& steps, Rank* rank);

// Of a rank with several devices those of the first have no device in their names.
int32_t LaneOfStream(int device, int64_t stream, Rank* rank);

}  // namespace profd::analysis
