// The kinds of records of channel 52, which are thinned and have rates by kind
// (driver-abi 3.4, 3.6).
#pragma once

#include <cstdint>

namespace profd::abi {

inline constexpr uint32_t kSocProfileChannel = 52;
inline constexpr uint16_t kSocProfileMagic = 0x6BD3;
enum class SocProfileType : uint8_t {
  kQos = 0b011000,
  kSio = 0b011001,
  kAccPmu = 0b011010,
  kChipTrans = 0b011011,
  kSocLevels = 0b011100,
  kLowPower = 0b011101,
};
// Record kind of channel 52 from its first 16-bit word.
constexpr uint8_t SocProfileTypeOf(uint16_t head) { return head & 0x3F; }
// Sub type (link kind or die) from the same word.
constexpr uint8_t SocProfileSubtypeOf(uint16_t head) { return static_cast<uint8_t>(head >> 10); }
inline constexpr uint8_t kChipTransPaLink = 0b111111;
inline constexpr uint8_t kChipTransPcie = 0b100010;

}  // namespace profd::abi
