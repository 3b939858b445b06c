#pragma once

#include <optional>
#include <string>
#include <vector>

#include "client/context.h"

namespace profd::client {

// As typed; unset = not given. What values may be is the daemon's business, so they stay text.
struct StartOptions {
  std::optional<std::string> job;
  std::optional<std::string> rank;
  std::optional<std::string> label;
  std::optional<std::string> devices;
  std::vector<std::string> collectors;
  std::optional<std::string> sys_hardware_mem_freq;
  std::optional<std::string> llc_profiling;
  std::optional<std::string> sys_io_sampling_freq;
  std::optional<std::string> sys_interconnection_freq;
  std::optional<std::string> dvpp_freq;
  std::optional<std::string> host_sys;
  std::optional<std::string> host_sys_usage;
  std::optional<std::string> host_sys_usage_freq;
  std::optional<std::string> storage_limit;
  std::vector<std::string> pids;
  std::optional<std::string> duration;
  std::optional<std::string> end_with_pid;
  bool require_all = false;
  bool no_dump = false;
};

// Every syntax problem is added to `problems`.
v1::StartSessionRequest BuildStartRequest(const StartOptions& options,
                                          std::vector<std::string>* problems);

// kExitPartial when something that was asked for does not run: an outcome that is denied, busy or
// failed; one that is unsupported if its collector was named; or nothing runs at all.
// (A group option such as sys_hardware_mem_freq asks for what the chip has of its group.)
int ExitForStarted(const v1::StartSessionRequest& request, const v1::Session& session);

int RunStart(const Context& context, const StartOptions& options);

}  // namespace profd::client
