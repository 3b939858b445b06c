// Lines, words and numbers of the vendor's text files, without a copy or an allocation. Every scan
// stops at the end of what it was given and returns false rather than guess.
#pragma once

#include <array>
#include <charconv>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <limits>
#include <span>
#include <string_view>

#include "base/text.h"

namespace profd::exporting {

// Calls each(line) for every line, without its end ('\n' or "\r\n").
template <typename Each>
void ForEachLine(std::span<const std::byte> bytes, Each&& each) {
  const char* at = reinterpret_cast<const char*>(bytes.data());
  const char* end = at + bytes.size();
  while (at < end) {
    const auto* stop =
        static_cast<const char*>(std::memchr(at, '\n', static_cast<size_t>(end - at)));
    const char* next = stop == nullptr ? end : stop + 1;
    if (stop == nullptr) stop = end;
    if (stop > at && stop[-1] == '\r') --stop;
    each(std::string_view(at, static_cast<size_t>(stop - at)));
    at = next;
  }
}

// One line, from left to right.
class TextScan {
 public:
  explicit TextScan(std::string_view line) : at_(line.data()), end_(line.data() + line.size()) {}

  std::string_view rest() const { return {at_, static_cast<size_t>(end_ - at_)}; }
  // Skips blanks first.
  bool AtEnd() {
    SkipBlanks();
    return at_ == end_;
  }
  bool Skip(char c) {
    if (at_ == end_ || *at_ != c) return false;
    ++at_;
    return true;
  }
  // The next word; empty at the end.
  std::string_view Word() {
    SkipBlanks();
    const char* begin = at_;
    while (at_ != end_ && !IsBlank(*at_)) ++at_;
    return {begin, static_cast<size_t>(at_ - begin)};
  }
  // Up to the next `separator`, which is skipped, or to the end.
  std::string_view Field(char separator) {
    const char* begin = at_;
    while (at_ != end_ && *at_ != separator) ++at_;
    std::string_view field(begin, static_cast<size_t>(at_ - begin));
    if (at_ != end_) ++at_;
    return field;
  }
  bool SkipWords(int count) {
    for (int i = 0; i < count; ++i) {
      if (Word().empty()) return false;
    }
    return true;
  }

  // Digits only; what follows stays. False without one, and when it does not fit.
  bool Digits(uint64_t* value, int* count = nullptr) {
    const char* begin = at_;
    uint64_t sum = 0;
    while (at_ != end_ && IsDigit(*at_)) {
      auto digit = static_cast<unsigned>(*at_ - '0');
      if (at_ - begin >= 19 && sum > (std::numeric_limits<uint64_t>::max() - digit) / 10) {
        return false;
      }
      sum = sum * 10 + digit;
      ++at_;
    }
    *value = sum;
    if (count != nullptr) *count = static_cast<int>(at_ - begin);
    return at_ != begin;
  }
  // A whole word that is a number.
  bool Uint(uint64_t* value) {
    SkipBlanks();
    return Digits(value) && AtWordEnd();
  }
  bool Int(int64_t* value) {
    SkipBlanks();
    bool negative = Skip('-');
    uint64_t digits = 0;
    if (!Digits(&digits) || !AtWordEnd()) return false;
    if (digits > static_cast<uint64_t>(std::numeric_limits<int64_t>::max())) return false;
    *value = negative ? -static_cast<int64_t>(digits) : static_cast<int64_t>(digits);
    return true;
  }
  // Correctly rounded; finite.
  bool Real(double* value) {
    SkipBlanks();
    const char* begin = at_;
    bool negative = Skip('-');
    uint64_t whole = 0;
    uint64_t part = 0;
    int whole_digits = 0;
    int part_digits = 0;
    bool simple = Digits(&whole, &whole_digits);
    if (simple && Skip('.')) Digits(&part, &part_digits);
    if (simple && AtWordEnd() && whole_digits + part_digits <= 18) {
      uint64_t mantissa = whole * kTens[static_cast<size_t>(part_digits)] + part;
      if (mantissa <= uint64_t{1} << 53) {
        double result = static_cast<double>(mantissa) /
                        static_cast<double>(kTens[static_cast<size_t>(part_digits)]);
        *value = negative ? -result : result;
        return true;
      }
    }
    at_ = begin;
    auto [stop, error] = std::from_chars(at_, end_, *value);
    at_ = stop;
    return error == std::errc() && AtWordEnd() && std::isfinite(*value);
  }
  // `sec:nnnnnnnnn` as ns.
  bool SecondsAndNs(int64_t* value) {
    SkipBlanks();
    uint64_t seconds = 0;
    uint64_t ns = 0;
    if (!Digits(&seconds) || !Skip(':') || !Digits(&ns) || !AtWordEnd()) return false;
    if (seconds >= 9'000'000'000 || ns >= 1'000'000'000) return false;
    *value = static_cast<int64_t>(seconds * 1'000'000'000 + ns);
    return true;
  }

  static bool IsBlank(char c) { return c == ' ' || c == '\t'; }

 private:
  static constexpr std::array<uint64_t, 19> kTens = [] {
    std::array<uint64_t, 19> tens{1};
    for (size_t i = 1; i < tens.size(); ++i) tens[i] = tens[i - 1] * 10;
    return tens;
  }();

  void SkipBlanks() {
    while (at_ != end_ && IsBlank(*at_)) ++at_;
  }
  bool AtWordEnd() const { return at_ == end_ || IsBlank(*at_); }

  const char* at_;
  const char* end_;
};

}  // namespace profd::exporting
