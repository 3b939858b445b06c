// Whether what tuning promised is seen: tuned operators in a profile before and one after, and the model's steps.
#pragma once

#include "analysis/run.h"
#include "analysis/tuning/tuning_view.h"

namespace profd::analysis {

// {"step": {...}, "promised_model": ..., "operators": [...], "counts": {...}}. An operator is looked for by its name,
// else by its types: then it stands for all of that type, and its verdict is weaker.
Json VerifyTuning(const Run& before, const Run& after, const TuningResults& results);

}  // namespace profd::analysis
