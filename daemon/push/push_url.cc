#include "daemon/push/push_url.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/host_port.h"
#include "base/log.h"
#include "base/text.h"

namespace profd {
namespace {

constexpr uint16_t kHttp = 80;
constexpr uint16_t kHttps = 443;

bool IsPlain(std::string_view text) {
  return std::ranges::all_of(text, [](char c) { return c > ' ' && c < 0x7f; });
}

}  // namespace

std::string PushUrl::Authority() const {
  const bool is_v6 = host.find(':') != std::string::npos;
  std::string text = is_v6 ? fmt::format("[{}]", host) : host;
  if (port != (tls ? kHttps : kHttp)) text += fmt::format(":{}", port);
  return text;
}

Result<PushUrl> ParsePushUrl(std::string_view text, std::string_view key) {
  auto wrong = [&](std::string_view why) {
    return InvalidArgument(fmt::format("{} = {}: {}, as in \"https://metrics.example:9090/api/v1/write\"",
                                       key, log::Quote(text), why));
  };
  PushUrl url;
  std::string_view rest = text;
  if (rest.starts_with("https://")) {
    url.tls = true;
  } else if (!rest.starts_with("http://")) {
    return wrong("must begin with http:// or https://");
  }
  rest.remove_prefix(url.tls ? 8 : 7);
  if (!IsPlain(rest)) return wrong("has a blank or a character that is not ASCII");
  if (rest.find('#') != std::string_view::npos) return wrong("must have no fragment (#)");
  const size_t slash = std::min(rest.find_first_of("/?"), rest.size());
  std::string_view authority = rest.substr(0, slash);
  url.target = rest.substr(slash);
  if (!url.target.starts_with('/')) url.target.insert(0, 1, '/');
  if (authority.find('@') != std::string_view::npos) {
    return wrong("must hold no user or password; push.headers_file can");
  }
  url.port = url.tls ? kHttps : kHttp;
  const std::optional<HostPort> split = SplitHostPort(authority);
  if (!split) return wrong("lacks a ']'");
  url.host = split->host;
  if (url.host.empty()) return wrong("names no host");
  if (!ParsePort(split->port, &url.port)) return wrong("the port must be an integer 1..65535");
  return url;
}

}  // namespace profd
