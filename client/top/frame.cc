#include "client/top/frame.h"

#include <algorithm>

#include "client/render.h"

namespace profd::client::top {
namespace {

// The first code point of text that went through Printable(), which is always UTF-8.
std::string_view First(std::string_view text) {
  size_t length = 1;
  while (length < text.size() && (static_cast<unsigned char>(text[length]) & 0xc0) == 0x80)
    ++length;
  return text.substr(0, length);
}

char32_t Decode(std::string_view point) {
  auto lead = static_cast<unsigned char>(point[0]);
  if (point.size() == 1) return lead;
  char32_t value = lead & (0xffu >> (point.size() + 1));
  for (char c : point.substr(1)) value = (value << 6) | (static_cast<unsigned char>(c) & 0x3fu);
  return value;
}

}  // namespace

void AppendUtf8(char32_t c, std::string* out) {
  auto tail = [&](int shift) { *out += static_cast<char>(0x80 | ((c >> shift) & 0x3f)); };
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
    std::string_view point = First(rest);
    rest.remove_prefix(point.size());
    auto columns = static_cast<int>(DisplayWidth(point));
    if (columns == 0) continue;
    if (x + columns > end) break;
    char32_t character = Decode(point);
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
