// Addresses as people write them: "node7", "node7:9465", "[::1]:9465".
#pragma once

#include <algorithm>
#include <cstdint>
#include <optional>
#include <string_view>

#include "base/text.h"

namespace profd {

struct HostPort {
  std::string_view host;  // without brackets
  std::string_view port;  // all that is behind the host: with the colon, if it is a port
  bool bracketed = false;
};

// Nothing: a bracket without its end.
inline std::optional<HostPort> SplitHostPort(std::string_view text) {
  if (!text.starts_with('[')) {
    const size_t colon = std::min(text.find(':'), text.size());
    return HostPort{text.substr(0, colon), text.substr(colon)};
  }
  const size_t close = text.find(']');
  if (close == std::string_view::npos) return std::nullopt;
  return HostPort{text.substr(1, close - 1), text.substr(close + 1), true};
}

// `text`: HostPort::port. 1..65535; without a port `*port` stays.
inline bool ParsePort(std::string_view text, uint16_t* port) {
  return text.empty() || (text.front() == ':' && ParseNumber(text.substr(1), port) && *port != 0);
}

}  // namespace profd
