#pragma once

#include <functional>
#include <string>
#include <vector>

#include "client/context.h"

namespace profd::client {

struct FetchOptions {
  std::string id;
  std::string out = ".";
  // `out` is the caller's word; otherwise the session's metadata may know a better place.
  bool out_given = false;
  // For a session that has not ended yet: until it has.
  bool wait = false;
  // The same without a terminal, and in parallel to its caller: libprofd starts such a process and does not wait for it.
  bool background = false;
  // Leaves what arrived when the fetch fails.
  bool keep = false;
};

struct FetchResult {
  Status status;
  // Empty when nothing had arrived.
  std::string name;
  std::string path;
  // Of all dumps, oldest first; `name` and `path` are the last one's.
  std::vector<std::string> paths;
  uint64_t files = 0;
  uint64_t received_bytes = 0;
  uint64_t total_bytes = 0;
};

// Writes a finished session's dump below `out`, which is made with its parents. What arrived of one
// that fails is removed, unless `keep`. `go_on` returns false to give up. `received`, if there is one, may wait as long as
// it likes after each piece.
FetchResult FetchInto(const Context& context, const std::string& id, const std::string& out,
                      bool keep, const std::function<bool()>& go_on,
                      const std::function<void(size_t bytes)>& received = nullptr);

// Or until `go_on` returns false; what it returned last.
bool WaitASecond(const std::function<bool()>& go_on);

// Writes a finished session's dump as the calling user.
int RunFetch(const Context& context, const FetchOptions& options);

}  // namespace profd::client
