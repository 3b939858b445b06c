// What `profctl export` cuts a run down to besides times: ranks, training steps, the longest operators.
#pragma once

#include <string>
#include <vector>

#include "client/commands/export_parse.h"

namespace profd::client {

// --rank and --top, as they are written.
void ParseCuts(const ExportCommand& command, exporting::ExportOptions* options, std::vector<std::string>* problems);

// A rank that none of the dumps has is a problem.
void CheckRanks(const std::vector<exporting::Dump>& dumps, const std::set<int>& ranks,
                std::vector<std::string>* problems);

// --step as the window of `options`, whose dumps are read for it. kInvalidArgument names the steps there are.
Status ResolveSteps(const ExportCommand& command, exporting::ExportOptions* options,
                    std::vector<std::string>* problems);

}  // namespace profd::client
