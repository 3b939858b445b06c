// The daemon's end of one process's activity ring (proto/attach/activity_ring.h). Everything in the
// ring can change under our eyes: the geometry is copied once, a frame is copied before it is looked at,
// and what does not make sense ends the ring. Only the header is mapped: frames are read from the memfd,
// since a page that the process took out of it would be charged to who touches it. Lives on the control
// strand; Map may run anywhere.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/fd.h"
#include "base/status.h"
#include "daemon/jobs/sealed_memory.h"
#include "proto/attach/activity_ring.h"

namespace profd {

// A frame as taken out of a ring: copied, and validated as far as a record goes by itself. Its names
// are printable UTF-8.
struct ActivityFrame {
  attach::ActivityType type = attach::ActivityType::kPad;
  uint16_t count = 0;
  int64_t base_ns = 0;                 // CLOCK_MONOTONIC_RAW
  std::span<const std::byte> records;  // as they lie in the ring

  template <class Record>
  std::span<const Record> As() const {
    if (type != attach::kTypeOf<Record>) return {};
    return {reinterpret_cast<const Record*>(records.data()), count};
  }
};

// What a ring's ids mean. A name may come after records that have its id.
class ActivityNameTable {
 public:
  std::string_view Find(uint32_t id) const {
    return id == 0 || id > names_.size() ? std::string_view() : names_[id - 1];
  }
  size_t memory_bytes() const { return names_.capacity() * sizeof(std::string) + bytes_; }
  // An id of 1..kMaxActivityNames. kDataLoss: it has another text already, or there is too much text.
  Status Learn(uint32_t id, std::string_view name);

 private:
  std::vector<std::string> names_;
  size_t bytes_ = 0;
};

// Buffers for what one round takes; shared by all rings of a strand.
class ActivityScratch {
 public:
  static constexpr size_t kBytes = size_t{1} << 20;
  std::span<const ActivityFrame> frames() const { return frames_; }

 private:
  friend class ActivityReader;
  std::vector<uint64_t> memory_;  // aligned as the frames are
  std::vector<ActivityFrame> frames_;
};

class ActivityReader {
 public:
  // kInvalidArgument: no memfd of the right size and seals, or no ring in it; `memfd` is as it was then.
  static Result<std::unique_ptr<ActivityReader>> Map(UniqueFd&& memfd);

  struct Round {
    size_t bytes = 0;    // taken from the ring
    size_t records = 0;  // in the scratch's frames, names left out
    // More than at the last round, by the process's count.
    uint64_t dropped = 0;     // records dropped because the ring was full
    uint64_t lost_bytes = 0;  // of the vendor's buffers
    // In frames of this round, by the process's word: of records of unknown kind, or incomplete ones.
    uint64_t unreadable_bytes = 0;
    // Records of frames from the future, which begin now; by the process's count, records that ended before they began,
    // whose duration is 0.
    uint64_t clamped = 0;
    uint64_t cost_ns = 0;     // CPU time of collecting in the process
    uint64_t names_refused = 0;  // names that were too many in the process
  };
  // Takes complete frames into `*scratch`, up to `max_bytes` (kMaxFrameBytes..ActivityScratch::kBytes).
  // kDataLoss: the ring is broken and must not be read again.
  Result<Round> Take(size_t max_bytes, int64_t now_raw_ns, ActivityScratch* scratch);

  const ActivityNameTable& names() const { return names_; }
  uint64_t capacity() const { return bytes_; }
  // Published and not taken; by the process's count, at most capacity().
  uint64_t Waiting() const;

 private:
  ActivityReader(SealedMemory header, uint64_t bytes);
  Status Resume();
  attach::ActivityRing* ring() const;
  Status CountLosses(Round* round);
  // Copies frames that lie in one piece and takes those that are complete in `buffer`, of `there` bytes that
  // the ring has for us. Bytes taken.
  Result<size_t> TakePiece(uint64_t there, int64_t now_raw_ns, std::span<std::byte> buffer,
                           Round* round, std::vector<ActivityFrame>* frames);
  // The frame at the front of `copied`, of the `there` bytes up to the head or the ring's end. Its
  // length, 0 if it is not complete in `copied`; no type: a pad.
  Result<size_t> ParseFrame(std::span<std::byte> copied, uint64_t there, ActivityFrame* frame) const;
  Status LearnNames(std::span<std::byte> records, uint16_t count);

  const SealedMemory header_;
  UniqueFd memfd_;
  const uint64_t bytes_;
  uint64_t tail_ = 0;
  uint64_t dropped_ = 0;
  uint64_t lost_bytes_ = 0;
  uint64_t cost_ns_ = 0;
  uint64_t clamped_ = 0;
  uint64_t names_refused_ = 0;
  ActivityNameTable names_;
};

}  // namespace profd
