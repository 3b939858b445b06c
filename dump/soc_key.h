#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "base/bytes.h"
#include "driver/abi/channels.h"

namespace profd {

// What distinguishes series of one type in channel 52 (driver-abi 3.6, dump-format 2.9).
inline uint64_t SocKey(std::span<const std::byte> record, uint8_t type, bool is_950) {
  auto head = LoadUnchecked<uint16_t>(record, 0);
  uint32_t sub_type = abi::SocProfileSubtypeOf(head);
  uint32_t id = 0;
  switch (static_cast<abi::SocProfileType>(type)) {
    case abi::SocProfileType::kSio:
      sub_type = 0;
      id = is_950 ? LoadUnchecked<uint8_t>(record, 1) >> 2 : LoadUnchecked<uint16_t>(record, 18);
      break;
    case abi::SocProfileType::kAccPmu:
      id = LoadUnchecked<uint16_t>(record, 18);
      break;
    case abi::SocProfileType::kChipTrans:
      if (!is_950) id = LoadUnchecked<uint16_t>(record, 18) & 63u;
      break;
    default:
      break;
  }
  return uint64_t{type} << 32 | uint64_t{sub_type} << 16 | id;
}

}  // namespace profd
