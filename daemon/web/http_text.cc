#include "daemon/web/http_text.h"

#include <fmt/chrono.h>

#include <algorithm>
#include <ctime>

#include "base/text.h"

namespace profd {
namespace {

int HexValue(char c) {
  if (IsDigit(c)) return c - '0';
  if (c >= 'a' && c <= 'f') return c - 'a' + 10;
  if (c >= 'A' && c <= 'F') return c - 'A' + 10;
  return -1;
}

}  // namespace

std::optional<std::string> DecodePercent(std::string_view text, bool plus_is_blank) {
  std::string out;
  out.reserve(text.size());
  for (size_t i = 0; i < text.size(); ++i) {
    if (text[i] == '+' && plus_is_blank) {
      out.push_back(' ');
    } else if (text[i] != '%') {
      out.push_back(text[i]);
    } else {
      if (i + 2 >= text.size()) return std::nullopt;
      int high = HexValue(text[i + 1]);
      int low = HexValue(text[i + 2]);
      if (high < 0 || low < 0) return std::nullopt;
      out.push_back(static_cast<char>(high * 16 + low));
      i += 2;
    }
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
