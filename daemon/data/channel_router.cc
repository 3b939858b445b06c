#include "daemon/data/channel_router.h"

#include <algorithm>
#include <utility>

namespace profd {

void ChannelRouter::Declare(uint32_t device, uint32_t channel, CollectorIndex collector) {
  if (device >= kDevices || channel >= kChannels) return;
  routes_[device][channel] = std::make_unique<Route>(collector, LastChanges::Are(channel));
}

ChannelRouter::Route* ChannelRouter::RouteOf(uint32_t device, uint32_t channel) const {
  if (device >= kDevices || channel >= kChannels) return nullptr;
  return routes_[device][channel].get();
}

void ChannelRouter::Begin(uint32_t device, uint32_t channel,
                          std::unique_ptr<ChannelDecoder> decoder, const TimeBase& time) {
  Route* route = RouteOf(device, channel);
  if (route == nullptr) return;
  MutexLock lock(route->mutex);
  if (route->decoder == nullptr) stats_[route->collector].running.fetch_add(1, std::memory_order_relaxed);
  route->decoder = std::move(decoder);
  route->time = time;
  route->progress = {};
}

void ChannelRouter::SetStart(uint32_t device, uint32_t channel, int64_t start_ns) {
  Route* route = RouteOf(device, channel);
  if (route == nullptr) return;
  MutexLock lock(route->mutex);
  route->time.channel_start_ns = start_ns;
}

void ChannelRouter::SetClock(uint32_t device, const TimeBase& clock) {
  for (uint32_t channel = 0; channel < kChannels; ++channel) {
    Route* route = RouteOf(device, channel);
    if (route == nullptr) continue;
    MutexLock lock(route->mutex);
    int64_t start = route->time.channel_start_ns;
    route->time = clock;
    route->time.channel_start_ns = start;
  }
}

void ChannelRouter::End(uint32_t device, uint32_t channel) {
  Route* route = RouteOf(device, channel);
  if (route == nullptr) return;
  MutexLock lock(route->mutex);
  if (route->decoder != nullptr) stats_[route->collector].running.fetch_sub(1, std::memory_order_relaxed);
  route->decoder.reset();
}

void ChannelRouter::SetTap(uint32_t device, uint32_t channel, BlockTap* tap) {
  Route* route = RouteOf(device, channel);
  if (route == nullptr) return;
  tapped_ = true;
  MutexLock lock(route->mutex);
  route->tap = tap;
}

void ChannelRouter::BeginEpoch(uint32_t device, uint32_t channel,
                               std::shared_ptr<ChannelEpoch> epoch) {
  Route* route = RouteOf(device, channel);
  if (route == nullptr) return;
  MutexLock lock(route->mutex);
  route->epoch = epoch->number;
  route->changes.Clear();
  if (route->tap != nullptr) route->tap->OnEpoch(std::move(epoch));
}

void ChannelRouter::Attach(uint32_t device, uint32_t channel, FeedTarget target,
                           int64_t since_ns) {
  Route* route = RouteOf(device, channel);
  if (route == nullptr) return;
  MutexLock lock(route->mutex);
  std::shared_ptr<BlockSource> past;
  if (since_ns != 0 && route->tap != nullptr) past = route->tap->Since(since_ns);
  if (since_ns == 0) past = route->changes.Source(target.feed->options().session_start_ns);
  if (past != nullptr) target.session->Replay(std::move(past), target.feed);
  route->targets.push_back(std::move(target));
}

void ChannelRouter::Detach(uint32_t device, uint32_t channel, const DumpFeed* feed) {
  Route* route = RouteOf(device, channel);
  if (route == nullptr) return;
  MutexLock lock(route->mutex);
  std::erase_if(route->targets, [feed](const FeedTarget& t) { return t.feed == feed; });
}

ChannelRouter::Progress ChannelRouter::ProgressOf(uint32_t device, uint32_t channel) const {
  Route* route = RouteOf(device, channel);
  if (route == nullptr) return {};
  MutexLock lock(route->mutex);
  return route->progress;
}

void ChannelRouter::VisitRunning(
    const std::function<void(CollectorIndex, uint32_t device, int64_t last_block_ns)>& visit) const {
  for (uint32_t device = 0; device < kDevices; ++device) {
    for (uint32_t channel = 0; channel < kChannels; ++channel) {
      Route* route = RouteOf(device, channel);
      if (route == nullptr) continue;
      int64_t last = 0;
      {
        MutexLock lock(route->mutex);
        if (route->decoder != nullptr) last = route->progress.last_block_ns;
      }
      if (last > 0) visit(route->collector, device, last);
    }
  }
}

void ChannelRouter::OnBlock(BlockRef block) {
  const BlockInfo& info = block.info();
  Route* route = RouteOf(info.device, info.channel);
  if (route == nullptr) return;
  MutexLock lock(route->mutex);
  if (route->tap != nullptr) route->tap->OnBlock(block);
  if (info.epoch != route->epoch) {
    stats_[route->collector].stale_records.fetch_add(info.records, std::memory_order_relaxed);
    return;
  }
  ++route->progress.blocks;
  route->progress.last_block_ns = info.host_ns;
  if (route->changes_only) route->changes.Take(block.bytes());
  for (const FeedTarget& target : route->targets) target.session->Push(target.feed, block);
  if (route->decoder == nullptr) return;
  uint64_t records = route->decoder->records();
  uint64_t bad = route->decoder->bad_records();
  route->batch.Clear();
  route->decoder->Decode(block.bytes(), route->time, route->batch);
  CollectorStats& stats = stats_[route->collector];
  stats.readings.fetch_add(1, std::memory_order_relaxed);
  stats.records.fetch_add(route->decoder->records() - records, std::memory_order_relaxed);
  stats.bad_records.fetch_add(route->decoder->bad_records() - bad, std::memory_order_relaxed);
  store_.Write(route->batch.samples(), SampleSource::kChannel);
  hub_.Publish(route->collector, route->batch.samples());
}

void ChannelRouter::OnLoss(const BlockLoss& loss) {
  Route* route = RouteOf(loss.device, loss.channel);
  if (route == nullptr) return;
  MutexLock lock(route->mutex);
  if (route->tap != nullptr) route->tap->OnLoss(loss);
  if (loss.epoch != route->epoch) return;
  for (const FeedTarget& target : route->targets) {
    target.feed->CountLoss(LossReason::kNoBuffer, loss.records, loss.bytes);
  }
}

void ChannelRouter::OnDeviceStuck(uint32_t device, std::string_view why) {
  if (watcher_ != nullptr) watcher_->OnDeviceStuck(device, why);
}

void ChannelRouter::OnDeviceRecovered(uint32_t device) {
  if (watcher_ != nullptr) watcher_->OnDeviceRecovered(device);
}

}  // namespace profd
