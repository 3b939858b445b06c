// Listening TCP sockets of the daemon: addresses as the configuration writes them, descriptors that
// no program started by the daemon inherits.
#pragma once

#include <sys/socket.h>

#include <cstdint>
#include <string>
#include <string_view>

#include "base/fd.h"
#include "base/status.h"

namespace profd {

struct TcpAddress {
  std::string host;  // without brackets
  uint16_t port = 0;
};
// "0.0.0.0:9465", "[::]:9465", "localhost:9465"; `key` is what errors call it.
Result<TcpAddress> ParseTcpAddress(const std::string& text, std::string_view key);

// Bound, listening, not blocking.
Result<UniqueFd> BindTcp(const std::string& text, std::string_view key);

// "10.0.0.7" or "[fe80::1]:9465"; an IPv4 address in IPv6's clothes (::ffff:10.0.0.7) stays as it is.
std::string AddressText(const sockaddr_storage& address, bool with_port);

// Of a bound socket; 0 when it has none.
int PortOf(int fd);

}  // namespace profd
