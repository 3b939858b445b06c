// Commands on sessions.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "client/context.h"

namespace profd::client {

struct ListOptions {
  std::string job;
  bool active = false;
  bool dumps = false;  // what is on the disk instead
};

int RunList(const Context& context, const ListOptions& options);

int RunShow(const Context& context, const std::string& id);

struct WatchOptions {
  std::string id;
  std::optional<std::string> interval;
};

// A line for every change until the session ends; Ctrl-C ends it too.
int RunWatch(const Context& context, const WatchOptions& options);

// Exactly one of the three.
struct StopOptions {
  std::vector<std::string> ids;
  std::optional<std::string> job;
  bool all_mine = false;
};

// Ids of the caller's own sessions that have not ended, of `job` or (empty) of any; kNotFound when there
// is none, kPermissionDenied when a viewer asks. Administrators are shown the sessions of all users; those of others are stopped by id only.
Result<std::vector<std::string>> OwnSessions(ProfdApi& api, const std::string& job);

int RunStop(const Context& context, const StopOptions& options);

}  // namespace profd::client
