// Characters of texts that are not trusted to be UTF-8.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

namespace profd {

struct CodePoint {
  uint32_t value = 0;
  size_t bytes = 0;  // 0: no character
};

// What `text`, which is not empty, begins with, by RFC 3629: no longer than needed, no surrogate, at most U+10FFFF.
inline CodePoint FirstCodePoint(std::string_view text) {
  const auto byte = [text](size_t i) { return static_cast<unsigned char>(text[i]); };
  const unsigned char lead = byte(0);
  if (lead < 0x80) return {lead, 1};
  const size_t bytes = lead >= 0xf0 ? 4 : lead >= 0xe0 ? 3 : 2;
  if (lead < 0xc2 || lead > 0xf4 || text.size() < bytes) return {};
  uint32_t value = lead & (0x7fU >> bytes);
  for (size_t i = 1; i < bytes; ++i) {
    if ((byte(i) & 0xc0) != 0x80) return {};
    value = (value << 6) | (byte(i) & 0x3fU);
  }
  constexpr std::array<uint32_t, 5> kLeast = {0, 0, 0x80, 0x800, 0x10000};
  if (value < kLeast[bytes] || value > 0x10ffff || (value >= 0xd800 && value < 0xe000)) return {};
  return {value, bytes};
}

inline void AppendUtf8(uint32_t c, std::string* out) {
  const auto tail = [&](int shift) { *out += static_cast<char>(0x80 | ((c >> shift) & 0x3f)); };
  if (c < 0x80) {
    *out += static_cast<char>(c);
  } else if (c < 0x800) {
    *out += static_cast<char>(0xc0 | (c >> 6));
    tail(0);
  } else if (c < 0x10000) {
    *out += static_cast<char>(0xe0 | (c >> 12));
    tail(6);
    tail(0);
  } else {
    *out += static_cast<char>(0xf0 | (c >> 18));
    tail(12);
    tail(6);
    tail(0);
  }
}

inline bool IsUtf8(std::string_view text) {
  while (!text.empty()) {
    const size_t bytes = FirstCodePoint(text).bytes;
    if (bytes == 0) return false;
    text.remove_prefix(bytes);
  }
  return true;
}

// Controls, and what hides or reorders what stands around it: zero width and directional marks, line and paragraph
// separators, embeddings and isolates, the byte order mark.
constexpr bool IsInvisible(uint32_t c) {
  return c < 0x20 || (c >= 0x7f && c < 0xa0) || (c >= 0x200b && c <= 0x200f) || (c >= 0x2028 && c <= 0x202e) ||
         (c >= 0x2060 && c <= 0x206f) || c == 0xfeff;
}

// At most `most` bytes; '?' for each that is not printable ASCII.
inline std::string AsciiOnly(std::string_view text, size_t most = std::string_view::npos) {
  std::string shown(text.substr(0, most));
  for (char& c : shown) {
    if (c < ' ' || c > '~') c = '?';
  }
  return shown;
}

// How many of at most `most` bytes of a longer text are complete characters.
inline size_t BytesOfWholeCharacters(std::string_view text, size_t most) {
  while (most > 0 && (static_cast<unsigned char>(text[most]) & 0xC0) == 0x80) --most;
  return most;
}

}  // namespace profd
