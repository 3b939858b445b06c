// The parts of HTTP that are plain text: targets on the way in, heads on the way out.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace profd {

struct HttpTarget {
  std::string path;   // decoded
  std::string query;  // as sent
};
// "/metrics?names=atlas"; nothing for what is not a path, or decodes to control characters.
std::optional<HttpTarget> ParseTarget(std::string_view target);

// "%41+b" -> "A b"; nothing for a broken escape.
std::optional<std::string> DecodePercent(std::string_view text, bool plus_is_blank);

// The values of a key in a query, decoded; nothing when one of them cannot be.
std::optional<std::vector<std::string>> QueryValues(std::string_view query, std::string_view key);

std::string_view ReasonOf(int status);

// "Sat, 21 Nov 2026 15:04:05 GMT".
std::string HttpDate(int64_t wall_s);

// `text` fit for the body of an HTML element or a quoted attribute.
std::string EscapeHtml(std::string_view text);

using HttpHeaders = std::vector<std::pair<std::string, std::string>>;
// `defaults` with those of `chosen` in place of the ones with the same name; empty ones are left out.
HttpHeaders MergeHeaders(HttpHeaders defaults, const HttpHeaders& chosen);

}  // namespace profd
