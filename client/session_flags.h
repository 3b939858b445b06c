// The flags of a session: what start, run and check share. Included by cli_app.cc only.
#pragma once

#include <CLI/CLI.hpp>

#include "client/commands/check.h"
#include "client/commands/options.h"
#include "client/commands/start.h"

namespace profd::client {

// Of `start` and `run`. `options` must outlive the command.
void AddSessionFlags(CLI::App* command, StartOptions* options);
// What only a session has that profctl does not wait for.
void AddStartFlags(CLI::App* command, StartOptions* options);

void AddCheckFlags(CLI::App* command, CheckOptions* options);
void AddOptionsFlags(CLI::App* command, ListOptionsOptions* options);

}  // namespace profd::client
