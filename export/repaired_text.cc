#include "export/repaired_text.h"

#include <algorithm>

namespace profd::exporting {
namespace {

// Length of the UTF-8 character at the start of `text`; 0 when there is none.
size_t CharacterSize(std::string_view text) {
  auto byte = [&](size_t i) { return static_cast<unsigned char>(text[i]); };
  unsigned char first = byte(0);
  size_t size = first < 0x80                    ? 1
                : first >= 0xC2 && first < 0xE0 ? 2
                : (first & 0xF0) == 0xE0        ? 3
                : first >= 0xF0 && first < 0xF5 ? 4
                                                : 0;
  if (size == 0 || size > text.size()) return 0;
  for (size_t i = 1; i < size; ++i) {
    if ((byte(i) & 0xC0) != 0x80) return 0;
  }
  if (first == 0xE0 && byte(1) < 0xA0) return 0;
  if (first == 0xED && byte(1) >= 0xA0) return 0;
  if (first == 0xF0 && byte(1) < 0x90) return 0;
  if (first == 0xF4 && byte(1) >= 0x90) return 0;
  return size;
}

}  // namespace

bool IsAscii(std::string_view text) {
  unsigned char all = 0;
  for (const char c : text) all |= static_cast<unsigned char>(c);
  return all < 0x80;
}

std::string RepairedText(std::string_view text, size_t max_bytes) {
  constexpr std::string_view kReplacement = "\xEF\xBF\xBD";
  if (IsAscii(text.substr(0, max_bytes))) return std::string(text.substr(0, max_bytes));
  std::string out;
  out.reserve(std::min(text.size(), max_bytes));
  while (!text.empty()) {
    const size_t size = CharacterSize(text);
    const size_t taken = std::max<size_t>(size, 1);
    if (taken > max_bytes) break;  // not within a character
    max_bytes -= taken;
    out.append(size == 0 ? kReplacement : text.substr(0, size));
    text.remove_prefix(taken);
  }
  return out;
}

}  // namespace profd::exporting
