#include "daemon/config/listen_address.h"

#include <arpa/inet.h>
#include <fmt/format.h>
#include <netinet/in.h>

#include <algorithm>

#include "base/host_port.h"
#include "base/text.h"

namespace profd {
namespace {

// "300.0.0.1" is not a name: a resolver answers it late and negatively.
bool IsHost(const std::string& host, bool bracketed) {
  if (bracketed && host.find(':') != std::string::npos) {
    in6_addr v6{};
    return ::inet_pton(AF_INET6, host.substr(0, host.find('%')).c_str(), &v6) == 1;
  }
  if (host.find_first_not_of("0123456789.") == std::string::npos) {
    in_addr v4{};
    return ::inet_aton(host.c_str(), &v4) != 0;
  }
  return std::ranges::all_of(host, [](char c) { return IsLetterOrDigit(c) || c == '.' || c == '-' || c == '_'; });
}

}  // namespace

ListenFault FaultOfListen(const std::string& text) {
  const std::optional<HostPort> split = SplitHostPort(text);
  // One colon: an address of IPv6 needs its brackets.
  if (!split || split->host.empty() || split->port.rfind(':') != 0) return ListenFault::kShape;
  if (!split->bracketed && split->host.find_first_of("[]") != std::string_view::npos) return ListenFault::kShape;
  uint16_t port = 0;
  if (!ParseNumber(split->port.substr(1), &port)) return ListenFault::kPort;
  return IsHost(std::string(split->host), split->bracketed) ? ListenFault::kNone : ListenFault::kHost;
}

void CheckListen(std::string_view key, const std::string& text, ListenFault fault, int usual_port,
                 std::vector<std::string>* problems) {
  if (fault == ListenFault::kNone) return;
  std::string_view why = "must be ADDRESS:PORT";
  if (fault == ListenFault::kPort) why = "the port must be an integer 0..65535";
  if (fault == ListenFault::kHost) why = "the address is neither an IP address nor a host's name";
  problems->push_back(fmt::format("{} = \"{}\": {}, as in \"127.0.0.1:{}\" or \"[::]:{}\"", key, text,
                                  why, usual_port, usual_port));
}

}  // namespace profd
