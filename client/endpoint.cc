#include "client/endpoint.h"

#include <fmt/format.h>

#include <algorithm>
#include <string_view>

#include "base/text.h"

namespace profd::client {
namespace {

constexpr size_t kMaxHost = 253;

bool IsHostCharacter(char c) { return IsLetterOrDigit(c) || c == '.' || c == '-' || c == '_'; }

// Also scoped ones: "fe80::1%eth0".
bool IsIpv6Character(char c) { return IsHostCharacter(c) || c == ':' || c == '%'; }

Status Malformed(const std::string& text) {
  return InvalidArgument(
      fmt::format("invalid address \"{}\": use HOST:PORT, for example node7:{} or [fd00::7]:{}", text,
                  kDefaultTlsPort, kDefaultTlsPort));
}

}  // namespace

Result<std::string> ParseAddress(const std::string& text) {
  std::string_view host = text;
  std::string_view port;
  bool v6 = false;
  if (host.starts_with('[')) {
    size_t close = host.find(']');
    if (close == std::string_view::npos) return Malformed(text);
    port = host.substr(close + 1);
    host = host.substr(1, close - 1);
    if (!port.empty() && !port.starts_with(':')) return Malformed(text);
    v6 = true;
  } else if (std::ranges::count(host, ':') > 1) {
    v6 = true;
  } else if (size_t colon = host.find(':'); colon != std::string_view::npos) {
    port = host.substr(colon);
    host = host.substr(0, colon);
  }
  int number = kDefaultTlsPort;
  if (!port.empty() && (!ParseNumber(port.substr(1), &number) || number < 1 || number > 65535)) {
    return Malformed(text);
  }
  if (host.empty() || host.size() > kMaxHost ||
      !std::ranges::all_of(host, v6 ? IsIpv6Character : IsHostCharacter)) {
    return Malformed(text);
  }
  return v6 ? fmt::format("[{}]:{}", host, number) : fmt::format("{}:{}", host, number);
}

std::string HostOf(const std::string& address) {
  std::string host = address.substr(0, address.rfind(':'));
  if (host.starts_with('[') && host.ends_with(']')) return host.substr(1, host.size() - 2);
  return host;
}

std::string PortOf(const std::string& address) {
  size_t colon = address.rfind(':');
  return colon == std::string::npos ? "" : address.substr(colon + 1);
}

TlsFiles TlsFilesOf(const std::string& directory) {
  return {directory + "/ca.crt", directory + "/client.crt", directory + "/client.key", ""};
}

}  // namespace profd::client
