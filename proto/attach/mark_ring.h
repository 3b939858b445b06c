// The shared-memory ring through which a training process hands marks, ranges and steps to the
// daemon: many producers (the process's threads), one consumer (the daemon). A bounded queue with a
// sequence number per slot (Vyukov): producers never wait, a full ring drops the new mark and
// counts it, so published + dropped = asked for, exactly.
//
// Lives in a memfd that the process makes, seals against shrinking and growing, and passes with its
// hello. Everything in it is untrusted for the daemon: it validates the geometry once from its own
// copy, takes every slot by value, and bounds what it takes per round.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>

namespace profd::attach {

inline constexpr uint64_t kRingMagic = 0x314B52414D465250ULL;  // "PRFMARK1"
inline constexpr uint32_t kRingVersion = 1;
inline constexpr uint32_t kMinRingSlots = 256;
inline constexpr uint32_t kMaxRingSlots = 1U << 17;
inline constexpr uint32_t kDefaultRingSlots = 1U << 14;  // 2 MiB
inline constexpr size_t kMarkNameBytes = 88;

enum class MarkKind : uint16_t {
  kMark = 1,
  kRangePush = 2,
  kRangePop = 3,   // ends the innermost range of its thread; no name
  kStepBegin = 4,  // value = step
  kStepEnd = 5,
  kRangeStart = 6,  // value = its id in the process, never 0; may end on another thread, in any order
  kRangeEnd = 7,    // value = the id; no name
  // Sampled call stacks: frames are a tree, and a stack is its innermost frame. A frame is sent before the first
  // stack of a session that needs it.
  kFrame = 8,  // value = id | id of the frame that called it << 32, 0 = none; ids are 31 bits, never 0
  kStack = 9,  // value = id of the innermost frame; thread = whose stack it is; no name
};

// Between the domain of a mark and its name, where it has a domain: "communication\x1f" "all-reduce".
inline constexpr char kDomainEnd = '\x1f';

struct MarkSlot {
  std::atomic<uint64_t> sequence;  // see below
  int64_t time_ns;                 // CLOCK_MONOTONIC_RAW
  int64_t value;                   // step or id of a range; 0 otherwise
  int32_t thread;                  // kernel thread id, in the process's pid namespace
  uint16_t kind;                   // MarkKind
  uint16_t name_bytes;             // <= kMarkNameBytes; longer names are cut at a UTF-8 boundary
  uint64_t reserved;               // 0
  char name[kMarkNameBytes];
};
static_assert(sizeof(MarkSlot) == 128);

// Slot i begins with sequence i. A producer that finds slot p % slots at sequence p claims position
// p (tail from p to p + 1), fills the slot and stores p + 1; the consumer takes it at sequence p +
// 1 and stores p + slots. So tail counts what was published: a mark that finds no free slot claims
// nothing.
struct MarkRing {
  uint64_t magic;
  uint32_t version;
  uint32_t slots;  // power of two, kMinRingSlots..kMaxRingSlots
  // 1 while a session takes marks: producers look at it first and do nothing otherwise. Set by the
  // process's own library when the daemon requests it.
  std::atomic<uint32_t> active;
  uint32_t reserved0;
  alignas(64) std::atomic<uint64_t> tail;     // next position of the producers
  alignas(64) std::atomic<uint64_t> dropped;  // marks the full ring refused
  alignas(
      64) std::atomic<uint64_t> head;  // next position of the consumer (the daemon's copy counts)
  alignas(64) uint64_t reserved1[8];
};
static_assert(sizeof(MarkRing) == 320);
static_assert(std::atomic<uint64_t>::is_always_lock_free);

// Slots follow the header at the next 4096 bytes.
inline constexpr size_t kRingHeaderBytes = 4096;
constexpr size_t RingBytes(uint32_t slots) {
  return kRingHeaderBytes + static_cast<size_t>(slots) * sizeof(MarkSlot);
}

}  // namespace profd::attach
