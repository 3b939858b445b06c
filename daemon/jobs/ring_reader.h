// The daemon's end of one process's mark ring (proto/attach/mark_ring.h). Everything in the ring can
// change under our eyes: the geometry is copied once, slots are taken by value, and nothing in it makes
// us read outside the mapping or more than we mean to. A mapping of a sealed memfd cannot be shrunk, so
// that no access faults. Lives on the control strand; Map may run anywhere.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "base/fd.h"
#include "base/status.h"
#include "daemon/jobs/job_directory.h"
#include "daemon/jobs/sealed_memory.h"
#include "proto/attach/mark_ring.h"

namespace profd {

// Buffers for what one round takes; shared by all rings of a strand.
class MarkScratch {
 public:
  static constexpr size_t kSlots = 8192;
  std::span<const Mark> marks() const { return marks_; }

 private:
  friend class RingReader;
  std::vector<std::array<char, attach::kMarkNameBytes>> names_;
  std::vector<Mark> marks_;
};

class RingReader {
 public:
  // kInvalidArgument: no memfd of the right size and seals, or no ring in it.
  static Result<std::unique_ptr<RingReader>> Map(const UniqueFd& memfd);
  RingReader(const RingReader&) = delete;
  RingReader& operator=(const RingReader&) = delete;

  struct Round {
    size_t slots = 0;      // taken from the ring, made sense or not
    uint64_t dropped = 0;  // more than at the last round, by the process's count
    uint64_t clamped = 0;  // timestamps from the future, set to now
    uint64_t bad = 0;      // of no kind we know, left out
  };
  // Takes up to `max_slots` (at most MarkScratch::kSlots) into `*scratch`. kDataLoss: the ring is
  // broken and must not be read again.
  Result<Round> Take(size_t max_slots, int64_t now_raw_ns, MarkScratch* scratch);

  // After other readers of the same ring, which have gone: where they stopped.
  void Continue();
  bool IsOfSameRing(const RingReader& other) const { return memory_.IsSameAs(other.memory_); }

  uint32_t slots() const { return slots_; }
  // Published or claimed and not taken; by the process's count, at most slots().
  uint64_t Waiting() const;

 private:
  RingReader(SealedMemory memory, uint32_t slots);
  Status Resume();
  attach::MarkSlot* SlotAt(uint64_t position) const;
  attach::MarkRing* ring() const;

  const SealedMemory memory_;
  const uint32_t slots_;
  uint64_t head_ = 0;
  uint64_t dropped_ = 0;
};

// Replaces what is not printable UTF-8 (control characters, broken sequences, invisible and
// bidirectional format characters) by '?', in place.
void MakePrintable(std::span<char> text);

}  // namespace profd
