#include "daemon/attribution/label_text.h"

#include <cstdint>

namespace profd {
namespace {

constexpr std::string_view kMore = "...";

// The length of the character `text` begins with and its code point; 0 when it is not UTF-8.
size_t FirstCharacter(std::string_view text, uint32_t* code) {
  auto byte = [text](size_t i) { return static_cast<uint8_t>(text[i]); };
  const uint8_t lead = byte(0);
  size_t length = lead < 0x80 ? 1 : lead >= 0xf0 ? 4 : lead >= 0xe0 ? 3 : 2;
  if ((lead >= 0x80 && lead < 0xc2) || lead > 0xf4 || text.size() < length) return 0;
  *code = length == 1 ? lead : lead & (0x7fu >> length);
  for (size_t i = 1; i < length; ++i) {
    if ((byte(i) & 0xc0) != 0x80) return 0;
    *code = *code << 6 | (byte(i) & 0x3fu);
  }
  constexpr uint32_t kLeast[] = {0, 0, 0x80, 0x800, 0x10000};
  bool surrogate = *code >= 0xd800 && *code <= 0xdfff;
  return *code < kLeast[length] || surrogate || *code > 0x10ffff ? 0 : length;
}

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
    uint32_t code = 0;
    size_t length = FirstCharacter(rest, &code);
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
