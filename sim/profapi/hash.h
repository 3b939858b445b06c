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
    const auto value = static_cast<uint32_t>(static_cast<signed char>(c));
    high = high * 29 + value;
    low = low * 131 + value;
  }
  return uint64_t{high} << 32 | low;
}

}  // namespace profd::sim::prof
