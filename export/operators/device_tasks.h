// What one device ran, and the flips of `ts_track.data` (operator-data a.4, b.2, b.3): start and end of each task, in its
// batch. From `stars_soc.data`, with each FFTS+ context in it, and `ffts_profile.data` on chips with STARS; from
// `hwts.data` and `aicore.data` on chips 1 to 4. Times are the device's counter.
#pragma once

#include <array>
#include <cstdint>
#include <map>
#include <set>
#include <span>
#include <tuple>
#include <vector>

#include "export/large.h"
#include "export/operators/pmu.h"
#include "export/operators/records.h"

namespace profd::exporting::operators {

inline constexpr size_t kStarsRecordBytes = 64;
inline constexpr size_t kStarsRecordBytesV6 = 32;
inline constexpr size_t kHwtsRecordBytes = 64;
inline constexpr size_t kTsTrackRecordBytes = 40;
inline constexpr size_t kProfileRecordBytes = 128;
inline constexpr size_t kCacheRecordBytes = 72;

struct DeviceTask {
  uint64_t start = 0;
  uint64_t end = 0;
  uint32_t context = kNoContext;
  uint16_t stream = 0;
  uint16_t task = 0;
  uint16_t batch = 0;
  uint16_t type = 0;  // SQE type, of a context its sub-task type; kUnknownSqe, kSqeV6 and more
};

// What one task did in the second level of cache.
struct CacheRecord {
  uint16_t stream = 0;
  uint16_t task = 0;
  std::array<uint64_t, 8> counts = {};  // in the order of the configured events
};

// Counters of a task or context, or of one block of it.
struct PmuRecord {
  uint64_t end = 0;
  uint32_t counts[1 + kPmuCounters] = {};  // cycles and counters, as PmuCountsTable packs them
  uint32_t context = kNoContext;
  uint16_t stream = 0;
  uint16_t task = 0;
  uint16_t batch = 0;
  uint8_t sub_type = 0;
  bool vector_core : 1 = false;
  bool wide : 1 = false;  // counts[0] is an index of the table
};

// Counters of many records: those with 64 bits, which few tasks have, are apart.
class PmuCountsTable {
 public:
  void Pack(const PmuCounts& counts, PmuRecord* into);
  PmuCounts Of(const PmuRecord& record) const;
  // What another has, behind its own; `records` are of that one.
  void Append(const PmuCountsTable& other, std::span<PmuRecord> records);

 private:
  std::vector<PmuCounts> wide_;
};

// The numbers of a stream's flips, in the order of time.
class FlipNumbers {
 public:
  void Add(uint16_t number) {
    if (number == kStreamDestroyed) {
      ended_ = true;
      return;
    }
    // Those of another stream of that number, behind the end of this one, begin anew.
    increasing_ = increasing_ && !ended_ && (all_.empty() || number > all_.back());
    all_.push_back(number);
  }
  // Whether each flip has a number of its own.
  bool increasing() const { return increasing_; }
  // None where they do not.
  std::span<const uint16_t> all() const { return increasing_ ? all_ : std::span<const uint16_t>(); }

 private:
  std::vector<uint16_t> all_;
  bool increasing_ = true;
  bool ended_ = false;
};

class DeviceTasks {
 public:
  // `wide_streams`: as the host's records say (HostData::wide_streams). `v6`: chips 15 and 16. Their tasks have a number
  // of 32 bits that no other has: `task` and, as the upper half, `stream`; which stream ran them is not recorded.
  explicit DeviceTasks(bool wide_streams, bool v6 = false) : wide_streams_(wide_streams), v6_(v6) {}

  size_t StarsRecordBytes() const { return v6_ ? kStarsRecordBytesV6 : kStarsRecordBytes; }
  // Memory for the next file, of so many bytes.
  void ExpectStars(uint64_t bytes) { tasks.reserve(tasks.size() + bytes / StarsRecordBytes() / 2); }
  void ExpectProfile(uint64_t bytes) { pmu.reserve(pmu.size() + bytes / kProfileRecordBytes); }
  void FeedStars(std::span<const std::byte> records);
  void FeedProfile(std::span<const std::byte> records);
  void FeedHwts(std::span<const std::byte> records);
  void FeedAicore(std::span<const std::byte> records);
  void FeedTsTrack(std::span<const std::byte> records);
  void FeedCache(std::span<const std::byte> records);
  // After the last file: batches.
  void Finish();
  // Behind Finish: which counters are of which task. Model::Join does it where it was not done.
  void MatchCounters();

  Large<DeviceTask> tasks;
  Large<PmuRecord> pmu;  // after MatchCounters by stream, batch, task, context and end
  Large<PmuRecord> block_pmu;  // the same
  Large<int32_t> pmu_of;  // after it, by task: the index of its counters, -1: none; empty where counters have no times
  PmuCountsTable pmu_counts;  // of both
  bool pmu_has_times = true;  // else the counters of an id are in the order of its executions
  std::vector<CacheRecord> cache;  // as recorded
  std::map<uint16_t, FlipNumbers> flip_numbers;  // by stream; after Finish
  uint64_t records = 0;
  uint64_t bad_records = 0;
  uint64_t unpaired = 0;  // starts without an end, ends without a start
  uint64_t stray_counters = 0;  // of no task here; counted by MatchCounters where counters have times

 private:
  using Key = std::tuple<uint16_t, uint16_t, uint32_t>;  // stream, task and context
  // A start or end whose other half is not simply the record of its key before or behind it.
  struct Loose {
    Key key;
    uint64_t time = 0;
    bool is_end = false;
    uint16_t type = 0;
  };
  struct Flip {
    uint64_t time = 0;
    uint16_t task = 0;
    uint16_t number = 0;
  };
  void TakeStars(const RecordView& record);
  // One end of `ids`.
  void Take(const DeviceTask& ids, uint64_t time, bool is_end);
  void Loosen(const Key& key, uint64_t time, bool is_end, uint16_t type);
  void PairLoose();
  void PairKey(std::span<const Loose> of_key, const std::vector<Flip>* flips);

  bool wide_streams_;
  bool v6_;
  std::map<Key, DeviceTask> open_;  // started
  // Keys of which a record was lost or is not in the order of time; what they have is paired at the end.
  std::set<Key> odd_;
  std::vector<Loose> loose_;
  std::map<uint16_t, std::vector<Flip>> flips_;  // by stream
};

}  // namespace profd::exporting::operators
