// What the conditions of tuning are judged by, asked of this machine, the daemon and the training's own files.
#pragma once

#include "client/commands/tune.h"
#include "client/commands/tune_check.h"

namespace profd::client {

// The request that the command line and the environment give; every problem of them is a line.
TuneRequest ReadTuneRequest(const TuneCommand& command, std::vector<std::string>* problems);

// Of machine, environment and script.
void GatherMachine(const TuneRequest& request, const TuneSurroundings& surroundings, TuneFacts* facts);
// Of the daemon: devices, and whether they could be kept.
void GatherNode(const Context& context, const TuneRequest& request, TuneFacts* facts);
// Of a run of the training.
Result<TuneProfile> ReadTuneProfile(const std::string& run);

}  // namespace profd::client
