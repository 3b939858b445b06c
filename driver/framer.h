// Cuts the byte stream of one channel into complete records or lines, and finds the next record after
// garbage. Works in place, allocates nothing, accepts any bytes.
//
// In sync, a record is taken at its word; if its values are odd, only where no record with usual ones begins
// inside of it, and if they are in no list, only in step with its neighbours. After garbage the next one must be
// confirmed by its successor; when the timestamps jump, three in a row must agree with each other. In both cases
// no place nearby may fit the old timestamps better (else the bytes are out of step, not the clock).
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "driver/abi/channels.h"

namespace profd {

struct FrameResult {
  // On return the buffer holds `good_bytes` of complete records, then `tail_bytes` that may become
  // one: the caller puts the next bytes behind the tail and hands in tail + new bytes.
  size_t good_bytes = 0;
  size_t tail_bytes = 0;  // at most Framer::kMaxTail
  uint64_t records = 0;
  uint64_t garbage_bytes = 0;   // dropped as they were no records
  uint64_t garbage_events = 0;  // runs of garbage begun
  uint64_t zeros_missing = 0;   // text: of the lines' timestamps (ZerosMissing), which are as they came
};

class Framer {
 public:
  static constexpr size_t kMaxTail = 4096;

  explicit Framer(const abi::ChannelFormat& format);

  // `buffer` = the tail of the last call, then new bytes. With `last` nothing will follow: what is
  // undecided is accepted if it can be a record, and an incomplete rest counts as garbage.
  FrameResult Frame(std::span<std::byte> buffer, bool last = false);

 private:
  enum class Verdict { kAccept, kSkip, kWait };
  struct Compactor;
  FrameResult FrameBinary(std::span<std::byte> buffer, bool last);
  FrameResult FrameText(std::span<std::byte> buffer, bool last);
  Verdict Judge(std::span<const std::byte> rest, bool last) const;
  Verdict JudgeUnlisted(std::span<const std::byte> rest, bool last) const;
  Verdict JudgeJump(std::span<const std::byte> rest, bool last) const;
  uint64_t StepOf(std::span<const std::byte> record) const;
  bool FitsNearby(std::span<const std::byte> rest, uint64_t step) const;
  bool IsLeap(std::span<const std::byte> rest) const;
  bool InARow(std::span<const std::byte> rest, size_t count, bool usual = false) const;
  bool IsUsual(std::span<const std::byte> record) const;
  bool UsualNearby(std::span<const std::byte> rest) const;
  void TakeLine(std::span<const std::byte> line, Compactor& out);
  void CountGarbage(FrameResult& result, size_t bytes);

  const abi::ChannelFormat& format_;
  uint64_t last_timestamp_ = 0;
  bool has_timestamp_ = false;
  bool in_sync_ = true;     // false inside a run of garbage
  bool skip_line_ = false;  // text: the rest of an overlong line is still to come
};

}  // namespace profd
