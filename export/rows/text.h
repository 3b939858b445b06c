// Pieces of JSON and OpenMetrics text.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

namespace profd::exporting {

// `text` with U+FFFD for every byte that is not UTF-8, and for control bytes but '\n' and '\t'.
std::string CleanUtf8(std::string_view text);
// With quotes; bytes that are no UTF-8 become U+FFFD.
void AppendJsonText(std::string* out, std::string_view text);
// The shortest text that reads back as `value`; `none` if it is not finite. Space for 32 bytes.
char* AppendReal(char* out, double value, std::string_view none);

// Timestamps as RFC 3339 in UTC with nine digits; remembers the last second.
class Rfc3339 {
 public:
  // Space for 40 bytes.
  char* Append(char* out, int64_t t_ns);

 private:
  int64_t second_ = INT64_MIN;
  char text_[32] = {};
  size_t size_ = 0;
};

}  // namespace profd::exporting
