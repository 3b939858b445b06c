#include "export/rows/text.h"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <cstring>
#include <ctime>
#include <nlohmann/json.hpp>

#include "base/utf8.h"

namespace profd::exporting {

namespace {

// Bytes of the character `text` begins with; 0 = none, or a control byte.
size_t CharacterBytes(std::string_view text) {
  const auto [value, bytes] = FirstCodePoint(text);
  const bool control = value == 0x7f || (value < 0x20 && value != '\n' && value != '\t');
  return control ? 0 : bytes;
}

}  // namespace

std::string CleanUtf8(std::string_view text) {
  std::string out;
  while (!text.empty()) {
    size_t size = CharacterBytes(text);
    out += size > 0 ? text.substr(0, size) : "\uFFFD";
    text.remove_prefix(std::max<size_t>(size, 1));
  }
  return out;
}

void AppendJsonText(std::string* out, std::string_view text) {
  *out += nlohmann::json(text).dump(-1, ' ', false, nlohmann::json::error_handler_t::replace);
}

char* AppendReal(char* out, double value, std::string_view none) {
  if (std::isfinite(value)) return std::to_chars(out, out + 32, value).ptr;
  std::memcpy(out, none.data(), none.size());
  return out + none.size();
}

char* Rfc3339::Append(char* out, int64_t t_ns) {
  int64_t second = t_ns / 1'000'000'000;
  int64_t part = t_ns % 1'000'000'000;
  if (part < 0) {
    part += 1'000'000'000;
    --second;
  }
  if (second != second_) {
    auto seconds = static_cast<std::time_t>(second);
    std::tm utc{};
    ::gmtime_r(&seconds, &utc);
    size_ = std::strftime(text_, sizeof text_, "%Y-%m-%dT%H:%M:%S.", &utc);
    second_ = second;
  }
  std::memcpy(out, text_, size_);
  out += size_;
  for (int64_t digit = 100'000'000; digit > 0; digit /= 10) {
    *out++ = static_cast<char>('0' + part / digit % 10);
  }
  *out++ = 'Z';
  return out;
}

}  // namespace profd::exporting
