#pragma once

#include <optional>
#include <string>

#include "client/context.h"

namespace profd::client {

struct HealthOptions {
  std::optional<std::string> devices;
};

// `profctl health`: one verdict for each device and for the node; the exit code has it too.
int RunHealth(const Context& context, const HealthOptions& options);

// `profctl faults`: what the devices report now.
int RunFaults(const Context& context, const HealthOptions& options);

}  // namespace profd::client
