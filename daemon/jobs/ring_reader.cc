#include "daemon/jobs/ring_reader.h"

#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <cstring>
#include <utility>

#include "base/clock.h"
#include "base/utf8.h"

namespace profd {
namespace {

using attach::MarkKind;
using attach::MarkRing;
using attach::MarkSlot;

// How far ahead of us a timestamp may be before it is taken for nonsense.
constexpr int64_t kMaxAheadNs = kNsPerSecond;

// Reads exactly once, whatever the optimiser would like: what is checked is what is used.
template <class T>
T Once(T& shared) {
  return std::atomic_ref<T>(shared).load(std::memory_order_relaxed);
}

bool IsKnown(uint16_t kind) {
  return kind >= static_cast<uint16_t>(MarkKind::kMark) &&
         kind <= static_cast<uint16_t>(MarkKind::kStack);
}
bool HasName(MarkKind kind) {
  return kind == MarkKind::kMark || kind == MarkKind::kRangePush || kind == MarkKind::kRangeStart ||
         kind == MarkKind::kFrame;
}

// Bytes of the character at the front of `text`, 0 if it is none or shall not be shown.
size_t PrintableLength(std::string_view text) {
  const auto [c, bytes] = FirstCodePoint(text);
  return IsInvisible(c) || c == 0xAD ? 0 : bytes;  // and the soft hyphen
}

}  // namespace

void MakePrintable(std::span<char> text) {
  while (!text.empty()) {
    size_t length = PrintableLength({text.data(), text.size()});
    if (length == 0) {
      text[0] = '?';
      length = 1;
    }
    text = text.subspan(length);
  }
}

Result<std::unique_ptr<RingReader>> RingReader::Map(const UniqueFd& memfd) {
  Result<SealedMemory> memory =
      SealedMemory::Map(memfd, "the mark ring",
                        {attach::RingBytes(attach::kMinRingSlots), attach::RingBytes(attach::kMaxRingSlots)});
  if (!memory.ok()) return memory.status();
  const size_t bytes = memory->bytes();
  struct Geometry {
    uint64_t magic;
    uint32_t version;
    uint32_t slots;
  } geometry{};
  std::memcpy(&geometry, memory->base(), sizeof geometry);
  bool fits = geometry.magic == attach::kRingMagic && geometry.version == attach::kRingVersion &&
              std::has_single_bit(geometry.slots) && geometry.slots >= attach::kMinRingSlots &&
              geometry.slots <= attach::kMaxRingSlots &&
              attach::RingBytes(geometry.slots) == bytes;
  if (!fits) {
    return InvalidArgument(fmt::format("no mark ring of version {} in its memfd of {} bytes",
                                       attach::kRingVersion, bytes));
  }
  std::unique_ptr<RingReader> reader(
      new RingReader(std::move(memory).value(), geometry.slots));
  RETURN_IF_ERROR(reader->Resume());
  return reader;
}

RingReader::RingReader(SealedMemory memory, uint32_t slots)
    : memory_(std::move(memory)), slots_(slots) {}

MarkRing* RingReader::ring() const { return reinterpret_cast<MarkRing*>(memory_.base()); }

MarkSlot* RingReader::SlotAt(uint64_t position) const {
  size_t offset = attach::kRingHeaderBytes + (position & (slots_ - 1)) * sizeof(MarkSlot);
  return reinterpret_cast<MarkSlot*>(memory_.base() + offset);
}

// A ring that an earlier daemon has read: continues where that one stopped, even if it was killed
// between taking slots and publishing them. Each slot has the next position in it, to be taken or
// to be filled; slots are taken in order, so the least of them is where we are.
Status RingReader::Resume() {
  dropped_ = ring()->dropped.load(std::memory_order_relaxed);
  uint64_t least = UINT64_MAX;
  uint64_t most = 0;
  for (uint32_t i = 0; i < slots_; ++i) {
    uint64_t sequence = SlotAt(i)->sequence.load(std::memory_order_acquire);
    uint64_t position = ((sequence ^ i) & (slots_ - 1)) == 0 ? sequence : sequence - 1;
    if (((position ^ i) & (slots_ - 1)) != 0) {
      return InvalidArgument("the mark ring's slots are not in order");
    }
    least = std::min(least, position);
    most = std::max(most, position);
  }
  // Producers may be ahead by a complete ring, and by what they claimed while we looked.
  if (most - least > 2 * uint64_t{slots_}) {
    return InvalidArgument("the mark ring's slots are not of one time");
  }
  head_ = least;
  return Status::Ok();
}

void RingReader::Continue() {
  head_ = std::max(head_, ring()->head.load(std::memory_order_acquire));
  dropped_ = ring()->dropped.load(std::memory_order_relaxed);
}

uint64_t RingReader::Waiting() const {
  uint64_t waiting = ring()->tail.load(std::memory_order_relaxed) - head_;
  return std::min<uint64_t>(waiting, slots_);
}

Result<RingReader::Round> RingReader::Take(size_t max_slots, int64_t now_raw_ns,
                                           MarkScratch* scratch) {
  Round round;
  scratch->marks_.clear();
  scratch->names_.resize(MarkScratch::kSlots);
  scratch->marks_.reserve(MarkScratch::kSlots);
  max_slots = std::min(max_slots, MarkScratch::kSlots);
  uint64_t dropped = ring()->dropped.load(std::memory_order_relaxed);
  if (dropped < dropped_) return DataLoss("the mark ring counts its losses backwards");
  round.dropped = dropped - dropped_;
  dropped_ = dropped;
  for (; round.slots < max_slots; ++round.slots, ++head_) {
    MarkSlot* slot = SlotAt(head_);
    uint64_t sequence = slot->sequence.load(std::memory_order_acquire);
    if (sequence == head_) break;  // free, or being filled
    if (sequence != head_ + 1) {
      return DataLoss(fmt::format("the mark ring has sequence {} at position {}", sequence, head_));
    }
    Mark mark{Once(slot->time_ns), Once(slot->value), Once(slot->thread), MarkKind{}, {}};
    const uint16_t kind = Once(slot->kind);
    const uint16_t name_bytes = Once(slot->name_bytes);
    if (name_bytes > attach::kMarkNameBytes) {
      return DataLoss(fmt::format("a name of {} bytes in the mark ring", name_bytes));
    }
    auto& name = scratch->names_[scratch->marks_.size()];
    std::memcpy(name.data(), slot->name, name_bytes);
    slot->sequence.store(head_ + slots_, std::memory_order_release);
    if (!IsKnown(kind)) {
      ++round.bad;
      continue;
    }
    mark.kind = static_cast<MarkKind>(kind);
    if (mark.time_ns < 0 || mark.time_ns > now_raw_ns + kMaxAheadNs) {
      mark.time_ns = now_raw_ns;
      ++round.clamped;
    }
    if (HasName(mark.kind)) {
      mark.name = {name.data(), name_bytes};
      const size_t domain = mark.name.find(attach::kDomainEnd);
      MakePrintable({name.data(), name_bytes});
      if (domain != std::string_view::npos) {
        mark.domain = mark.name.substr(0, domain);
        mark.name.remove_prefix(domain + 1);
      }
    }
    scratch->marks_.push_back(mark);
  }
  ring()->head.store(head_, std::memory_order_release);
  return round;
}

}  // namespace profd
