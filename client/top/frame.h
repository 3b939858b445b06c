// A screen as data.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace profd::client::top {

enum class Style : uint8_t { kPlain, kBold, kFaint, kReverse, kGood, kWarning, kBad, kAccent };

struct Size {
  int columns = 80;
  int rows = 24;
  friend bool operator==(const Size&, const Size&) = default;
};

struct Glyph {
  // 0 = the right half of a wide character.
  char32_t character = U' ';
  Style style = Style::kPlain;
  friend bool operator==(const Glyph&, const Glyph&) = default;
};

class Frame {
 public:
  Frame() : Frame(Size{0, 0}) {}
  // `ascii`: what is not ASCII is shown as '?'.
  explicit Frame(Size size, bool ascii = false);

  // Writes `text` (UTF-8; whatever could move a cursor is made visible) from column `x` of row `y`,
  // at most `width` columns of it, and never beyond the frame. Answers the columns taken.
  int Put(int x, int y, std::string_view text, Style style = Style::kPlain, int width = kNoLimit);
  // The same, ending before column `x + width`.
  void PutRight(int x, int y, std::string_view text, int width, Style style = Style::kPlain);
  void ReverseRow(int y);

  Size size() const { return size_; }
  const Glyph& At(int x, int y) const { return glyphs_[Index(x, y)]; }
  // Lines without styles, blanks at their ends removed.
  std::string Text() const;

  static constexpr int kNoLimit = 1 << 20;

 private:
  size_t Index(int x, int y) const {
    return static_cast<size_t>(y) * static_cast<size_t>(size_.columns) + static_cast<size_t>(x);
  }

  Size size_;
  bool ascii_;
  std::vector<Glyph> glyphs_;
};

}  // namespace profd::client::top
