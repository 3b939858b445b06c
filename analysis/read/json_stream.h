// JSON on its way to the parser. A surrogate that stands alone ("\ud800"), as Python writes them of a name that was cut or
// of bytes that are no text, becomes the replacement character: the parser ends at one, or makes no UTF-8 of it.
#pragma once

#include <algorithm>
#include <charconv>
#include <cstddef>
#include <cstring>
#include <functional>
#include <optional>
#include <string_view>
#include <system_error>
#include <utility>
#include <vector>

namespace profd::analysis {

// A stream for RapidJSON, of a text that comes in blocks. No character but those of such escapes changes, nor does their
// number. A block is repaired at once, since a check of each character would cost a third of the parsing.
class WithoutLoneSurrogates {
 public:
  using Ch = char;
  // Fills `to`; fewer than `bytes` only at the end of the text.
  using Read = std::function<size_t(char* to, size_t bytes)>;

  static constexpr size_t kEscape = 6;  // "\ud800"
  static constexpr size_t kLeastBlock = 2 * kEscape;

  WithoutLoneSurrogates(Read read, size_t block) : read_(std::move(read)), buffer_(std::max(block, kLeastBlock) + 1) { Fill(); }
  WithoutLoneSurrogates(const WithoutLoneSurrogates&) = delete;
  WithoutLoneSurrogates& operator=(const WithoutLoneSurrogates&) = delete;

  // '\0' at the end.
  Ch Peek() const { return *at_; }
  Ch Take() {
    const Ch c = *at_;
    if (at_ != end_ && ++at_ == end_) Fill();
    return c;
  }
  size_t Tell() const { return before_ + static_cast<size_t>(at_ - buffer_.data()); }

  // Of streams that are written to.
  Ch* PutBegin() { return nullptr; }
  void Put(Ch) {}
  void Flush() {}
  size_t PutEnd(Ch*) { return 0; }

 private:
  static bool IsFirst(unsigned unit) { return unit >= 0xD800 && unit <= 0xDBFF; }
  static bool IsSecond(unsigned unit) { return unit >= 0xDC00 && unit <= 0xDFFF; }

  // The next block, behind what the last one left undecided.
  void Fill() {
    before_ += static_cast<size_t>(end_ - buffer_.data());
    const auto kept = static_cast<size_t>(last_ - end_);
    std::memmove(buffer_.data(), end_, kept);
    const size_t space = buffer_.size() - 1 - kept;
    const size_t got = whole_ ? 0 : read_(buffer_.data() + kept, space);
    whole_ = got < space;
    last_ = buffer_.data() + kept + got;
    *last_ = '\0';
    at_ = buffer_.data();
    end_ = Repair();
  }

  // Up to where all is decided.
  Ch* Repair() {
    Ch* at = buffer_.data();
    while ((at = static_cast<Ch*>(std::memchr(at, '\\', static_cast<size_t>(last_ - at)))) != nullptr) {
      if (!whole_ && last_ - at < static_cast<ptrdiff_t>(2 * kEscape)) return at;
      const std::optional<unsigned> unit = UnitAt(at);
      if (!unit) {
        at = std::min(at + 2, last_);  // "\\", "\n"; what is damaged the parser reports
      } else if (IsFirst(*unit) && IsSecond(UnitAt(at + kEscape).value_or(0))) {
        at += 2 * kEscape;
      } else {
        constexpr std::string_view kReplacement = "\\ufffd";
        if (IsFirst(*unit) || IsSecond(*unit)) std::copy(kReplacement.begin(), kReplacement.end(), at);
        at += kEscape;
      }
    }
    return last_;
  }

  // None: there is no such escape.
  std::optional<unsigned> UnitAt(const Ch* at) const {
    if (last_ - at < static_cast<ptrdiff_t>(kEscape) || at[0] != '\\' || at[1] != 'u') return std::nullopt;
    unsigned unit = 0;
    const auto [end, error] = std::from_chars(at + 2, at + kEscape, unit, 16);
    if (error != std::errc() || end != at + kEscape) return std::nullopt;
    return unit;
  }

  Read read_;
  std::vector<Ch> buffer_;  // and a '\0' behind it
  Ch* at_ = buffer_.data();
  Ch* end_ = buffer_.data();   // of what may be taken; the same as last_ at the end of the text
  Ch* last_ = buffer_.data();  // of what was read
  bool whole_ = false;         // nothing comes any more
  size_t before_ = 0;          // characters before the buffer
};

}  // namespace profd::analysis
