// UB ports. profd does not collect them; it reads them in the vendor's dumps.
#pragma once

#include <array>

#include "driver/records/record.h"

namespace profd::records {

struct UbRecord {
  uint16_t magic;
  uint16_t reserved_1;
  uint16_t port;
  uint16_t reserved_2;
  uint64_t timestamp;  // us since the start of the device's session
  // udma rx and tx binds, then of rx and of tx: bandwidth, packet rate, bytes, packets, errors,
  // dropped.
  std::array<uint64_t, 14> values;

  bool IsPlausible() const { return magic == 0x5A5A; }
};
static_assert(sizeof(UbRecord) == 128);

}  // namespace profd::records
