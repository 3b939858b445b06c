// One short line of plain text seen as bit masks, sixteen characters at a time: where its words begin
// and end, and what is not a digit. For the text records of the driver, which come in tens of
// thousands a second; whatever has another form is left to base/text.h. The vector instructions are those
// that every x86-64 and every aarch64 has; a third of the time that words of eight characters took.
#pragma once

#include <bit>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <string_view>

#include "base/eight_bytes.h"

#ifdef __aarch64__
#include <arm_neon.h>
#else
#include <emmintrin.h>
#endif

namespace profd {

__extension__ using Bits128 = unsigned __int128;

namespace internal {

using eight_bytes::kEachByte;
using eight_bytes::kHighBits;

// Bit i is character i of sixteen.
struct SixteenMasks {
  uint64_t control = 0;  // below a blank
  uint64_t blank = 0;    // a blank or a control character
  uint64_t digit = 0;
};

#ifdef __aarch64__
inline uint64_t GatherBytes(uint8x16_t all_or_none) {
  static constexpr uint8_t kBits[16] = {1, 2, 4, 8, 16, 32, 64, 128, 1, 2, 4, 8, 16, 32, 64, 128};
  const uint8x16_t bits = vandq_u8(all_or_none, vld1q_u8(kBits));
  return vaddv_u8(vget_low_u8(bits)) | static_cast<uint64_t>(vaddv_u8(vget_high_u8(bits))) << 8;
}
inline SixteenMasks MasksOf(const char* text) {
  const uint8x16_t bytes = vld1q_u8(reinterpret_cast<const uint8_t*>(text));
  return {GatherBytes(vcltq_u8(bytes, vdupq_n_u8(' '))), GatherBytes(vcleq_u8(bytes, vdupq_n_u8(' '))),
          GatherBytes(vcleq_u8(vsubq_u8(bytes, vdupq_n_u8('0')), vdupq_n_u8(9)))};
}
#else
// Bytes of `bytes` that are not above `most`, unsigned.
inline uint64_t GatherNotAbove(__m128i bytes, char most) {
  const __m128i low = _mm_min_epu8(bytes, _mm_set1_epi8(most));
  return static_cast<uint64_t>(_mm_movemask_epi8(_mm_cmpeq_epi8(low, bytes)));
}
inline SixteenMasks MasksOf(const char* text) {
  const __m128i bytes = _mm_loadu_si128(reinterpret_cast<const __m128i*>(text));
  return {GatherNotAbove(bytes, ' ' - 1), GatherNotAbove(bytes, ' '),
          GatherNotAbove(_mm_sub_epi8(bytes, _mm_set1_epi8('0')), 9)};
}
#endif

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
  uint64_t blanks[2] = {};
  uint64_t digits[2] = {};
  constexpr size_t kStep = 16;
  for (size_t at = 0; at <= LineShape::kMaxSize && at < text.size(); at += kStep) {
    internal::SixteenMasks masks;
    if (text.size() - at >= kStep) {
      masks = internal::MasksOf(text.data() + at);
    } else {
      char rest[kStep] = {};  // zeros behind the end: control characters
      std::memcpy(rest, text.data() + at, text.size() - at);
      masks = internal::MasksOf(rest);
    }
    blanks[at / 64] |= masks.blank << at % 64;
    digits[at / 64] |= masks.digit << at % 64;
    if (masks.control == 0) continue;
    shape->size = at + static_cast<size_t>(std::countr_zero(masks.control));
    if (shape->size > LineShape::kMaxSize || shape->size >= text.size() ||
        text[shape->size] != '\n') {
      return false;
    }
    const Bits128 within = (Bits128{1} << shape->size) - 1;
    shape->solid = ~(Bits128{blanks[1]} << 64 | blanks[0]) & within;
    shape->odd = shape->solid & ~(Bits128{digits[1]} << 64 | digits[0]);
    return true;
  }
  return false;
}

}  // namespace profd
