// The buffers that the vendor's library fills. It requests one under its own mutex, on whatever thread
// records, and hands it back full on a thread of its own or on the one that flushes: so both ends are
// lock-free and only take notes. Buffers are walked by the collecting thread.
//
// A request is never declined: each refused record would make the vendor's library start a thread. When no
// buffer is free, one that serves for all lends its memory (the trash buffer): what is returned in it is
// only counted.
#pragma once

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>

#include "client/libprofd/mspti/clock_pair.h"

namespace profd::lib::mspti {

class BufferPool {
 public:
  static constexpr size_t kBufferBytes = size_t{4} << 20;
  static constexpr size_t kTrashBytes = size_t{2} << 20;
  static constexpr int kFirst = 4;
  static constexpr int kMost = 16;

  ~BufferPool();

  // The collecting thread's.
  // The first buffers. False: no memory.
  bool Open();
  // One buffer more when few are free; at most kMost.
  void GrowIfShort();
  struct Full {
    int index;
    const uint8_t* data;
    size_t valid;
    ClockPair clock;  // of its return
    int64_t lent_raw_ns;
  };
  // The buffer that was returned first; false: none.
  bool Next(Full* full);
  void Free(int index);
  // Gives the memory of free buffers back to the system; they can still be lent.
  void Trim();

  // The vendor's threads'.
  void Lend(uint8_t** buffer, size_t* size);
  void TakeBack(uint8_t* buffer, size_t valid);
  // As Lend's buffer, without waiting in line: who walks it before the callback returns frees it. -1: none of
  // ours, or only counted.
  int Claim(uint8_t* buffer, size_t valid);
  // Of one that is claimed.
  int64_t LentAt(int index) const { return slots_[static_cast<size_t>(index)].lent_raw_ns; }

  // Since the last call.
  uint64_t TakeLostBytes() { return lost_bytes_.exchange(0, std::memory_order_relaxed); }
  int made() const { return made_.load(std::memory_order_acquire); }
  int free_count() const { return __builtin_popcount(free_.load(std::memory_order_relaxed)); }

 private:
  struct Slot {
    std::atomic<uint8_t*> memory{nullptr};
    size_t valid = 0;
    uint64_t order = 0;
    int64_t lent_raw_ns = 0;
    ClockPair clock;
  };
  bool MakeOne();

  std::array<Slot, kMost> slots_;
  uint8_t* trash_ = nullptr;
  std::atomic<int> made_{0};
  std::atomic<uint32_t> free_{0};  // bit = index
  std::atomic<uint32_t> full_{0};
  std::atomic<uint64_t> returned_{0};
  std::atomic<uint64_t> lost_bytes_{0};
  uint32_t taken_ = 0;  // of full_, not yet walked
};

}  // namespace profd::lib::mspti
