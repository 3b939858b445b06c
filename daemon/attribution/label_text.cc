#include "daemon/attribution/label_text.h"

#include "base/utf8.h"

namespace profd {
namespace {

constexpr std::string_view kMore = "...";

}  // namespace

std::string LabelText(std::string_view text_untrusted) {
  std::string_view rest = text_untrusted;
  std::string out;
  size_t cut = 0;  // where "..." would still fit behind
  while (!rest.empty()) {
    const auto [code, length] = FirstCodePoint(rest);
    bool good = length > 0 && !IsInvisible(code);
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
