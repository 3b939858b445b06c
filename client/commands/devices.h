#pragma once

#include "client/context.h"

namespace profd::client {

struct DevicesOptions {
  // One row per driver channel instead of one per device.
  bool channels = false;
};

int RunDevices(const Context& context, const DevicesOptions& options);

}  // namespace profd::client
