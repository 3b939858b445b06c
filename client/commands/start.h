#pragma once

#include <optional>
#include <string>
#include <vector>

#include "client/commands/option_source.h"
#include "client/context.h"

namespace profd::client {

// As typed; unset = not given. What values may be is the daemon's business, so they stay text.
struct StartOptions {
  std::optional<std::string> job;
  std::optional<std::string> rank;
  std::optional<std::string> label;
  std::optional<std::string> devices;
  bool all = false;
  bool follow = false;
  std::vector<std::string> collectors;
  // The vendor's.
  OptionSource options;
  std::vector<std::string> pids;
  std::optional<std::string> at;
  std::optional<std::string> in;
  std::optional<std::string> start_step;
  // `start`: for its job's ranks.
  std::optional<std::string> wait_ranks;
  std::optional<std::string> steps;
  std::optional<std::string> since;
  std::optional<std::string> duration;
  std::optional<std::string> end_with_pid;
  std::optional<std::string> lease;
  bool detach = false;
  std::optional<std::string> priority;
  bool preempt = false;
  // Of v1.SessionSpec.Provider.
  std::optional<std::string> provider;
  std::vector<std::string> metadata;
  bool require_all = false;
  bool no_dump = false;
  bool compress = false;
  // Show every option in force, not only what is not at its default.
  bool verbose = false;
  // `run`: the job need not be known yet, so one rank is a name and selects nothing.
  bool for_run = false;
};

// The session's metadata of this name has the place where its dump belongs on the caller's side.
inline constexpr const char* kOutputMetadata = "output";

// Every syntax problem is added to `problems`. Leaves the default lease out: it is of a start on
// this machine only.
v1::SessionSpec BuildStartRequest(const StartOptions& options,
                                          std::vector<std::string>* problems);

// A minute after `starter` has gone, unless the request has a lease; 0 = no process stands for it.
void AddDefaultLease(const StartOptions& options, pid_t starter, v1::SessionSpec* request);

// kExitPartial when something that was requested does not run: an outcome that is denied, busy or
// failed; one that is unsupported if its collector was named; or nothing runs at all.
// (A group option such as sys_hardware_mem_freq requests what the chip has of its group. What needs
// an attached process is not a failure of the node's, and a session that has yet to start has not
// failed.)
int ExitForStarted(const v1::SessionSpec& request, const v1::Session& session);

int RunStart(const Context& context, const StartOptions& options);

// Returns when all ranks the request is about have attached on this node, or when `duration` (as
// typed) is over: the request is then about those that have, if there are any. kInvalidArgument: the flag is
// wrong.
Status WaitForRanks(const Context& context, const std::string& duration, v1::SessionSpec* request);

}  // namespace profd::client
