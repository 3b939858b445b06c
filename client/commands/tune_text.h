// Conditions, results and verdicts of tuning for people.
#pragma once

#include <ostream>

#include "client/commands/tune_check.h"

namespace profd::client {

void PrintConditions(std::ostream& out, const std::vector<TuneCondition>& conditions, bool color);
// Of analysis::TuningView.
void PrintTuning(std::ostream& out, const Json& tuning, bool color);
// Of analysis::VerifyTuning.
void PrintVerified(std::ostream& out, const Json& verified, bool color);
// What is to be undone and set after tuning, a line each.
std::vector<std::string> RestoreSteps(bool subgraph, const std::string& bank);

}  // namespace profd::client
