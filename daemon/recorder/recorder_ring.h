// What the flight recorder holds: the blocks of all recorded channels and collectors, complete and as they
// came, in one circular arena that is mapped once. Two limits hold at every instant over all of them
// together: bytes (headers and padding included) and age; the oldest block leaves first, whosever it
// is, so that what is held ends at one instant for all.
//
// Blocks are copied instead of kept by reference: a channel at 10 Hz read every 50 ms yields some 200
// bytes at a time, which would pin a buffer of a size class (at least twice that) of the pool that
// sessions need; in the arena they take their own size and 64 bytes, and the pool is never short
// because of us.
//
// The blocks of one route are chained, so that a session that joins one channel walks only that.
// Thread-safe; nothing is allocated after AddRoute but a run's epoch and readers.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <utility>
#include <vector>

#include "base/mutex.h"
#include "base/status.h"
#include "daemon/data/last_changes.h"
#include "daemon/data/replay.h"

namespace profd {

class RecorderRing : public std::enable_shared_from_this<RecorderRing> {
 public:
  using RouteId = uint32_t;

  struct Options {
    size_t max_bytes = 64u << 20;  // at least kMinBytes; whole pages of it are used
    int64_t max_age_ns = 0;
  };
  static constexpr size_t kMinBytes = 1u << 20;

  static Result<std::shared_ptr<RecorderRing>> Create(const Options& options, int64_t now_ns);
  ~RecorderRing();
  RecorderRing(const RecorderRing&) = delete;
  RecorderRing& operator=(const RecorderRing&) = delete;

  // Before anything is appended. `of_channel`: its blocks belong to epochs. `changes_only`: of a channel that reports
  // changes alone, whose last ones are kept when their blocks leave.
  RouteId AddRoute(bool of_channel, bool changes_only = false);
  void BeginEpoch(RouteId route, std::shared_ptr<ChannelEpoch> epoch);

  // `info.host_ns` is when the bytes were read, and counts as now.
  void Append(RouteId route, const BlockInfo& info, std::span<const std::byte> bytes);
  // Keeps in its place among the blocks that something was lost there.
  void AppendLoss(RouteId route, const BlockLoss& loss, LossReason reason = LossReason::kNoBuffer);
  // Lets go what is too old at `now_ns`.
  void Expire(int64_t now_ns);

  struct Stats {
    size_t bytes = 0;
    size_t max_bytes = 0;
    uint64_t blocks = 0;
    int64_t complete_from_ns = 0;  // all that was read after this is held
    int64_t oldest_ns = 0;         // of the oldest block; 0 = empty
    uint64_t appended = 0;
    uint64_t expired = 0;        // left because of their age
    uint64_t evicted_early = 0;  // left because of the bytes, before they were too old
    uint64_t dropped = 0;        // never taken: larger than half the arena, or of no known run
  };
  Stats stats() const;
  struct RouteStats {
    size_t bytes = 0;
    uint64_t blocks = 0;
    int64_t oldest_ns = 0;  // 0 = none
  };
  RouteStats StatsOf(RouteId route) const;

  // What is held now of one route, or of those with `wanted[route]`, and was read after `from_ns`; before it the last
  // changes until then.
  std::shared_ptr<BlockSource> Read(RouteId route, int64_t from_ns);
  std::shared_ptr<BlockSource> Read(std::vector<bool> wanted, int64_t from_ns);

 private:
  friend class RingSource;
  static constexpr uint64_t kNone = UINT64_MAX;
  static constexpr uint32_t kPad = UINT32_MAX;
  static constexpr size_t kAlign = 16;

