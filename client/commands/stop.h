#pragma once

#include <optional>
#include <string>
#include <vector>

#include "client/context.h"

namespace profd::client {

// Exactly one of the three.
struct StopOptions {
  std::vector<std::string> ids;
  std::optional<std::string> job;
  bool all_mine = false;
};

int RunStop(const Context& context, const StopOptions& options);

}  // namespace profd::client
