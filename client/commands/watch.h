#pragma once

#include <optional>
#include <string>

#include "client/context.h"

namespace profd::client {

struct WatchOptions {
  std::string id;
  std::optional<std::string> interval;
};

// A line for every change until the session ends; Ctrl-C ends it too.
int RunWatch(const Context& context, const WatchOptions& options);

}  // namespace profd::client
