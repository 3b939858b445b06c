#pragma once

#include <cstddef>
#include <cstring>
#include <string_view>

namespace profd::attach {

// At most `max_bytes` of a C string, cut before the character that would be broken.
inline std::string_view CutText(const char* text_or_null, size_t max_bytes) {
  if (text_or_null == nullptr) return {};
  const size_t length = ::strnlen(text_or_null, max_bytes + 1);
  if (length <= max_bytes) return {text_or_null, length};
  size_t end = max_bytes;
  // A character of UTF-8 has at most three bytes after its first one: more is not UTF-8 anyway.
  for (int i = 0; i < 3 && (static_cast<unsigned char>(text_or_null[end]) & 0xC0) == 0x80; ++i)
    --end;
  return {text_or_null, end};
}

}  // namespace profd::attach
