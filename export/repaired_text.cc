#include "export/repaired_text.h"

#include <algorithm>

#include "base/utf8.h"

namespace profd::exporting {

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
    const size_t size = FirstCodePoint(text).bytes;
    const size_t taken = std::max<size_t>(size, 1);
    if (taken > max_bytes) break;  // not within a character
    max_bytes -= taken;
    out.append(size == 0 ? kReplacement : text.substr(0, size));
    text.remove_prefix(taken);
  }
  return out;
}

}  // namespace profd::exporting
