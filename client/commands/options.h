#pragma once

#include <optional>
#include <string>

#include "client/context.h"

namespace profd::client {

struct ListOptionsOptions {
  // From the table, without a daemon.
  bool offline = false;
  // Of `offline`; unset = whatever the chip.
  std::optional<std::string> chip;
};

// The profiling options, and which of them this node's chips have something for.
int RunListOptions(const Context& context, const ListOptionsOptions& options);

}  // namespace profd::client
