// `profctl serve [DIR...]`: a page on this machine over all runs below folders and on the daemon.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "client/api.h"
#include "client/context.h"

namespace profd::client {

struct ServeCommand {
  std::vector<std::string> folders;   // none: where the program runs
  std::optional<std::string> listen;  // default: 127.0.0.1:9466, or any free port
  std::optional<std::string> slices;  // on the timelines of a run
  std::string language = "en";        // of the advice
  bool no_token = false;
  bool no_daemon = false;
};

// `daemon`, at `endpoint`: null where there is none; its dumps are listed anew at every listing.
int RunServe(const Io& io, const Clock& clock, const ServeCommand& command, std::unique_ptr<ProfdApi> daemon, const Endpoint& endpoint, bool json);

}  // namespace profd::client
