// The past, as the flight recorder keeps it and dumps ask for it: where blocks go as they come, and how
// they are brought back. The recorder implements these; the router, the writer and sessions use them.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "base/clock.h"
#include "driver/block.h"
#include "driver/device_clock.h"
#include "dump/loss_reason.h"
#include "proto/attach/collecting.h"

namespace profd {

struct ActivityBatch;
struct ChannelEpoch;
struct TrainingProcess;

// What a block holds was sampled up to this long before it was read (poll_interval_ms is at most 100): a
// dump of the past begins so much before its first block.
inline constexpr int64_t kPastLeadNs = 150 * kNsPerMs;

// One kept block, or, without bytes, what was lost at this point. `bytes` stay valid until the source
// is asked again.
struct ReplayBlock {
  uint32_t route = 0;  // as the source numbers what it holds
  BlockInfo info;
  std::span<const std::byte> bytes;
  std::shared_ptr<ChannelEpoch> epoch;  // null: host text records (HostFileBuffer' layout)
  BlockLoss loss;
  LossReason lost_for = LossReason::kNoBuffer;
  bool after_loss = false;  // blocks between the one before and this have left the ring meanwhile
};

// Kept blocks in the order of arrival. Used on the writer's thread.
class BlockSource {
 public:
  virtual ~BlockSource() = default;
  virtual bool Next(ReplayBlock* out) = 0;
  // Once Next has returned false: what followed the last block had left the ring by then.
  virtual bool lost_end() const = 0;
};

// Sees every block of one channel on its way to the dumps; called under the route's lock, for one
// block at a time. Must not block.
class BlockTap {
 public:
  virtual ~BlockTap() = default;
  // Blocks whose info has `epoch->number` belong to this run of the channel.
  virtual void OnEpoch(std::shared_ptr<ChannelEpoch> epoch) = 0;
  virtual void OnBlock(const BlockRef& block) = 0;
  virtual void OnLoss(const BlockLoss& loss) = 0;
  // What is held of the channel right now and was read after `from_ns`; null if there is nothing.
  // Blocks that come later are not in it.
  virtual std::shared_ptr<BlockSource> Since(int64_t from_ns) = 0;
};

// When records from inside a process are missing that no count has (CLOCK_MONOTONIC_RAW).
struct MissingTime {
  LossReason reason = LossReason::kUnknown;
  std::optional<attach::CollectKind> kind;  // null: records of any kind
  int64_t from_ns = 0;
  int64_t to_ns = 0;
};

// Kept records from inside training processes, in the order of arrival. One thread at a time.
class ActivitySource {
 public:
  virtual ~ActivitySource() = default;
  // Valid until the next call, its names as long as they are kept; null at the end.
  virtual const ActivityBatch* Next() = 0;
  // Before it, not everything is held.
  virtual int64_t HeldFrom() const = 0;
  // Complete at the end only.
  virtual std::vector<MissingTime> Missing() const = 0;
};

// The recorder, as a session that begins in the past sees it. Control strand.
class RecorderHistory {
 public:
  virtual ~RecorderHistory() = default;
  // The earliest instant of which everything that is recorded is still held (CLOCK_MONOTONIC_RAW).
  virtual int64_t Reach() = 0;
  virtual bool Records(uint16_t collector) const = 0;
  // The clocks as they were at `host_ns`, from pairs read before and after it; false if the
  // recorder has none of the device. kHostDevice: the host's counter only.
  virtual bool ClockAt(int device, int64_t host_ns, ClockPair* out) const = 0;
  // Text records of a host collector since `from_ns`; null if it is not recorded.
  virtual std::shared_ptr<BlockSource> HostSince(uint16_t collector, int64_t from_ns) = 0;
  // What processes did since `from_ns`, of those that `wanted` accepts; null if it is not recorded.
  virtual std::unique_ptr<ActivitySource> ActivitySince(
      int64_t from_ns, const std::function<bool(const TrainingProcess&)>& wanted) = 0;
  virtual bool RecordsActivity() const = 0;
  // How often the recorder reads a host collector; 0 = it does not.
  virtual double HostHz(uint16_t collector) const = 0;
};

}  // namespace profd
