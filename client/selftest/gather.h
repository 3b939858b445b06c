// What the questions look at: what profd reports, and, if the caller allows it, sessions of a few seconds.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "client/context.h"
#include "client/selftest/selftest.h"

namespace profd::client::selftest {

struct GatherOptions {
  bool active = false;
  // With it, what the questions need: a session with the driver's channels, processes that start something, sessions
  // inside this job.
  bool channels = false;
  bool starts = false;
  std::string job = {};
  // How long a session lasts.
  int64_t session_ms = 5'000;
};

// What --active starts, a line each: printed before it is started.
std::vector<std::string> PlanOf(const GatherOptions& options);

// `go_on` returns false to stop what runs and to leave out the rest.
Facts Gather(const Context& context, const GatherOptions& options, const std::function<bool()>& go_on);

}  // namespace profd::client::selftest
