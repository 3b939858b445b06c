// Eight bytes of text as one word, the first in its lowest byte: what the fast ways through lines of the
// driver (base/line_shape.h) and of /proc (collectors/proc/blank_fields.h) are made of.
#pragma once

#include <bit>
#include <cstdint>
#include <cstring>

namespace profd::eight_bytes {

static_assert(std::endian::native == std::endian::little);

inline constexpr uint64_t kEachByte = 0x0101010101010101;
inline constexpr uint64_t kHighBits = 0x80 * kEachByte;

// Reads all eight, whatever they are.
inline uint64_t Load(const char* text) {
  uint64_t word;
  std::memcpy(&word, text, sizeof word);
  return word;
}

}  // namespace profd::eight_bytes
