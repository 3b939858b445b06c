// The vendor's id of a text: two polynomial hashes of 32 bits with the multipliers 29 and 131.
#pragma once

#include <cstdint>
#include <string_view>

namespace profd::sim::prof {

// An empty text is UINT64_MAX.
inline uint64_t HashText(std::string_view text) {
  if (text.empty()) return UINT64_MAX;
  uint32_t high = 0, low = 0;
  for (const char c : text) {
    uint32_t value = static_cast<unsigned char>(c);
    if (value >= 0x80) value |= 0xFFFFFF00;  // the vendor's char is signed
    high = high * 29 + value;
    low = low * 131 + value;
  }
  return uint64_t{high} << 32 | low;
}

}  // namespace profd::sim::prof
