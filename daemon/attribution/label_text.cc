#include "daemon/attribution/label_text.h"

#include <cstdint>

#include "base/utf8.h"

namespace profd {
namespace {

constexpr std::string_view kMore = "...";

bool IsShown(uint32_t code) {
  if (code < 0x20 || (code >= 0x7f && code < 0xa0)) return false;
  // Marks of direction, line and paragraph separators, the byte order mark.
  return !(code >= 0x200b && code <= 0x200f) && !(code >= 0x2028 && code <= 0x202e) &&
         !(code >= 0x2060 && code <= 0x2069) && code != 0xfeff;
}

}  // namespace

std::string LabelText(std::string_view text_untrusted) {
  std::string_view rest = text_untrusted;
  std::string out;
  size_t cut = 0;  // where "..." would still fit behind
  while (!rest.empty()) {
    const auto [code, length] = FirstCodePoint(rest);
    bool good = length > 0 && IsShown(code);
    std::string_view piece = good ? rest.substr(0, length) : std::string_view("?");
    if (out.size() + piece.size() > kMaxLabelBytes) {
      out.resize(cut);
      return out.append(kMore);
    }
    out += piece;
    if (out.size() + kMore.size() <= kMaxLabelBytes) cut = out.size();
    rest.remove_prefix(length == 0 ? 1 : length);
  }
  return out;
}

}  // namespace profd
