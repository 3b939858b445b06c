// One short line of plain text seen as bit masks, eight characters at a time: where its words begin
// and end, and what is not a digit. For the text records of the driver, which come in tens of
// thousands a second; whatever has another form is left to base/text.h.
#pragma once

#include <bit>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <string_view>

#include "base/eight_bytes.h"

namespace profd {

__extension__ using Bits128 = unsigned __int128;

namespace internal {

using eight_bytes::kEachByte;
using eight_bytes::kHighBits;

// Bit i of the answer is the high bit of byte i; the other bits of `bytes` must be 0.
inline uint64_t GatherHighBits(uint64_t bytes) { return ((bytes >> 7) * 0x0102040810204080) >> 56; }

// std::popcount is a call where the instruction set has none for it.
inline size_t CountBits(uint64_t bits) {
  bits -= (bits >> 1) & 0x55 * kEachByte;
  bits = (bits & 0x33 * kEachByte) + ((bits >> 2) & 0x33 * kEachByte);
  bits = (bits + (bits >> 4)) & 0x0F * kEachByte;
  return bits * kEachByte >> 56;
}

// Eight decimal digits, each byte holding 0..9, the first one in the lowest byte.
inline uint64_t JoinDigits(uint64_t digits) {
  digits = digits * 10 + (digits >> 8);
  digits = ((digits & 0x000000FF000000FF) * (100 + (uint64_t{1'000'000} << 32)) +
            ((digits >> 16) & 0x000000FF000000FF) * (1 + (uint64_t{10'000} << 32))) >>
           32;
  return digits;
}

inline bool AllDigits(uint64_t digits) {
  return (((digits + 0x76 * kEachByte) | digits) & kHighBits) == 0;
}

}  // namespace internal

// The number of text[begin, end), which must be 1 to 16 digits; false if it is not. Reads the eight
// characters that end at `end`, so not for a number among the first seven of a text.
[[nodiscard]] inline bool ParseDigitsWithin(const char* text, size_t begin, size_t end,
                                            uint64_t* out) {
  const size_t size = end - begin;
  if (size == 0 || size > 16 || end < 8) return false;
  uint64_t low = eight_bytes::Load(text + end - 8) ^ 0x30 * internal::kEachByte;
  if (size <= 8) {
    const size_t others = 8 * (8 - size);
    low = low >> others << others;
    *out = internal::JoinDigits(low);
    return internal::AllDigits(low);
  }
  const uint64_t high = (eight_bytes::Load(text + begin) ^ 0x30 * internal::kEachByte)
                        << 8 * (16 - size);
  *out = internal::JoinDigits(high) * 100'000'000 + internal::JoinDigits(low);
  return internal::AllDigits(low) && internal::AllDigits(high);
}

// The number of text[0, size), which must be 1 to 8 digits. Reads eight characters.
[[nodiscard]] inline bool ParseDigitsAhead(const char* text, size_t size, uint64_t* out) {
  if (size == 0 || size > 8) return false;
  const uint64_t digits = (eight_bytes::Load(text) ^ 0x30 * internal::kEachByte) << 8 * (8 - size);
  *out = internal::JoinDigits(digits);
  return internal::AllDigits(digits);
}

struct LineShape {
  static constexpr size_t kMaxSize = 127;
  Bits128 solid = 0;  // not a blank
  Bits128 odd = 0;    // neither a blank nor a digit
  size_t size = 0;    // without the newline
  size_t words() const {
    const Bits128 begins = solid & ~(solid << 1);
    return internal::CountBits(static_cast<uint64_t>(begins)) +
           internal::CountBits(static_cast<uint64_t>(begins >> 64));
  }
};

// The line that `text` begins with. False: it has no newline, is longer than kMaxSize or has other
// control characters (tabs too); `*shape` is undefined then.
[[nodiscard]] inline bool ScanLine(std::string_view text, LineShape* shape) {
  uint64_t solid[2] = {};
  uint64_t digits[2] = {};
  for (size_t at = 0; at <= LineShape::kMaxSize && at < text.size(); at += 8) {
    const size_t left = text.size() - at;
    uint64_t word = 0;  // zeros behind the end: control characters
    if (left >= sizeof word) {
      word = eight_bytes::Load(text.data() + at);
    } else {
      std::memcpy(&word, text.data() + at, left);
    }
    const uint64_t low = word & ~internal::kHighBits;
    const uint64_t control = ~((low + 0x60 * internal::kEachByte) | word) & internal::kHighBits;
    const uint64_t visible = ((low + 0x5F * internal::kEachByte) | word) & internal::kHighBits;
    const uint64_t other =
        (((low ^ 0x30 * internal::kEachByte) + 0x76 * internal::kEachByte) | word) &
        internal::kHighBits;
    solid[at / 64] |= internal::GatherHighBits(visible) << at % 64;
    digits[at / 64] |= internal::GatherHighBits(other ^ internal::kHighBits) << at % 64;
    if (control == 0) continue;
    shape->size = at + static_cast<size_t>(std::countr_zero(control)) / 8;
    if (shape->size > LineShape::kMaxSize || shape->size >= text.size() ||
        text[shape->size] != '\n') {
      return false;
    }
    const Bits128 within = (Bits128{1} << shape->size) - 1;
    shape->solid = (Bits128{solid[1]} << 64 | solid[0]) & within;
    shape->odd = shape->solid & ~(Bits128{digits[1]} << 64 | digits[0]);
    return true;
  }
  return false;
}

}  // namespace profd
