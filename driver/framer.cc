#include "driver/framer.h"

#include <algorithm>
#include <cstring>

#include "base/bytes.h"
#include "driver/plausible.h"

namespace profd {

static_assert(kMaxLineBytes <= Framer::kMaxTail);

namespace {

// Records in a row, with values that are in no list, which are looked through for one with listed values.
constexpr size_t kMaxUnlisted = 8;
// Records come once a second at least (driver-abi 3.2).
constexpr uint64_t kLongStepUs = 1'500'000;

bool IsText(std::string_view bytes) {
  return std::ranges::all_of(bytes, [](char c) { return c == '\t' || c == '\r' || (c >= ' ' && c < 0x7F); });
}

}  // namespace

// Moves what is kept to the front of the buffer; moves nothing as long as nothing was dropped.
struct Framer::Compactor {
  explicit Compactor(std::span<std::byte> bytes) : buffer(bytes) {}

  void Keep(size_t begin, size_t size) {
    if (begin != written) std::memmove(buffer.data() + written, buffer.data() + begin, size);
    written += size;
  }
  FrameResult Finish(size_t tail_begin) {
    result.good_bytes = written;
    result.tail_bytes = buffer.size() - tail_begin;
    Keep(tail_begin, result.tail_bytes);
    return result;
  }

