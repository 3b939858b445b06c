#include "daemon/web/http_text.h"

#include <fmt/chrono.h>

#include <algorithm>
#include <charconv>
#include <cstdint>
#include <ctime>

#include "base/text.h"

namespace profd {

std::optional<std::string> DecodePercent(std::string_view text, bool plus_is_blank) {
  std::string out;
  out.reserve(text.size());
  for (size_t i = 0; i < text.size(); ++i) {
    if (text[i] != '%') {
      out.push_back(text[i] == '+' && plus_is_blank ? ' ' : text[i]);
      continue;
    }
    const std::string_view hex = text.substr(i + 1, 2);
    uint8_t byte = 0;
    if (hex.size() != 2 || std::from_chars(hex.data(), hex.data() + 2, byte, 16).ptr != hex.data() + 2) return std::nullopt;
    out.push_back(static_cast<char>(byte));
    i += 2;
  }
  return out;
}

std::optional<HttpTarget> ParseTarget(std::string_view target) {
  if (!target.starts_with('/')) return std::nullopt;
  size_t question = target.find('?');
  std::optional<std::string> path = DecodePercent(target.substr(0, question), false);
  if (!path || std::ranges::any_of(*path, IsControl)) return std::nullopt;
  HttpTarget parsed;
  parsed.path = std::move(*path);
  if (question != std::string_view::npos) parsed.query = target.substr(question + 1);
  return parsed;
}

std::optional<std::vector<std::string>> QueryValues(std::string_view query, std::string_view key) {
  std::vector<std::string> values;
  for (std::string_view raw; NextPart(&query, '&', &raw);) {
    std::string_view name;
    NextPart(&raw, '=', &name);
    if (DecodePercent(name, true) != key) continue;
    std::optional<std::string> value = DecodePercent(raw, true);
    if (!value) return std::nullopt;
    values.push_back(std::move(*value));
  }
  return values;
}

std::string_view ReasonOf(int status) {
  switch (status) {
    case 200: return "OK";
    case 400: return "Bad Request";
    case 401: return "Unauthorized";
    case 404: return "Not Found";
    case 405: return "Method Not Allowed";
    case 413: return "Content Too Large";
    case 429: return "Too Many Requests";
    case 431: return "Request Header Fields Too Large";
    case 500: return "Internal Server Error";
    case 503: return "Service Unavailable";
    default: return "Unknown";
  }
}

std::string HttpDate(int64_t wall_s) {
  const auto seconds = static_cast<time_t>(wall_s);
  std::tm utc{};
  if (::gmtime_r(&seconds, &utc) == nullptr) return {};
  return fmt::format("{:%a, %d %b %Y %H:%M:%S GMT}", utc);
}

std::string EscapeHtml(std::string_view text) {
  std::string out;
  out.reserve(text.size());
  for (char c : text) {
    switch (c) {
      case '&': out += "&amp;"; break;
      case '<': out += "&lt;"; break;
      case '>': out += "&gt;"; break;
      case '"': out += "&quot;"; break;
      case '\'': out += "&#39;"; break;
      default: out.push_back(IsControl(c) ? ' ' : c);
    }
  }
  return out;
}

HttpHeaders MergeHeaders(HttpHeaders defaults, const HttpHeaders& chosen) {
  for (const auto& [name, value] : chosen) {
    std::erase_if(defaults, [&name = name](const auto& one) { return one.first == name; });
    defaults.emplace_back(name, value);
  }
  std::erase_if(defaults, [](const auto& one) { return one.second.empty(); });
  return defaults;
}

}  // namespace profd
