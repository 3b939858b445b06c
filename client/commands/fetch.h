#pragma once

#include <string>

#include "client/context.h"

namespace profd::client {

struct FetchOptions {
  std::string id;
  std::string out = ".";
  // Leaves what arrived when the fetch fails.
  bool keep = false;
};

// Writes a finished session's dump as the calling user.
int RunFetch(const Context& context, const FetchOptions& options);

}  // namespace profd::client
