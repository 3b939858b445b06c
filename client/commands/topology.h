#pragma once

#include "client/context.h"

namespace profd::client {

struct TopologyOptions {
  // Also a row for each link.
  bool links = false;
};

// `profctl topology`: how the devices are connected to each other and to the host.
int RunTopology(const Context& context, const TopologyOptions& options);

}  // namespace profd::client
