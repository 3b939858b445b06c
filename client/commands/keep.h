// Commands that keep dumps or remove them.
#pragma once

#include <string>
#include <vector>

#include "client/context.h"

namespace profd::client {

// Does the user mean a dump by its name ("PROF_000001_...", as `profctl list --dumps` shows it)?
bool NamesDump(const std::string& id);
// A request for that dump, or else for those of a session.
template <class Request>
Request DumpRequest(const std::string& id) {
  Request request;
  (NamesDump(id) ? request.mutable_dump() : request.mutable_session_id())->assign(id);
  return request;
}

// `profctl pin ID|DUMP...` and `unpin`: dumps that are not evicted.
int RunPin(const Context& context, const std::vector<std::string>& ids, bool unpin);

// `profctl list --dumps`, of `job` or (empty) of any.
int RunListDumps(const Context& context, const std::string& job);

// `profctl rm ID...`: removes dumps of finished sessions.
int RunRm(const Context& context, const std::vector<std::string>& ids);

}  // namespace profd::client
