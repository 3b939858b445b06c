// Bytes of a driver, for the tests of Framer.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "base/bytes.h"

namespace profd {

using Buffer = std::vector<std::byte>;

// An HBM record, or one of the LLC, which has the same layout.
inline Buffer Hbm(uint64_t us, uint64_t count, uint32_t event, uint32_t id) {
  Buffer record(24);
  StoreUnchecked(std::span(record), 0, us);
  StoreUnchecked(std::span(record), 8, count);
  StoreUnchecked(std::span(record), 16, event);
  StoreUnchecked(std::span(record), 20, id);
  return record;
}

}  // namespace profd
