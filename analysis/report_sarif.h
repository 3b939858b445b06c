// Findings in the form that editors read (SARIF 2.1.0): a result for each place in the program.
#pragma once

#include <string_view>

#include "analysis/checks/check.h"

namespace profd::analysis {

// `findings` as Advise() returns them. A finding without a call stack is one result without a
// location.
Json Sarif(const Json& findings, std::string_view version, Language language);

}  // namespace profd::analysis
