#include "client/top/frame.h"

#include <algorithm>

#include "base/utf8.h"
#include "client/render.h"

namespace profd::client::top {

Frame::Frame(Size size, bool ascii)
    : size_(size),
      ascii_(ascii),
      glyphs_(static_cast<size_t>(size.columns) * static_cast<size_t>(size.rows)) {}

int Frame::Put(int x, int y, std::string_view text, Style style, int width) {
  if (y < 0 || y >= size_.rows || x < 0) return 0;
  int end = width >= size_.columns - x ? size_.columns : x + width;
  const int begin = x;
  const std::string safe = Printable(text);
  std::string_view rest = safe;
  while (!rest.empty()) {
    const CodePoint point = FirstCodePoint(rest);  // there is one: the text is safe
    auto columns = static_cast<int>(DisplayWidth(rest.substr(0, point.bytes)));
    rest.remove_prefix(point.bytes);
    if (columns == 0) continue;
    if (x + columns > end) break;
    char32_t character = point.value;
    if (ascii_ && character > 0x7e) character = U'?';
    glyphs_[Index(x, y)] = {character, style};
    if (columns == 2) glyphs_[Index(x + 1, y)] = {ascii_ ? U'?' : U'\0', style};
    x += columns;
  }
  return x - begin;
}

void Frame::PutRight(int x, int y, std::string_view text, int width, Style style) {
  auto columns = static_cast<int>(DisplayWidth(Printable(text)));
  Put(x + std::max(0, width - columns), y, text, style, std::min(width, columns));
}

void Frame::ReverseRow(int y) {
  if (y < 0 || y >= size_.rows) return;
  for (int x = 0; x < size_.columns; ++x) glyphs_[Index(x, y)].style = Style::kReverse;
}

std::string Frame::Text() const {
  std::string text;
  for (int y = 0; y < size_.rows; ++y) {
    std::string line;
    for (int x = 0; x < size_.columns; ++x) {
      if (At(x, y).character != 0) AppendUtf8(At(x, y).character, &line);
    }
    line.erase(line.find_last_not_of(' ') + 1);
    text += line + '\n';
  }
  return text;
}

}  // namespace profd::client::top
