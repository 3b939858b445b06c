// What the simulator made and what became of it, per channel, for tests that count: with
// PROFD_SIM_LEDGER=FILE in the environment libascend_hal.so maps FILE, a header of 16 bytes {uint32
// magic, uint32 devices, uint32 channels per device, uint32 0}, then one row of 64 bytes for each
// device and channel: {uint64 runs, records, bytes, dropped bytes, read bytes, left bytes, records and
// bytes of the runs before the latest}, native byte order. Always: bytes = dropped + read + left + what
// is in the channel's ring now.
#pragma once

#include <atomic>
#include <cstdint>

namespace profd::sim {

inline constexpr uint32_t kLedgerMagic = 0x4c534650;  // "PFSL"

struct LedgerRow {
  std::atomic<uint64_t> runs{0};
  std::atomic<uint64_t> records{0};        // complete ones that were sampled; junk is not one
  std::atomic<uint64_t> bytes{0};          // sampled, with junk and header lines
  std::atomic<uint64_t> dropped_bytes{0};  // the ring was full
  std::atomic<uint64_t> read_bytes{0};
  std::atomic<uint64_t> left_bytes{0};  // not read before the channel's next start
  std::atomic<uint64_t> earlier_records{0};
  std::atomic<uint64_t> earlier_bytes{0};
};
static_assert(sizeof(LedgerRow) == 64);

// nullptr unless the environment requests a ledger. Rows have one writer at a time.
LedgerRow* LedgerRowOf(unsigned device, unsigned channel);

}  // namespace profd::sim
