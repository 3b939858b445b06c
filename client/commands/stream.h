#pragma once

#include <optional>
#include <string>

#include "client/context.h"

namespace profd::client {

struct StreamOptions {
  std::optional<std::string> collectors;
  std::optional<std::string> devices;
  bool devices_only = false;
  std::optional<std::string> interval;
  std::optional<std::string> count;
  // "text", "json" or "csv"
  std::string format = "text";
  // The node's CLOCK_MONOTONIC_RAW instead of the wall clock.
  bool raw_time = false;
  // What training processes do instead of samples; `job` only with it.
  bool activity = false;
  std::string job;
};

// A line for every sample as it is taken, until --count or Ctrl-C.
int RunStream(const Context& context, const StreamOptions& options);

}  // namespace profd::client
