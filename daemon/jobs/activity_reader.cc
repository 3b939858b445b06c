#include "daemon/jobs/activity_reader.h"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <bit>
#include <cstring>
#include <utility>

#include "base/clock.h"
#include "daemon/jobs/ring_reader.h"

namespace profd {
namespace {

using attach::ActivityRing;
using attach::ActivityType;
using attach::FrameHead;

// How far ahead of us a frame may begin before it is taken for nonsense.
constexpr int64_t kMaxAheadNs = kNsPerSecond;

uint64_t Load(const std::atomic<uint64_t>& shared) {
  return shared.load(std::memory_order_relaxed);
}

// Without clocks, which are about the records and none of them.
uint64_t DroppedOf(const ActivityRing& ring) {
  uint64_t dropped = 0;
  for (size_t type = 0; type < attach::kActivityTypes; ++type) {
    if (static_cast<ActivityType>(type) != ActivityType::kClock) dropped += Load(ring.dropped[type]);
  }
  return dropped;
}

// How much more than the last time.
uint64_t Grown(uint64_t count, uint64_t* last) {
  const uint64_t before = std::exchange(*last, count);
  return count - std::min(count, before);
}

bool AreNames(std::initializer_list<uint32_t> ids) {
  return std::max(ids) <= attach::kMaxActivityNames;
}
bool IsWithin(uint16_t value, uint16_t least, uint16_t most) {
  return value >= least && value <= most;
}

bool IsSound(const attach::KernelRecord& r) { return AreNames({r.name, r.type}); }
bool IsSound(const attach::CommunicationRecord& r) {
  return AreNames({r.name, r.communicator, r.algorithm});
}
bool IsSound(const attach::ApiRecord& r) { return AreNames({r.name}) && IsWithin(r.level, 0, 3); }
bool IsSound(const attach::MarkerRecord& r) {
  return AreNames({r.name, r.domain}) && IsWithin(r.source, 0, 1);
}
bool IsSound(const attach::ExternalCorrelationRecord&) { return true; }
bool IsSound(const attach::MemoryRecord& r) { return IsWithin(r.operation, 1, 4); }
bool IsSound(const attach::ClockRecord&) { return true; }
bool IsSound(const attach::LossRecord& r) {
  return r.type < attach::kActivityTypes && IsWithin(r.reason, 1, 4);
}

// The other reasons are a full ring, which loses records, and no buffer.
uint64_t UnreadableBytes(const ActivityFrame& frame) {
  uint64_t bytes = 0;
  for (const attach::LossRecord& loss : frame.As<attach::LossRecord>()) {
    const auto reason = static_cast<attach::LossReason>(loss.reason);
    if (reason == attach::LossReason::kUnknownKind || reason == attach::LossReason::kCutBuffer) bytes += loss.count;
  }
  return bytes;
}

template <class Record>
bool AllSound(const ActivityFrame& frame) {
  const auto records = frame.As<Record>();
  return std::ranges::all_of(records, [](const Record& r) { return IsSound(r); });
}

bool RecordsAreSound(const ActivityFrame& frame) {
  switch (frame.type) {
    case ActivityType::kKernel:
      return AllSound<attach::KernelRecord>(frame);
    case ActivityType::kCommunication:
      return AllSound<attach::CommunicationRecord>(frame);
    case ActivityType::kApi:
      return AllSound<attach::ApiRecord>(frame);
    case ActivityType::kMarker:
      return AllSound<attach::MarkerRecord>(frame);
    case ActivityType::kExternalCorrelation:
      return AllSound<attach::ExternalCorrelationRecord>(frame);
    case ActivityType::kMemory:
      return AllSound<attach::MemoryRecord>(frame);
    case ActivityType::kClock:
      return AllSound<attach::ClockRecord>(frame);
    case ActivityType::kLoss:
      return AllSound<attach::LossRecord>(frame);
    default:
      return false;
  }
}

}  // namespace

Status ActivityNameTable::Learn(uint32_t id, std::string_view name) {
  // After a daemon that was killed, what lies in the ring begins anywhere; then all come again.
  if (id > names_.size()) names_.resize(id);
  std::string& known = names_[id - 1];
  if (known == name) return Status::Ok();
  if (!known.empty()) return DataLoss(fmt::format("name {} of the activity ring changes", id));
  if (bytes_ + name.size() > attach::kMaxActivityNamesBytes) {
    return DataLoss("the activity ring has too many names");
  }
  bytes_ += name.size();
  known = name;
  return Status::Ok();
}

Result<std::unique_ptr<ActivityReader>> ActivityReader::Map(UniqueFd&& memfd) {
  Result<SealedMemory> memory =
      SealedMemory::Map(memfd, "the activity ring",
                        {attach::ActivityRingBytes(attach::kMinActivityBytes),
                         attach::ActivityRingBytes(attach::kMaxActivityBytes),
                         attach::kActivityHeaderBytes});
  if (!memory.ok()) return memory.status();
  struct Geometry {
    uint64_t magic;
    uint32_t version;
    uint32_t reserved;
    uint64_t bytes;
  } geometry{};
  std::memcpy(&geometry, memory->base(), sizeof geometry);
  bool fits = geometry.magic == attach::kActivityMagic &&
              geometry.version == attach::kActivityVersion && std::has_single_bit(geometry.bytes) &&
              geometry.bytes >= attach::kMinActivityBytes &&
              geometry.bytes <= attach::kMaxActivityBytes &&
              attach::ActivityRingBytes(geometry.bytes) == memory->bytes();
  if (!fits) {
    return InvalidArgument(fmt::format("no activity ring of version {} in its memfd of {} bytes",
                                       attach::kActivityVersion, memory->bytes()));
  }
  std::unique_ptr<ActivityReader> reader(
      new ActivityReader(std::move(memory).value(), geometry.bytes));
  RETURN_IF_ERROR(reader->Resume());
  reader->memfd_ = std::move(memfd);
  return reader;
}

ActivityReader::ActivityReader(SealedMemory header, uint64_t bytes)
    : header_(std::move(header)), bytes_(bytes) {}

ActivityRing* ActivityReader::ring() const {
  return reinterpret_cast<ActivityRing*>(header_.base());
}

// Continues at the position an earlier daemon stored; one that was killed may have taken more, which is read
// again then.
Status ActivityReader::Resume() {
  dropped_ = DroppedOf(*ring());
  lost_bytes_ = Load(ring()->lost_bytes);
  clamped_ = Load(ring()->clamped);
  names_refused_ = Load(ring()->names_refused);
  tail_ = Load(ring()->tail);
  const uint64_t head = ring()->head.load(std::memory_order_acquire);
  if (tail_ % 8 != 0 || head - tail_ > bytes_) {
    return InvalidArgument(
        fmt::format("the activity ring has its tail at {} and its head at {}", tail_, head));
  }
  ring()->generation.fetch_add(1, std::memory_order_release);
  return Status::Ok();
}

uint64_t ActivityReader::Waiting() const {
  return std::min(Load(ring()->head) - tail_, bytes_);
}

Status ActivityReader::CountLosses(Round* round) {
  const uint64_t dropped = DroppedOf(*ring());
  const uint64_t lost_bytes = Load(ring()->lost_bytes);
  if (dropped < dropped_ || lost_bytes < lost_bytes_) {
    return DataLoss("the activity ring counts its losses backwards");
  }
  round->dropped = dropped - std::exchange(dropped_, dropped);
  round->lost_bytes = lost_bytes - std::exchange(lost_bytes_, lost_bytes);
  // By the process's own word, and shown of it alone. A collector that starts again counts from 0.
  round->cost_ns = Grown(Load(ring()->cost_ns), &cost_ns_);
  round->clamped += Grown(Load(ring()->clamped), &clamped_);
  round->names_refused = Grown(Load(ring()->names_refused), &names_refused_);
  return Status::Ok();
}

Result<size_t> ActivityReader::ParseFrame(std::span<std::byte> copied, uint64_t there,
                                          ActivityFrame* frame) const {
  FrameHead head{};
  *frame = {};
  if (copied.size() < attach::kPadHeadBytes) return size_t{0};
  std::memcpy(&head, copied.data(), attach::kPadHeadBytes);
  const auto malformed = [this, &head](const char* why) {
    return DataLoss(fmt::format("the activity ring has a frame of type {} and {} bytes at {}: {}",
                                head.type, head.length, tail_, why));
  };
  if (head.length % 8 != 0 || head.length < attach::kPadHeadBytes) return malformed("its length");
  if (head.length > there) return malformed("longer than what is there");
  if (head.type == static_cast<uint16_t>(ActivityType::kPad)) {
    const uint64_t to_end = bytes_ - (tail_ & (bytes_ - 1));
    if (head.length != to_end) return malformed("a pad that ends too early");
    return size_t{head.length};
  }
  if (head.length < attach::kFrameHeadBytes || head.length > attach::kMaxFrameBytes) {
    return malformed("its length");
  }
  if (head.length > copied.size()) return size_t{0};
  std::memcpy(&head, copied.data(), sizeof head);
  const size_t used = head.length - attach::kFrameHeadBytes;
  const bool names = head.type == static_cast<uint16_t>(ActivityType::kNames);
  const size_t each = attach::ActivityRecordBytes(head.type);
  if (!names && each == 0) return malformed("an unknown type");
  if (head.count == 0 || (!names && head.count * each != used)) return malformed("its count");
  frame->type = static_cast<ActivityType>(head.type);
  frame->count = head.count;
  frame->base_ns = head.base_ns;
  frame->records = copied.subspan(attach::kFrameHeadBytes, used);
  return size_t{head.length};
}

// Makes them printable where they lie, too: what is handed on is what is known.
Status ActivityReader::LearnNames(std::span<std::byte> records, uint16_t count) {
  for (uint16_t i = 0; i < count; ++i) {
    attach::NameHead head{};
    if (records.size() < sizeof head) return DataLoss("names of the activity ring are cut off");
    std::memcpy(&head, records.data(), sizeof head);
    const size_t bytes = sizeof head + attach::AlignedUp8(head.bytes);
    if (head.id == 0 || head.id > attach::kMaxActivityNames || head.bytes == 0 ||
        head.bytes > attach::kMaxActivityNameBytes || bytes > records.size()) {
      return DataLoss(fmt::format("name {} of the activity ring has {} bytes", head.id, head.bytes));
    }
    auto* text = reinterpret_cast<char*>(records.data() + sizeof head);
    MakePrintable({text, head.bytes});
    RETURN_IF_ERROR(names_.Learn(head.id, {text, head.bytes}));
    records = records.subspan(bytes);
  }
  return records.empty() ? Status::Ok() : DataLoss("names of the activity ring leave a rest");
}

Result<size_t> ActivityReader::TakePiece(uint64_t there, int64_t now_raw_ns,
                                         std::span<std::byte> buffer, Round* round,
                                         std::vector<ActivityFrame>* frames) {
  const uint64_t position = tail_ & (bytes_ - 1);
  there = std::min(there, bytes_ - position);
  std::span<std::byte> copied = buffer.first(std::min<uint64_t>(buffer.size(), there));
  const auto from = static_cast<off_t>(attach::kActivityHeaderBytes + position);
  const ssize_t got = ::pread(memfd_.get(), copied.data(), copied.size(), from);
  if (got != static_cast<ssize_t>(copied.size())) return DataLoss("the activity ring cannot be read");
  size_t taken = 0;
  while (taken < there) {
    ActivityFrame frame;
    Result<size_t> length = ParseFrame(copied, there - taken, &frame);
    if (!length.ok()) return length.status();
    if (*length == 0) break;
    if (frame.type == ActivityType::kNames) {
      RETURN_IF_ERROR(
          LearnNames(copied.subspan(attach::kFrameHeadBytes, frame.records.size()), frame.count));
    } else if (frame.type != ActivityType::kPad) {
      if (!RecordsAreSound(frame)) {
        return DataLoss(fmt::format("a record of type {} in the activity ring makes no sense",
                                    static_cast<int>(frame.type)));
      }
      if (frame.base_ns < 0 || frame.base_ns > now_raw_ns + kMaxAheadNs) {
        frame.base_ns = now_raw_ns;
        round->clamped += frame.count;
      }
      round->records += frame.count;
      round->unreadable_bytes += UnreadableBytes(frame);
    }
    if (frame.type != ActivityType::kPad) frames->push_back(frame);
    copied = copied.subspan(std::min(copied.size(), *length));
    taken += *length;
    tail_ += *length;
  }
  return taken;
}

Result<ActivityReader::Round> ActivityReader::Take(size_t max_bytes, int64_t now_raw_ns,
                                                   ActivityScratch* scratch) {
  Round round;
  scratch->frames_.clear();
  scratch->memory_.resize(ActivityScratch::kBytes / sizeof(uint64_t));
  const std::span<std::byte> memory = std::as_writable_bytes(std::span(scratch->memory_));
  std::span<std::byte> buffer = memory.first(std::min(max_bytes / 8 * 8, memory.size()));
  RETURN_IF_ERROR(CountLosses(&round));
  const uint64_t waiting = ring()->head.load(std::memory_order_acquire) - tail_;
  if (waiting > bytes_ || waiting % 8 != 0) {
    return DataLoss(fmt::format("the activity ring is {} bytes ahead", waiting));
  }
  while (round.bytes < waiting && !buffer.empty()) {
    Result<size_t> taken =
        TakePiece(waiting - round.bytes, now_raw_ns, buffer, &round, &scratch->frames_);
    if (!taken.ok()) return taken.status();
    if (*taken == 0) break;
    round.bytes += *taken;
    buffer = buffer.subspan(std::min(buffer.size(), *taken));
  }
  ring()->tail.store(tail_, std::memory_order_release);
  return round;
}

}  // namespace profd
