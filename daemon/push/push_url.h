// Where metrics are pushed to.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "base/status.h"

namespace profd {

struct PushUrl {
  bool tls = false;
  std::string host;  // without brackets
  uint16_t port = 0;
  std::string target;  // path and query, "/" at least

  // As in the Host header.
  std::string Authority() const;
};

// "http://host:4318/v1/metrics", "https://host/api/v1/write": no user, no fragment. `key` is what errors
// call it.
Result<PushUrl> ParsePushUrl(std::string_view text, std::string_view key);

}  // namespace profd