  // In front of every block in the arena, alone for a loss; host byte order, never leaves the process.
  struct Entry {
    uint64_t next = kNone;  // position of the route's next block
    int64_t host_ns = 0;
    uint64_t seq = 0;
    uint64_t lost_records = 0;  // of a loss
    uint64_t lost_bytes = 0;
    uint32_t size = 0;  // of all of it, a multiple of kAlign
    uint32_t used = 0;  // bytes of the block; 0: a loss
    RouteId route = kPad;
    uint32_t epoch = 0;
    uint32_t records = 0;         // of a loss its LossReason
    uint32_t device_channel = 0;  // device << 16 | channel
  };
  static_assert(sizeof(Entry) == 64);

  struct Route {
    bool of_channel = false;
    bool changes_only = false;
    LastChanges evicted;  // of blocks that have left
    uint64_t first = kNone;  // positions
    uint64_t last = kNone;
    size_t bytes = 0;
    uint64_t blocks = 0;
    std::vector<std::shared_ptr<ChannelEpoch>> epochs;  // of blocks that are held, and the present one
  };

  // Where a reader is. Positions count bytes since the beginning and never wrap.
  struct Cursor {
    uint64_t next = 0;
    uint64_t end = 0;  // what was appended later is not read
    int64_t from_ns = 0;
    bool one_route = false;
    RouteId route = 0;
    std::vector<bool> wanted = {};
    bool lost = false;  // set when blocks left before they were read
  };
  struct EpochKey {
    RouteId route;
    uint32_t number;
    std::shared_ptr<ChannelEpoch> epoch;
  };

  RecorderRing(std::byte* arena, size_t capacity, const Options& options, int64_t now_ns);
  Entry Load(uint64_t position) const;
  void Store(uint64_t position, const Entry& entry);
  // The entry at `position`, or the first behind padding there; false at the tail.
  bool SkipPadding(uint64_t* position, Entry* entry) const REQUIRES(mutex_);
  // Of the block of the entry there.
  std::span<const std::byte> BytesAt(uint64_t position, const Entry& entry) const;
  std::shared_ptr<BlockSource> ChangesBefore(RouteId route, int64_t from_ns) const REQUIRES(mutex_);
  void DropOldest(bool early) REQUIRES(mutex_);
  void ExpireLocked(int64_t now_ns) REQUIRES(mutex_);
  void Put(const Entry& entry, std::span<const std::byte> bytes) REQUIRES(mutex_);
  std::shared_ptr<ChannelEpoch> EpochOf(const Route& route, uint32_t number) const REQUIRES(mutex_);
  // Copies entries into `*out` (cleared), up to about kBatchBytes; false at the end.
  bool ReadBatch(Cursor* cursor, std::vector<std::byte>* out, std::vector<EpochKey>* epochs);

  std::byte* const arena_;
  const size_t capacity_;
  const Options options_;
  mutable Mutex mutex_;
  uint64_t head_ GUARDED_BY(mutex_) = 0;
  uint64_t tail_ GUARDED_BY(mutex_) = 0;
  // Where the readers given out so far end; nothing before it is written again.
  uint64_t promised_ GUARDED_BY(mutex_) = 0;
  std::vector<Route> routes_ GUARDED_BY(mutex_);
  Stats stats_ GUARDED_BY(mutex_);  // but for bytes and oldest_ns
};

// One channel's blocks on their way into the ring.
class RingTap final : public BlockTap {
 public:
  RingTap(std::shared_ptr<RecorderRing> ring, RecorderRing::RouteId route)
      : ring_(std::move(ring)), route_(route) {}
  void OnEpoch(std::shared_ptr<ChannelEpoch> epoch) override;
  void OnBlock(const BlockRef& block) override;
  void OnLoss(const BlockLoss& loss) override;
  std::shared_ptr<BlockSource> Since(int64_t from_ns) override;

 private:
  bool Takes(uint32_t epoch);
  bool TakesNow();

  const std::shared_ptr<RecorderRing> ring_;
  const RecorderRing::RouteId route_;
  std::shared_ptr<ChannelEpoch> epoch_;
  bool begun_ = false;              // epoch_, in the ring
  uint32_t left_out_ = UINT32_MAX;  // number of the last run that was for sessions only
};

}  // namespace profd
