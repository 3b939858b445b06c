// The shared-memory ring through which a training process hands what its in-process profiler saw
// (kernels, communication, API calls, markers, memory) to the daemon. A ring of bytes with one
// producer (the process's collecting thread) and one consumer (the daemon): frames of records, many
// records to a frame. The producer never waits: what does not fit into a full ring is dropped, counted
// by type in the header, and reported in-band by a Loss record as soon as there is space.
//
// Lives in a memfd that the process makes when a session first collects, seals against shrinking and
// growing, and passes to the daemon. Everything in it is untrusted for the daemon.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <string_view>
#include <type_traits>

namespace profd::attach {

inline constexpr uint64_t kActivityMagic = 0x3156544341465250ULL;  // "PRFACTV1"
inline constexpr uint32_t kActivityVersion = 1;
// Bytes of the frames' part, a power of two. The least holds several of the longest frames.
inline constexpr uint64_t kMinActivityBytes = uint64_t{1} << 20;
inline constexpr uint64_t kMaxActivityBytes = uint64_t{256} << 20;
inline constexpr uint64_t kDefaultActivityBytes = uint64_t{8} << 20;
// With its header. Also what the daemon needs to take one.
inline constexpr size_t kMaxFrameBytes = size_t{64} << 10;

// Names: numbered from 1 in the order of arrival, for the life of the ring. 0 = none. Those beyond the limits have one
// number together, of this text.
inline constexpr std::string_view kTooManyNames = "(too many names)";
inline constexpr uint32_t kMaxActivityNames = 65535;  // with that one
inline constexpr size_t kMaxActivityNameBytes = 4096;  // longer ones are cut at a UTF-8 boundary, and end with this:
inline constexpr std::string_view kCutMark = "\xE2\x80\xA6";  // an ellipsis
inline constexpr size_t kMaxActivityNamesBytes = size_t{8} << 20;  // of all names together

enum class ActivityType : uint16_t {
  kPad = 0,  // up to the end of the ring; only its length counts
  kNames = 1,
  kKernel = 2,
  kCommunication = 3,
  kApi = 4,
  kMarker = 5,
  kExternalCorrelation = 6,
  kMemory = 7,
  kClock = 8,
  kLoss = 9,
};
inline constexpr size_t kActivityTypes = 10;

// Frames lie at multiples of 8 bytes and never wrap. `count` records of `type` follow the header;
// the records' start is an offset from base_ns. Names have no fixed size, see NameHead. A pad may be
// as short as 8 bytes: base_ns is not there then.
struct FrameHead {
  uint32_t length;  // with this header; a multiple of 8
  uint16_t type;    // ActivityType
  uint16_t count;
  int64_t base_ns;  // CLOCK_MONOTONIC_RAW
};
static_assert(sizeof(FrameHead) == 16);
inline constexpr size_t kFrameHeadBytes = sizeof(FrameHead);
inline constexpr size_t kPadHeadBytes = 8;

// `bytes` of text follow, and up to 7 of nothing, so that the next one is aligned.
struct NameHead {
  uint32_t id;  // 1..kMaxActivityNames
  uint16_t bytes;
  uint16_t reserved;
};

// Ids of devices as the process numbers them are "logical", those of the node "physical".
inline constexpr uint16_t kNoDevice = 0xFFFF;
inline constexpr uint32_t kNoStream = 0xFFFFFFFF;

// Strings are ids of names: name, type, communicator, algorithm, domain.
struct KernelRecord {
  uint32_t start;  // from base_ns
  uint32_t duration;
  uint32_t duration_high;
  uint32_t stream;
  uint64_t correlation;  // that of the API call that launched it; 0 = none
  uint32_t name;
  uint32_t thread;  // that launched it; 0 = not known
  uint16_t device;
  uint16_t logical_device;
  uint16_t type;  // a name, e.g. KERNEL_AICORE
  uint16_t reserved;
};
struct CommunicationRecord {
  uint32_t start;
  uint32_t duration;
  uint32_t duration_high;
  uint32_t stream;
  uint64_t correlation;
  uint64_t count;  // elements
  uint32_t name;
  uint32_t communicator;
  uint32_t algorithm;
  uint16_t device;
  uint16_t logical_device;
  uint16_t data_type;  // HCCL's number; 0xFFFF = not known
  uint16_t reserved;
  float bandwidth;  // as the vendor's library gives it; 0 = not known
};
enum class ApiLevel : uint16_t { kUnknown = 0, kAcl = 1, kNode = 2, kRuntime = 3 };
struct ApiRecord {
  uint32_t start;
  uint32_t duration;
  uint32_t duration_high;
  uint32_t thread;
  uint64_t correlation;
  uint32_t name;
  uint16_t level;  // ApiLevel
  uint16_t reserved;
};
// What a marker on a stream leaves on the host and on the device has the same id.
enum class MarkerSource : uint16_t { kHost = 0, kDevice = 1 };
struct MarkerRecord {
  uint32_t start;
  uint16_t flag;    // the vendor's: 1 instant, 2 start, 4 end; times 8 with a device's half
  uint16_t source;  // MarkerSource
  uint64_t id;
  uint32_t name;
  uint32_t domain;
  uint32_t thread;  // of the host's half
  uint32_t stream;  // of the device's half
  uint16_t device;
  uint16_t logical_device;
  uint32_t reserved;
};
struct ExternalCorrelationRecord {
  uint64_t correlation;
  uint64_t external_id;
  uint32_t external_kind;
  uint32_t reserved;
};
enum class MemoryOperation : uint8_t { kAllocate = 1, kRelease = 2, kSet = 3, kCopy = 4 };
struct MemoryRecord {
  uint32_t start;
  uint32_t duration;
  uint32_t duration_high;
  uint32_t stream;
  uint64_t correlation;
  uint64_t bytes;
  uint64_t address;  // of an allocation; what a set fills with
  uint8_t operation;
  uint8_t is_async;
  uint16_t detail;  // the vendor's kind of memory or of copy
  uint16_t device;
  uint16_t logical_device;
};
template <class Record>
constexpr uint64_t DurationOf(const Record& record) {
  return uint64_t{record.duration_high} << 32 | record.duration;
}
// What the records after it were converted with.
struct ClockRecord {
  int64_t real_ns;          // CLOCK_REALTIME and CLOCK_MONOTONIC_RAW at the same time
  int64_t raw_ns;
  int64_t first_vendor_ns;  // the first time in what follows, before it was converted
};
enum class LossReason : uint16_t {
  kRingFull = 1,      // records dropped because the ring was full
  kNoBuffer = 2,      // bytes of the vendor's records that found no buffer
  kUnknownKind = 3,   // bytes of a buffer behind a record of unknown kind
  kCutBuffer = 4,     // bytes at the end of a buffer that are not a complete record
};
struct LossRecord {
  uint16_t type;    // ActivityType; kPad = of any
  uint16_t reason;  // LossReason
  uint32_t reserved;
  uint64_t count;   // records, or bytes: see the reason
  int64_t from_ns;  // CLOCK_MONOTONIC_RAW
  int64_t to_ns;
};

static_assert(sizeof(NameHead) == 8);
static_assert(sizeof(KernelRecord) == 40);
static_assert(sizeof(CommunicationRecord) == 56);
static_assert(sizeof(ApiRecord) == 32);
static_assert(sizeof(MarkerRecord) == 40);
static_assert(sizeof(ExternalCorrelationRecord) == 24);
static_assert(sizeof(MemoryRecord) == 48);
static_assert(sizeof(ClockRecord) == 24);
static_assert(sizeof(LossRecord) == 32);

// Which type a record's struct is of.
template <class Record>
inline constexpr ActivityType kTypeOf = ActivityType::kPad;
template <>
inline constexpr ActivityType kTypeOf<KernelRecord> = ActivityType::kKernel;
template <>
inline constexpr ActivityType kTypeOf<CommunicationRecord> = ActivityType::kCommunication;
template <>
inline constexpr ActivityType kTypeOf<ApiRecord> = ActivityType::kApi;
template <>
inline constexpr ActivityType kTypeOf<MarkerRecord> = ActivityType::kMarker;
template <>
inline constexpr ActivityType kTypeOf<ExternalCorrelationRecord> =
    ActivityType::kExternalCorrelation;
template <>
inline constexpr ActivityType kTypeOf<MemoryRecord> = ActivityType::kMemory;
template <>
inline constexpr ActivityType kTypeOf<ClockRecord> = ActivityType::kClock;
template <>
inline constexpr ActivityType kTypeOf<LossRecord> = ActivityType::kLoss;

// Bytes of a record of this type; 0 = unknown, or of no fixed size.
constexpr size_t ActivityRecordBytes(uint16_t type) {
  constexpr size_t kBytes[kActivityTypes] = {0,
                                             0,
                                             sizeof(KernelRecord),
                                             sizeof(CommunicationRecord),
                                             sizeof(ApiRecord),
                                             sizeof(MarkerRecord),
                                             sizeof(ExternalCorrelationRecord),
                                             sizeof(MemoryRecord),
                                             sizeof(ClockRecord),
                                             sizeof(LossRecord)};
  return type < kActivityTypes ? kBytes[type] : 0;
}

constexpr size_t AlignedUp8(size_t bytes) { return (bytes + 7) / 8 * 8; }

// Positions count the bytes since the ring was made; where a position lies is its rest by `bytes`.
struct ActivityRing {
  uint64_t magic;
  uint32_t version;
  uint32_t reserved0;
  uint64_t bytes;  // kMinActivityBytes..kMaxActivityBytes
  // CLOCK_REALTIME and CLOCK_MONOTONIC_RAW at the same time, when the ring was made.
  int64_t made_real_ns;
  int64_t made_raw_ns;
  alignas(64) std::atomic<uint64_t> head;  // of the producer: frames before it are complete
  std::atomic<uint64_t> records;           // published; names and losses left out
  std::atomic<uint64_t> dropped[kActivityTypes];  // records dropped
  std::atomic<uint64_t> lost_bytes;               // of the vendor's buffers, never seen as records
  std::atomic<uint64_t> clamped;        // records that ended before they began: duration 0
  std::atomic<uint64_t> names_refused;  // records whose name was one too many
  std::atomic<uint64_t> cost_ns;        // CPU time that collecting has taken in the process
  alignas(64) std::atomic<uint64_t> tail;  // of the consumer: what lies before it may be overwritten
  // A consumer that has just come adds 1: it knows no names, and the producer sends all again.
  std::atomic<uint64_t> generation;
  alignas(64) uint64_t reserved1[8];
};
static_assert(sizeof(ActivityRing) == 320);
static_assert(std::is_standard_layout_v<ActivityRing>);
static_assert(std::atomic<uint64_t>::is_always_lock_free);

// Frames follow the header at the next 4096 bytes.
inline constexpr size_t kActivityHeaderBytes = 4096;
constexpr size_t ActivityRingBytes(uint64_t bytes) {
  return kActivityHeaderBytes + static_cast<size_t>(bytes);
}

}  // namespace profd::attach
