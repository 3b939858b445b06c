#pragma once

#include "client/context.h"

namespace profd::client {

// `profctl status`: the node at a glance.
int RunStatus(const Context& context);

}  // namespace profd::client
