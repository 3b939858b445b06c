#pragma once

#include <optional>
#include <string>
#include <vector>

#include "client/commands/start.h"
#include "client/context.h"

namespace profd::client {

struct RunOptions {
  StartOptions start;
  // Runs the command unprofiled when the session cannot start.
  bool anyway = false;
  // Formats the dump is exported to at the end.
  std::optional<std::string> export_formats;
  // The command and its arguments.
  std::vector<std::string> command;
  // $PATH of the caller.
  std::string search_path;
};

// Profiles exactly as long as the command lives and answers with its exit code. The command's
// stdout is its own: everything of ours goes to stderr.
int RunRun(const Context& context, const RunOptions& options);

}  // namespace profd::client
