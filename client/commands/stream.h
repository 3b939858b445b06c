#pragma once

#include <cstdint>
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

struct StreamActivityOptions {
  bool json = false;
  bool raw_time = false;
  std::string job;     // empty = all
  uint64_t count = 0;  // 0 = no end
};

// A line for every second of every process that is collected from, until `count` or Ctrl-C.
int RunStreamActivity(const Context& context, const StreamActivityOptions& options);

}  // namespace profd::client
