#include "client/clickhouse/url.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/host_port.h"
#include "base/text.h"
#include "client/environment_variable.h"
#include "client/serve/web_server.h"

namespace profd::client {
namespace {

constexpr std::string_view kPlain = "clickhouse://";
constexpr std::string_view kTls = "clickhouses://";
constexpr size_t kMostName = 200;

// Of "host", "host:port", "[::1]:port".
bool ParseHost(std::string_view text, ClickHouseUrl* url) {
  const std::optional<HostPort> split = SplitHostPort(text);
  if (!split) return false;
  url->host = split->host;
  url->port = url->tls ? kClickHouseTlsPort : kClickHousePort;
  const bool plain = std::ranges::all_of(url->host, [](unsigned char c) { return c > ' ' && c < 0x7F; });
  return plain && !url->host.empty() && ParsePort(split->port, &url->port);
}

}  // namespace

std::string ClickHouseUrl::Shown() const {
  const bool six = host.find(':') != std::string::npos;
  return fmt::format("{}{}{}{}:{}/{}", tls ? kTls : kPlain, six ? "[" : "", host, six ? "]" : "", port, database);
}

bool IsClickHouseUrl(std::string_view text) { return text.starts_with(kPlain) || text.starts_with(kTls); }

bool IsPlainName(std::string_view name) {
  return !name.empty() && name.size() <= kMostName && !IsDigit(name.front()) &&
         std::ranges::all_of(name, [](char c) { return IsLetterOrDigit(c) || c == '_'; });
}

bool IsRunName(std::string_view name) {
  return !name.empty() && name.size() <= kMostName && std::ranges::none_of(name, IsControl);
}

bool IsClusterName(std::string_view name) { return name.empty() || (IsRunName(name) && name.find('`') == std::string_view::npos); }

Result<ClickHouseUrl> ParseClickHouseUrl(std::string_view text) {
  // The text itself may have a password in it.
  const auto wrong = [](std::string_view what) {
    return InvalidArgument(fmt::format("the address of the database: {}; write clickhouse://[USER[:PASSWORD]@]HOST[:PORT]/DATABASE[/RUN], or clickhouses:// over TLS", what));
  };
  ClickHouseUrl url;
  url.tls = text.starts_with(kTls);
  if (!IsClickHouseUrl(text)) return wrong("it does not begin with clickhouse:// or clickhouses://");
  std::string_view rest = text.substr(url.tls ? kTls.size() : kPlain.size());
  const size_t slash = std::min(rest.find('/'), rest.size());
  std::string_view authority = rest.substr(0, slash);
  std::string_view path = rest.substr(std::min(slash + 1, rest.size()));
  if (const size_t at = authority.rfind('@'); at != std::string_view::npos) {
    const std::string_view user = authority.substr(0, at);
    const size_t colon = std::min(user.find(':'), user.size());
    url.user = DecodedUrl(user.substr(0, colon), false);
    if (colon < user.size()) url.password = DecodedUrl(user.substr(colon + 1), false);
    authority.remove_prefix(at + 1);
  }
  if (url.user.empty()) url.user = EnvironmentVariable(kClickHouseUserVariable);
  if (url.password.empty()) url.password = EnvironmentVariable(kClickHousePasswordVariable);
  if (!ParseHost(authority, &url)) return wrong("no host, or an invalid port");
  const size_t more = std::min(path.find('/'), path.size());
  url.database = DecodedUrl(path.substr(0, more), false);
  if (!IsPlainName(url.database)) return wrong("the name of the database is not letters, digits and '_'");
  if (more < path.size()) url.run = DecodedUrl(path.substr(more + 1), false);
  if (!url.run.empty() && !IsRunName(url.run)) return wrong("the name of the run has control characters or more than 200 bytes");
  for (const std::string* each : {&url.user, &url.password}) {
    if (std::ranges::any_of(*each, [](unsigned char c) { return c < ' '; })) return wrong("user or password has control characters");
  }
  return url;
}

}  // namespace profd::client
