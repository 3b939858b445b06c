#include "client/libprofd/mspti/buffer_pool.h"

#include <sys/mman.h>

#include <algorithm>

namespace profd::lib::mspti {
namespace {

// Aligned to a page, hence to what the vendor's library wants.
uint8_t* MapMemory(size_t bytes) {
  void* memory = ::mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  return memory == MAP_FAILED ? nullptr : static_cast<uint8_t*>(memory);
}

uint32_t Bit(int index) { return uint32_t{1} << index; }

}  // namespace

BufferPool::~BufferPool() {
  for (Slot& slot : slots_) {
    if (uint8_t* memory = slot.memory) ::munmap(memory, kBufferBytes);
  }
  if (trash_ != nullptr) ::munmap(trash_, kTrashBytes);
}

bool BufferPool::Open() {
  if (trash_ == nullptr) trash_ = MapMemory(kTrashBytes);
  while (trash_ != nullptr && made() < kFirst && MakeOne()) continue;
  return made() >= kFirst;
}

bool BufferPool::MakeOne() {
  const int index = made();
  uint8_t* memory = MapMemory(kBufferBytes);
  if (memory == nullptr) return false;
  slots_[static_cast<size_t>(index)].memory.store(memory, std::memory_order_release);
  made_.store(index + 1, std::memory_order_release);
  free_.fetch_or(Bit(index), std::memory_order_release);
  return true;
}

void BufferPool::GrowIfShort() {
  if (free_count() < 2 && made() < kMost) MakeOne();
}

void BufferPool::Lend(uint8_t** buffer, size_t* size) {
  uint32_t free = free_.load(std::memory_order_acquire);
  while (free != 0) {
    const int index = __builtin_ctz(free);
    if (!free_.compare_exchange_weak(free, free & ~Bit(index), std::memory_order_acquire)) continue;
    Slot& slot = slots_[static_cast<size_t>(index)];
    slot.lent_raw_ns = ReadClock(CLOCK_MONOTONIC_RAW);
    *buffer = slot.memory.load(std::memory_order_relaxed);
    *size = kBufferBytes;
    return;
  }
  *buffer = trash_;
  *size = kTrashBytes;
}

int BufferPool::Claim(uint8_t* buffer, size_t valid) {
  if (buffer == nullptr) return -1;
  const int count = made();
  for (int index = 0; index < count; ++index) {
    if (slots_[static_cast<size_t>(index)].memory.load(std::memory_order_relaxed) == buffer) {
      return index;
    }
  }
  if (buffer == trash_) lost_bytes_.fetch_add(std::min(valid, kTrashBytes), std::memory_order_relaxed);
  return -1;
}

void BufferPool::TakeBack(uint8_t* buffer, size_t valid) {
  const int index = Claim(buffer, valid);
  if (index < 0) return;
  Slot& slot = slots_[static_cast<size_t>(index)];
  slot.valid = std::min(valid, kBufferBytes);
  slot.order = returned_.fetch_add(1, std::memory_order_relaxed);
  slot.clock = ClockPair::Now();
  full_.fetch_or(Bit(index), std::memory_order_release);
}

bool BufferPool::Next(Full* full) {
  taken_ |= full_.exchange(0, std::memory_order_acquire);
  if (taken_ == 0) return false;
  int first = -1;
  for (int index = 0; index < kMost; ++index) {
    if ((taken_ & Bit(index)) == 0) continue;
    if (first < 0 ||
        slots_[static_cast<size_t>(index)].order < slots_[static_cast<size_t>(first)].order) {
      first = index;
    }
  }
  taken_ &= ~Bit(first);
  const Slot& slot = slots_[static_cast<size_t>(first)];
  *full = {first, slot.memory.load(std::memory_order_relaxed), slot.valid, slot.clock, slot.lent_raw_ns};
  return true;
}

void BufferPool::Free(int index) { free_.fetch_or(Bit(index), std::memory_order_release); }

void BufferPool::Trim() {
  // Taken out while their pages go, so that none is lent meanwhile.
  uint32_t mine = free_.exchange(0, std::memory_order_acquire);
  for (int index = 0; index < kMost; ++index) {
    if ((mine & Bit(index)) == 0) continue;
    ::madvise(slots_[static_cast<size_t>(index)].memory.load(), kBufferBytes, MADV_DONTNEED);
  }
  free_.fetch_or(mine, std::memory_order_release);
}

}  // namespace profd::lib::mspti
