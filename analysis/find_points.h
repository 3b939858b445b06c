// Where forward starts and backward ends in the steps of a rank whose recorder does not say it.
#pragma once

#include "analysis/rank.h"

namespace profd::analysis {

// By the rules of the exports (export/step_parts.h), out of what ran in the time of each step: after the operator that
// gets the batch, and before the last all-reduce. Leaves a rank alone that has any such point.
void FindPoints(Rank* rank);

}  // namespace profd::analysis
