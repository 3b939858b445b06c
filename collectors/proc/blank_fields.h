// Walking over the fields of a line of /proc as the kernel prints it: printable ASCII, single blanks
// between fields. Eight bytes at a time, for this runs for every file of every process. Whatever is
// not printed like that is refused here and left to the general functions of base/text.h.
#pragma once

#include <bit>
#include <cstddef>
#include <cstdint>
#include <string_view>

#include "base/eight_bytes.h"

namespace profd::fields {

using eight_bytes::kEachByte;
using eight_bytes::kHighBits;

// 0x80 in every byte that is `c`, 0 in the others; exact, nothing carries over.
constexpr uint64_t Matches(uint64_t word, char c) {
  const uint64_t zero_where = word ^ (kEachByte * static_cast<unsigned char>(c));
  return ~(((zero_where & ~kHighBits) + ~kHighBits) | zero_where | ~kHighBits);
}

// Non-zero if some byte is not within ' '..'~'.
constexpr uint64_t Unprintable(uint64_t word) {
  const uint64_t low = word & ~kHighBits;
  const uint64_t at_least_blank = low + kEachByte * (0x80 - 0x20);
  const uint64_t delete_or_more = low + kEachByte;
  return (word | ~at_least_blank | delete_or_more) & kHighBits;
}

constexpr int CountMatches(uint64_t matches) {
  return static_cast<int>(((matches >> 7) * kEachByte) >> 56);
}

inline bool AllPrintable(std::string_view text) {
  const char* at = text.data();
  const char* const end = at + text.size();
  uint64_t bad = 0;
  for (; end - at >= 8; at += 8) bad |= Unprintable(eight_bytes::Load(at));
  for (; at != end; ++at) bad |= *at < 0x20 || *at > 0x7e ? 1U : 0U;
  return bad == 0;
}

// From the first character of a field to that of the `count`-th field after it; null where blanks
// are not single, or there are no so many.
inline const char* Skip(const char* at, const char* end, int count) {
  uint64_t blank_before = 0x80;
  for (; end - at >= 8; at += 8) {
    uint64_t blanks = Matches(eight_bytes::Load(at), ' ');
    if ((blanks & ((blanks << 8) | blank_before)) != 0) return nullptr;
    const int found = CountMatches(blanks);
    if (found >= count) {
      for (; count > 1; --count) blanks &= blanks - 1;
      return at + std::countr_zero(blanks) / 8 + 1;
    }
    count -= found;
    blank_before = blanks >> 56;
  }
  bool blank = blank_before != 0;
  for (; at != end; ++at) {
    if (*at != ' ') {
      blank = false;
      continue;
    }
    if (blank) return nullptr;
    blank = true;
    if (--count == 0) return at + 1;
  }
  return nullptr;
}

// The number at *at, up to a blank or `end`, which *at then points at. False if it is none, has a
// leading zero, or might not fit.
inline bool TakeNumber(const char** at, const char* end, uint64_t* out) {
  constexpr ptrdiff_t kMaxDigits = 19;  // always fits
  const char* const begin = *at;
  const char* p = begin;
  uint64_t value = 0;
  for (; p != end && *p >= '0' && *p <= '9'; ++p) value = value * 10 + static_cast<uint64_t>(*p - '0');
  if (p == begin || p - begin > kMaxDigits || (p != end && *p != ' ')) return false;
  if (*begin == '0' && p - begin > 1) return false;
  *at = p;
  *out = value;
  return true;
}

}  // namespace profd::fields
