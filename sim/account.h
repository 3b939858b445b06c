// What the simulator itself costs, per thread, for benchmarks: the daemon runs it inside its own
// threads, so the two cannot be distinguished from outside.
//
// With PROFD_SIM_ACCOUNT=FILE in the environment both libraries map FILE and add to it: a header
// of 16 bytes {uint32 magic, uint32 slots used, uint64 0}, then kAccountSlots slots of 32 bytes
// {uint32 thread id, uint32 0, uint64 CPU ns, uint64 calls, uint64 allocations}, native byte order.
// Allocations are counted where bench/alloc_counter is preloaded. Without the variable a call costs
// one load.
#pragma once

#include <atomic>
#include <cstdint>

namespace profd::sim {

inline constexpr uint32_t kAccountMagic = 0x41534650;  // "PFSA"
inline constexpr uint32_t kAccountSlots = 510;

struct AccountSlot {
  std::atomic<uint32_t> thread{0};
  uint32_t reserved = 0;
  std::atomic<uint64_t> busy_ns{0};
  std::atomic<uint64_t> calls{0};
  std::atomic<uint64_t> allocations{0};
};
static_assert(sizeof(AccountSlot) == 32);

// At the top of every exported function that does work. Not nested.
class Accounted {
 public:
  Accounted();
  ~Accounted();
  Accounted(const Accounted&) = delete;
  Accounted& operator=(const Accounted&) = delete;

 private:
  AccountSlot* slot_;  // null: not requested
  int64_t begin_ns_ = 0;
  uint64_t begin_allocations_ = 0;
};

}  // namespace profd::sim
