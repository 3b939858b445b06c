// The producers' end of the mark ring (proto/attach/mark_ring.h): lays a ring out in fresh memory
// and publishes into it from any number of threads, also from a signal handler. Never waits: a full
// ring drops the new mark and counts it. Header only; nothing here allocates or throws.
#pragma once

#include <bit>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <new>
#include <string_view>

#include "proto/attach/cut_text.h"
#include "proto/attach/mark_ring.h"

namespace profd::attach {

// The power of two that serves a wish for `slots`; 0 = the default.
constexpr uint32_t RingSlotsFor(uint32_t slots) {
  if (slots == 0) return kDefaultRingSlots;
  if (slots <= kMinRingSlots) return kMinRingSlots;
  return slots >= kMaxRingSlots ? kMaxRingSlots : std::bit_ceil(slots);
}

inline std::string_view CutMarkName(const char* name_or_null, size_t max_bytes = kMarkNameBytes) {
  return CutText(name_or_null, max_bytes);
}

class MarkRingWriter {
 public:
  MarkRingWriter() = default;
  // `memory`: RingBytes(slots) zeroed bytes aligned to a page, which outlive the writer.
  MarkRingWriter(void* memory, uint32_t slots)
      : ring_(static_cast<MarkRing*>(memory)),
        slots_(reinterpret_cast<MarkSlot*>(static_cast<std::byte*>(memory) + kRingHeaderBytes)),
        mask_(slots - 1) {}

  // Once, before another process sees the memory; `slots` as RingSlotsFor gives it.
  static MarkRingWriter Format(void* memory, uint32_t slots) {
    auto* ring = new (memory) MarkRing{};
    MarkRingWriter writer(memory, slots);
    for (uint32_t i = 0; i < slots; ++i) {
      auto* slot = new (&writer.slots_[i]) MarkSlot{};
      slot->sequence.store(i, std::memory_order_relaxed);
    }
    ring->version = kRingVersion;
    ring->slots = slots;
    ring->magic = kRingMagic;
    return writer;
  }

  struct Entry {
    MarkKind kind = MarkKind::kMark;
    int64_t time_ns = 0;  // CLOCK_MONOTONIC_RAW
    int64_t value = 0;
    int32_t thread = 0;
    std::string_view name;  // with its domain at most kMarkNameBytes
    std::string_view domain = {};  // empty = none
  };

  // False: dropped and counted.
  bool Publish(const Entry& entry) const {
    MarkSlot* slot = nullptr;
    const uint64_t position = Claim(&slot);
    if (slot == nullptr) return false;
    slot->time_ns = entry.time_ns;
    slot->value = entry.value;
    slot->thread = entry.thread;
    slot->kind = static_cast<uint16_t>(entry.kind);
    size_t bytes = 0;
    const auto append = [slot, &bytes](std::string_view text) {
      const size_t count = text.size() < kMarkNameBytes - bytes ? text.size() : kMarkNameBytes - bytes;
      if (count > 0) std::memcpy(slot->name + bytes, text.data(), count);
      bytes += count;
    };
    if (!entry.domain.empty()) {
      append(entry.domain);
      append({&kDomainEnd, 1});
    }
    append(entry.name);
    slot->name_bytes = static_cast<uint16_t>(bytes);
    slot->sequence.store(position + 1, std::memory_order_release);
    return true;
  }

  void CountDropped() const { ring_->dropped.fetch_add(1, std::memory_order_relaxed); }
  void SetActive(bool active) const {
    ring_->active.store(active ? 1 : 0, std::memory_order_relaxed);
  }
  // Every claimed position is published sooner or later, so the tail counts what was.
  uint64_t published() const { return ring_->tail.load(std::memory_order_relaxed); }
  uint64_t dropped() const { return ring_->dropped.load(std::memory_order_relaxed); }

  // Sets the consumer's position again. A daemon that was killed while it took slots has not stored it,
  // and its successor begins at the ring's position. Only while there is no consumer; producers may continue.
  void MendHead() const {
    // Slot by slot the position that is next in it: still to be taken, or to be filled. The
    // least of them is where the consumer is, since it goes in order.
    uint64_t head = UINT64_MAX;
    for (uint64_t i = 0; i <= mask_; ++i) {
      const uint64_t sequence = slots_[i].sequence.load(std::memory_order_acquire);
      const uint64_t position = ((sequence ^ i) & mask_) == 0 ? sequence : sequence - 1;
      if (position < head) head = position;
    }
    ring_->head.store(head, std::memory_order_release);
  }

 private:
  // Far more than any number of threads can collide; the bound is for a damaged ring.
  static constexpr int kMaxAttempts = 100'000;

  uint64_t Claim(MarkSlot** claimed) const {
    uint64_t position = ring_->tail.load(std::memory_order_relaxed);
    for (int attempt = 0; attempt < kMaxAttempts; ++attempt) {
      MarkSlot& slot = slots_[position & mask_];
      const uint64_t sequence = slot.sequence.load(std::memory_order_acquire);
      if (sequence == position) {
        if (ring_->tail.compare_exchange_weak(position, position + 1, std::memory_order_relaxed)) {
          *claimed = &slot;
          return position;
        }
      } else if (static_cast<int64_t>(sequence - position) < 0) {
        break;  // the consumer has not taken what lies here: full
      } else {
        position = ring_->tail.load(std::memory_order_relaxed);
      }
    }
    CountDropped();
    return 0;
  }

  MarkRing* ring_ = nullptr;
  MarkSlot* slots_ = nullptr;
  uint64_t mask_ = 0;
};

}  // namespace profd::attach
