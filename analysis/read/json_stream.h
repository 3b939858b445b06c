// JSON on its way to the parser. A surrogate that stands alone ("\ud800"), as Python writes them of a name that was cut or
// of bytes that are no text, becomes the replacement character: the parser ends at one, or makes no UTF-8 of it.
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <optional>
#include <string_view>
#include <utility>

namespace profd::analysis {

// Over one of RapidJSON's streams. No character but those of such escapes changes, nor does their number.
template <class Stream>
class WithoutLoneSurrogates {
 public:
  using Ch = char;
  explicit WithoutLoneSurrogates(Stream* from) : from_(*from) {}

  Ch Peek() const { return at_ < size_ ? ahead_[at_] : held_ ? '\\' : from_.Peek(); }
  Ch Take() {
    if (at_ < size_) return ahead_[at_++];
    at_ = size_ = 0;
    if (held_) {
      Push('u');
      for (int shift = 12; shift >= 0; shift -= 4) Push("0123456789abcdef"[*held_ >> shift & 0xF]);
      Pair(*std::exchange(held_, std::nullopt));
      return '\\';
    }
    const Ch c = from_.Take();
    if (c == '\\') {
      Push(from_.Take());
      if (ahead_[0] == 'u') Pair(Digits());
    }
    return c;
  }
  size_t Tell() const { return from_.Tell() - (size_ - at_) - (held_ ? kEscape : 0); }

  // Of streams that are written to.
  Ch* PutBegin() { return nullptr; }
  void Put(Ch) {}
  void Flush() {}
  size_t PutEnd(Ch*) { return 0; }

 private:
  static constexpr size_t kEscape = 6;  // "\ud800"

  static bool IsFirst(unsigned unit) { return unit >= 0xD800 && unit <= 0xDBFF; }
  static bool IsSecond(unsigned unit) { return unit >= 0xDC00 && unit <= 0xDFFF; }
  void Push(Ch c) { ahead_[size_++] = c; }

  // None: these are not four hexadecimal digits; the parser reports it.
  std::optional<unsigned> Digits() {
    unsigned unit = 0;
    for (int i = 0; i < 4; ++i) {
      const Ch c = from_.Peek();
      const unsigned digit = c >= '0' && c <= '9' ? c - '0' : c >= 'a' && c <= 'f' ? c - 'a' + 10 : c >= 'A' && c <= 'F' ? c - 'A' + 10 : 16;
      if (digit == 16) return std::nullopt;
      unit = unit << 4 | digit;
      Push(from_.Take());
    }
    return unit;
  }

  // `unit` is in the first five characters ahead.
  void Pair(std::optional<unsigned> unit) {
    if (!unit || (!IsFirst(*unit) && !IsSecond(*unit))) return;
    if (IsSecond(*unit) || from_.Peek() != '\\') return Replace();
    Push(from_.Take());
    Push(from_.Take());
    if (ahead_[size_ - 1] != 'u') return Replace();  // of another kind
    const std::optional<unsigned> next = Digits();
    if (next && IsSecond(*next)) return;
    Replace();
    if (!next || !IsFirst(*next)) return;
    // It may be half of a pair itself.
    held_ = next;
    size_ -= kEscape;
  }
  void Replace() {
    constexpr std::string_view kReplacement = "ufffd";
    std::copy(kReplacement.begin(), kReplacement.end(), ahead_.begin());
  }

  Stream& from_;
  std::array<Ch, 2 * kEscape> ahead_{};  // behind the '\' that was taken
  size_t at_ = 0;
  size_t size_ = 0;
  std::optional<unsigned> held_;
};

}  // namespace profd::analysis
