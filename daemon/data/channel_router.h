// Where blocks go: read once from the driver, handed to the dumps of the sessions that asked and to
// the channel's decoder, whose samples feed the metric store and live streams.
//
// OnBlock runs on the pump's thread or on a draining thread, for one channel one at a time. A
// route's mutex is contended only while a session joins or leaves that channel.
#pragma once

#include <array>
#include <cstdint>
#include <functional>
#include <memory>
#include <string_view>
#include <vector>

#include "base/mutex.h"
#include "collectors/collector.h"
#include "daemon/collect/collector_stats.h"
#include "daemon/data/dump_writer.h"
#include "daemon/data/last_changes.h"
#include "daemon/data/replay.h"
#include "daemon/data/stream_hub.h"
#include "daemon/metrics/metric_store.h"
#include "driver/channel_pump.h"

namespace profd {

struct FeedTarget {
  std::shared_ptr<WriterSession> session;
  DumpFeed* feed = nullptr;
};

class ChannelRouter final : public BlockSink {
 public:
  ChannelRouter(MetricStore& store, StreamHub& hub, CollectorStatsTable& stats, DeviceWatcher* watcher_or_null)
      : store_(store), hub_(hub), stats_(stats), watcher_(watcher_or_null) {}

  // Before the pump starts: declares a route. Devices and channels are bounded by the ABI.
  void Declare(uint32_t device, uint32_t channel, CollectorIndex collector);

  // A run of the channel begins: its decoder and how its timestamps are to be read.
  void Begin(uint32_t device, uint32_t channel, std::unique_ptr<ChannelDecoder> decoder,
             const TimeBase& time);
  // The driver has reported when the run really began.
  void SetStart(uint32_t device, uint32_t channel, int64_t start_ns);
  // New correlation of the device's clocks.
  void SetClock(uint32_t device, const TimeBase& clock);
  // The run is over: the decoder goes, and with it its series.
  void End(uint32_t device, uint32_t channel);

  // Before the pump starts: `tap` sees all blocks of the channel; it outlives the router's use.
  void SetTap(uint32_t device, uint32_t channel, BlockTap* tap);
  // A run of the channel is about to be started. What still arrives of an earlier one, whose stop or start
  // had been given up, is the recorder's only: its sessions have counted it as missing.
  void BeginEpoch(uint32_t device, uint32_t channel, std::shared_ptr<ChannelEpoch> epoch);

  // `since_ns` not 0: the feed first gets what the channel's tap holds since then, without a gap or a
  // duplicate between that and the blocks to come. 0: of a channel that reports changes alone it gets the last ones.
  void Attach(uint32_t device, uint32_t channel, FeedTarget target, int64_t since_ns = 0);
  // No block reaches the feed after this.
  void Detach(uint32_t device, uint32_t channel, const DumpFeed* feed);

  struct Progress {
    uint64_t blocks = 0;
    int64_t last_block_ns = 0;  // CLOCK_MONOTONIC_RAW; 0 = none since Begin
  };
  Progress ProgressOf(uint32_t device, uint32_t channel) const;
  // Every channel that runs now and has delivered.
  void VisitRunning(
      const std::function<void(CollectorIndex, uint32_t device, int64_t last_block_ns)>& visit) const;

  void OnBlock(BlockRef block) override;
  void OnLoss(const BlockLoss& loss) override;
  void OnDeviceStuck(uint32_t device, std::string_view why) override;
  void OnDeviceRecovered(uint32_t device) override;
  // A live stream, or a tap: what it takes must not be older than kPastLeadNs when it arrives.
  bool Watched() const override { return tapped_ || hub_.subscribers() > 0; }

 private:
  static constexpr size_t kDevices = 64;
  static constexpr size_t kChannels = 161;
  struct Route {
    Route(CollectorIndex c, bool event_driven) : collector(c), changes_only(event_driven) {}
    const CollectorIndex collector;
    const bool changes_only;
    mutable Mutex mutex;
    uint32_t epoch GUARDED_BY(mutex) = 0;  // the present run's number
    std::unique_ptr<ChannelDecoder> decoder GUARDED_BY(mutex);
    TimeBase time GUARDED_BY(mutex);
    std::vector<FeedTarget> targets GUARDED_BY(mutex);
    BlockTap* tap GUARDED_BY(mutex) = nullptr;
    LastChanges changes GUARDED_BY(mutex);  // of the present run
    SampleBatch batch GUARDED_BY(mutex);
    Progress progress GUARDED_BY(mutex);
  };
  Route* RouteOf(uint32_t device, uint32_t channel) const;

  MetricStore& store_;
  StreamHub& hub_;
  CollectorStatsTable& stats_;
  DeviceWatcher* const watcher_;  // may be null
  bool tapped_ = false;  // set before the pump runs
  // Filled by Declare before the pump runs, immutable afterwards.
  std::array<std::array<std::unique_ptr<Route>, kChannels>, kDevices> routes_;
};

}  // namespace profd
