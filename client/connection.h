// From a failed call to what a person or a script gets: exit code, text, and what to do.
#pragma once

#include <string>

#include "base/status.h"
#include "client/endpoint.h"

namespace profd::client {

inline constexpr const char* kDefaultSocket = "/run/profd/profd.sock";

// The exit codes of profctl (docs/profctl.md); scripts rely on them.
enum ExitCode : int {
  kExitOk = 0,
  kExitInternal = 1,
  kExitUsage = 2,
  kExitRefused = 3,
  kExitNotFound = 4,
  kExitPartial = 5,
  kExitUnreachable = 6,
  // Of `health` and `advise --fail-on`.
  kExitDegraded = 7,
  // Of `health` only.
  kExitFaulty = 8,
  kExitUnknown = 9,
};

int ExitCodeFor(StatusCode code);

// "not_found": the code's name in JSON.
std::string CodeWord(StatusCode code);

// Why no daemon answers at `path`, and what to do about it; empty when one accepts connections
// there. Connects and hangs up.
std::string DiagnoseSocket(const std::string& path);
// The same for a socket or another machine's port (tls_diagnosis.h), which takes a few seconds at most.
std::string Diagnose(const Endpoint& endpoint);

// The error's text for people, several lines, with the diagnosis when the daemon was not reached.
// Not yet filtered for a terminal.
std::string Explain(const Status& status, const Endpoint& endpoint);

}  // namespace profd::client