  std::span<std::byte> buffer;
  size_t written = 0;
  FrameResult result;
};

Framer::Framer(const abi::ChannelFormat& format) : format_(format) {}

FrameResult Framer::Frame(std::span<std::byte> buffer, bool last) {
  return format_.framing == abi::Framing::kText ? FrameText(buffer, last)
                                                : FrameBinary(buffer, last);
}

void Framer::CountGarbage(FrameResult& result, size_t bytes) {
  if (bytes == 0) return;
  result.garbage_bytes += bytes;
  if (in_sync_) ++result.garbage_events;
  in_sync_ = false;
}

bool Framer::IsUsual(std::span<const std::byte> record) const {
  return format_.usual == nullptr || format_.usual(record.first(format_.record_size));
}

// `count` complete records, each plausible (and usual) and following the one before.
bool Framer::InARow(std::span<const std::byte> rest, size_t count, bool usual) const {
  const size_t size = format_.record_size;
  if (rest.size() < count * size) return false;
  for (size_t k = 0; k < count; ++k) {
    std::span<const std::byte> record = rest.subspan(k * size, size);
    if (!IsPlausibleRecord(format_, record) || (usual && !IsUsual(record))) return false;
    if (k == 0) continue;
    uint64_t previous = TimestampOf(format_, rest.subspan((k - 1) * size));
    if (!TimestampFollows(format_, previous, TimestampOf(format_, record))) return false;
  }
  return true;
}

// How far a record's timestamp is from the last good one.
uint64_t Framer::StepOf(std::span<const std::byte> record) const {
  uint64_t step = TimestampOf(format_, record) - last_timestamp_;
  return std::min(step, ~step + 1);
}

Framer::Verdict Framer::Judge(std::span<const std::byte> rest, bool last) const {
  const size_t size = format_.record_size;
  if (!IsPlausibleRecord(format_, rest.first(size))) return JudgeUnlisted(rest, last);
  if (!IsUsual(rest)) {
    // In sync, a record that ends with the bytes needs no successor.
    if (rest.size() < 2 * size && !last && !(in_sync_ && rest.size() == size)) return Verdict::kWait;
    if (UsualNearby(rest)) return Verdict::kSkip;
  }
  bool follows = !has_timestamp_ || TimestampFollows(format_, last_timestamp_, TimestampOf(format_, rest));
  if (!follows) return JudgeJump(rest, last);
  if (in_sync_) return IsLeap(rest) ? Verdict::kSkip : Verdict::kAccept;
  if (rest.size() >= 2 * size && !InARow(rest, 2)) return Verdict::kSkip;
  if (FitsNearby(rest, StepOf(rest))) return Verdict::kSkip;
  if (rest.size() >= 2 * size || last) return Verdict::kAccept;
  // A record that ends with the bytes, as reads normally do, needs no successor.
  return has_timestamp_ && rest.size() == size ? Verdict::kAccept : Verdict::kWait;
}

// The driver may know events and ids that are in no list. A record with one is a record where it is in step with its
// neighbours, by their timestamps: out of sync it could be any bytes.
Framer::Verdict Framer::JudgeUnlisted(std::span<const std::byte> rest, bool last) const {
  const size_t size = format_.record_size;
  if (!in_sync_ || format_.marked || format_.timestamp.width == 0) return Verdict::kSkip;
  if (format_.thinning == abi::Thinning::kEvent) return Verdict::kSkip;
  uint64_t previous = TimestampOf(format_, rest);
  if (previous > records::kMaxTimestamp) return Verdict::kSkip;
  if (has_timestamp_ && !TimestampFollows(format_, last_timestamp_, previous)) return Verdict::kSkip;
  size_t at = size;
  for (; at <= kMaxUnlisted * size && at + size <= rest.size(); at += size) {
    const uint64_t timestamp = TimestampOf(format_, rest.subspan(at));
    if (!TimestampFollows(format_, previous, timestamp)) return Verdict::kSkip;
    if (InARow(rest.subspan(at), 1, true)) return Verdict::kAccept;
    previous = timestamp;
  }
  const bool decided = last || at > kMaxUnlisted * size || (has_timestamp_ && (rest.size() == size || at > size));
  if (!decided) return Verdict::kWait;
  return FitsNearby(rest, UINT64_MAX) ? Verdict::kSkip : Verdict::kAccept;
}

// Does a record with usual values begin inside of the first one, with another behind it if that is there, and
// with a timestamp that fits better?
bool Framer::UsualNearby(std::span<const std::byte> rest) const {
  const size_t size = format_.record_size;
  const bool timed = format_.thinning != abi::Thinning::kEvent;
  if (timed && !has_timestamp_) return false;
  for (size_t shift = 1; shift < size && shift + size <= rest.size(); ++shift) {
    const std::span<const std::byte> there = rest.subspan(shift);
    if (timed && StepOf(there) >= StepOf(rest)) continue;
    if (InARow(there, there.size() < 2 * size ? 1 : 2, true)) return true;
  }
  return false;
}

// Is there a place soon after the first byte where records go on from the last good one, with a
// step smaller than `step`? Bytes out of step give timestamps that are off by powers of 256.
bool Framer::FitsNearby(std::span<const std::byte> rest, uint64_t step) const {
  const size_t size = format_.record_size;
  if (!has_timestamp_ || format_.thinning == abi::Thinning::kEvent) return false;
  for (size_t shift = 1; shift < 2 * size && shift + size <= rest.size(); ++shift) {
    if (shift == size) continue;  // the same alignment
    std::span<const std::byte> there = rest.subspan(shift);
    if (there.size() > size && there.size() < 2 * size) continue;
    if (StepOf(there) < step && InARow(there, there.size() == size ? 1 : 2, true) &&
        TimestampFollows(format_, last_timestamp_, TimestampOf(format_, there))) {
      return true;
    }
  }
  return false;
}

// Early in a run timestamps are so small that those of bytes out of step may follow, and so may all after them.
bool Framer::IsLeap(std::span<const std::byte> rest) const {
  if (format_.time != abi::TimeKind::kMicrosSinceStart || !has_timestamp_) return false;
  return StepOf(rest) > kLongStepUs && FitsNearby(rest, std::min(kLongStepUs, last_timestamp_ / 2));
}

Framer::Verdict Framer::JudgeJump(std::span<const std::byte> rest, bool last) const {
  const size_t size = format_.record_size;
  if (FitsNearby(rest, UINT64_MAX)) return Verdict::kSkip;
  if (rest.size() < 4 * size && !last) return Verdict::kWait;
  return InARow(rest, last ? std::min<size_t>(3, rest.size() / size) : 3) ? Verdict::kAccept
                                                                          : Verdict::kSkip;
}

FrameResult Framer::FrameBinary(std::span<std::byte> buffer, bool last) {
  const size_t size = format_.record_size;
  Compactor out(buffer);
  size_t at = 0;
  size_t run = 0;  // records from here to `at` are good and not yet kept
  while (buffer.size() - at >= size) {
    Verdict verdict = Judge(buffer.subspan(at), last);
    if (verdict == Verdict::kWait) break;
    if (verdict == Verdict::kAccept) {
      last_timestamp_ = TimestampOf(format_, buffer.subspan(at));
      has_timestamp_ = true;
      in_sync_ = true;
      ++out.result.records;
      at += size;
      continue;
    }
    if (run != at) out.Keep(run, at - run);
    CountGarbage(out.result, 1);
    run = ++at;
  }
  if (run != at) out.Keep(run, at - run);
  if (last) {
    CountGarbage(out.result, buffer.size() - at);
    at = buffer.size();
  }
  return out.Finish(at);
}

void Framer::TakeLine(std::span<const std::byte> line, Compactor& out) {
  std::string_view text = AsText(line.first(line.size() - 1));
  auto begin = static_cast<size_t>(line.data() - out.buffer.data());
  if (skip_line_) {
    skip_line_ = false;
    CountGarbage(out.result, line.size());
  } else if ((!format_.opaque && text.find_first_not_of(" \t\r") == std::string_view::npos) ||
             (text.size() <= kMaxLineBytes && !format_.header_token.empty() &&
              text.find(format_.header_token) != std::string_view::npos)) {
    // A heading, or blank: dropped.
  } else if (text.size() > kMaxLineBytes || !IsPlausibleLine(format_, text)) {
    if (format_.opaque) return out.Keep(begin, line.size());
    CountGarbage(out.result, line.size());
  } else {
    in_sync_ = true;
    ++out.result.records;
    if (!format_.opaque) out.result.zeros_missing += ZerosMissing(text).count;
    out.Keep(begin, line.size());
  }
}

FrameResult Framer::FrameText(std::span<std::byte> buffer, bool last) {
  Compactor out(buffer);
  LineShape shape;
  size_t at = 0;
  while (at < buffer.size()) {
    const std::string_view rest = AsText(buffer).substr(at);
    if (!skip_line_ && ScanLine(rest, &shape) &&
        IsPlainRecord(format_, rest.substr(0, shape.size), shape)) {
      in_sync_ = true;
      ++out.result.records;
      out.Keep(at, shape.size + 1);
      at += shape.size + 1;
      continue;
    }
    const void* newline = std::memchr(buffer.data() + at, '\n', buffer.size() - at);
    if (newline == nullptr) break;
    size_t end = static_cast<size_t>(static_cast<const std::byte*>(newline) - buffer.data()) + 1;
    TakeLine(buffer.subspan(at, end - at), out);
    at = end;
  }
  const size_t left = buffer.size() - at;
  // Text without a line end is an incomplete line. Bytes that are not text have no lines, and are kept.
  const bool torn = last && IsText(AsText(buffer).substr(at));
  if (format_.opaque && !torn && (last || left > kMaxLineBytes)) {
    out.Keep(at, left);
    at = buffer.size();
  } else if (last || skip_line_ || left > kMaxLineBytes) {
    skip_line_ = !last;
    CountGarbage(out.result, left);
    at = buffer.size();
  }
  return out.Finish(at);
}

}  // namespace profd
