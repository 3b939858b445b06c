#pragma once

#include <cstdint>
#include <string>

#include "client/context.h"

namespace profd::client {

struct StreamActivityOptions {
  bool json = false;
  bool raw_time = false;
  std::string job;     // empty = all
  uint64_t count = 0;  // 0 = no end
};

// A line for every second of every process that is collected from, until `count` or Ctrl-C.
int RunStreamActivity(const Context& context, const StreamActivityOptions& options);

}  // namespace profd::client
