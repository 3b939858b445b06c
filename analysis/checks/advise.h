// All checks over a run.
#pragma once

#include <string>

#include "analysis/checks/check.h"

namespace profd::analysis {

// A list of findings, those of the highest priority first, each priority in the order of the table. `baseline_or_null`:
// a run to compare with. Its form is in docs/advice.schema.json.
Json Advise(const Run& run, const Run* baseline_or_null, const Limits& limits, Language language = Language::kEnglish);

// The limits of a file of the user's (analysis/rules/limits.h).
Status ReadLimits(const std::string& path, Limits* limits);

}  // namespace profd::analysis
