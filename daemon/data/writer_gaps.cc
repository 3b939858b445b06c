// What is missing from one session's dump, and how the manifest has its feeds.
#include <algorithm>
#include <tuple>

#include "daemon/data/dump_writer.h"

namespace profd {

ManifestLoss WriterSession::WriteErrorsOf(const ManifestChannel& channel) {
  const auto found = std::ranges::find(channel.dropped, LossReason::kWriteError, &ManifestLoss::reason);
  return found == channel.dropped.end() ? ManifestLoss() : *found;
}

void WriterSession::FindGaps(DumpFeed& feed, std::span<const std::byte> bytes, int64_t host_ns) {
  if (feed.gap_detector_ == nullptr) return;
  ResyncGaps(feed, host_ns);
  feed.missing_ = 0;
  feed.gap_detector_->Feed(bytes);
  NoteMissing(feed, host_ns);
}

// What waited for one more record is from before the loss: the driver's.
void WriterSession::ResyncGaps(DumpFeed& feed, int64_t host_ns) {
  if (!feed.losses_.TakeResync()) return;
  FinishGaps(feed, host_ns);
  feed.gap_detector_->Resync();
  if (feed.sum_gaps_ != nullptr) feed.sum_gaps_->Resync();
}

// Counts that are added up lack what the driver dropped between two records of the dump, none of which is missing.
void WriterSession::FindGapsOfSums(DumpFeed& feed, std::span<const std::byte> bytes, int64_t host_ns) {
  if (feed.sum_gaps_ == nullptr) return;
  ResyncGaps(feed, host_ns);
  feed.missing_ = 0;
  feed.sum_gaps_->Feed(bytes);
  NoteMissingOfSums(feed, host_ns);
}

void WriterSession::NoteMissingOfSums(DumpFeed& feed, int64_t host_ns) {
  if (feed.missing_ == 0) return;
  feed.losses_.Lose(PlaceOf(feed), LossReason::kDriver, 0, 0, host_ns);
}

// What waited for one more record to be a gap or not.
void WriterSession::FinishGaps(DumpFeed& feed, int64_t host_ns) {
  if (feed.gap_detector_ == nullptr) return;
  feed.missing_ = 0;
  feed.gap_detector_->Finish();
  NoteMissing(feed, host_ns);
  if (feed.sum_gaps_ == nullptr) return;
  feed.missing_ = 0;
  feed.sum_gaps_->Finish();
  NoteMissingOfSums(feed, host_ns);
}

// The next run of the channel has a filter and gaps of its own.
void WriterSession::EndRun(DumpFeed& feed) {
  if (dump_ != nullptr) FinishGaps(feed, feed.losses_.LastNs());
  feed.filter_.reset();
}

void WriterSession::NoteMissing(DumpFeed& feed, int64_t host_ns) {
  if (feed.missing_ == 0) return;
  // Lines have no size of their own: the mean of those written.
  uint64_t record_bytes = feed.options_.format->record_size;
  const uint64_t written = feed.counters_.records.load(std::memory_order_relaxed);
  if (record_bytes == 0 && written > 0) {
    record_bytes = feed.counters_.bytes.load(std::memory_order_relaxed) / written;
  }
  writer_.missing_driver_.fetch_add(feed.missing_, std::memory_order_relaxed);
  feed.losses_.Lose(PlaceOf(feed), LossReason::kDriver, feed.missing_, feed.missing_ * record_bytes, host_ns);
}

void WriterSession::UpdateManifest(int64_t host_ns) {
  if (dump_ == nullptr) return;
  MutexLock lock(mutex_);
  for (const auto& feed : feeds_) {
    const LossLedger::Place place = PlaceOf(*feed);
    const LossLedger::NotRead not_read = feed->losses_.Settle(place, host_ns);
    writer_.missing_late_ += not_read.late;
    writer_.missing_left_out_ += not_read.over_budget;
    const FeedCounters& counters = feed->counters_;
    ManifestChannel& channel = place.channel;
    const auto rates = [&channel] {
      return std::tuple(channel.hz_asked, channel.hz_effective, channel.channel_hz, channel.thinned, channel.rebase_us, channel.past_hz);
    };
    const auto before = rates();
    channel.records = counters.records.load(std::memory_order_relaxed) - channel.aged.records;
    channel.bytes = counters.bytes.load(std::memory_order_relaxed) - channel.aged.bytes;
    channel.thinned = feed->thinned();
    channel.rebased = feed->rebased();
    channel.rebase_us = feed->rebase_us_;
    channel.thinned_records = counters.thinned_records.load(std::memory_order_relaxed);
    channel.readings = counters.readings.load(std::memory_order_relaxed);
    channel.channel_hz = feed->channel_hz_;
    channel.past_hz = feed->past_hz_;
    channel.past_until_ns = feed->past_until_ns_;
    channel.hz_asked = feed->options_.hz;
    const bool of_channel = feed->options_.format != nullptr;
    channel.hz_effective = feed->thinned() || !of_channel ? feed->options_.hz : feed->channel_hz_;
    // Recovery after a crash has no other source. They are known with the first block, and seldom change.
    if (rates() != before) dump_->WriteManifestSoon();
  }
}

// What had been taken, and could not be written in the end: the dump has put it into the manifest itself. `before` has
// the write errors of each feed as they were.
void WriterSession::CountGivenUp(const std::vector<ManifestLoss>& before) {
  MutexLock lock(mutex_);
  for (size_t i = 0; i < feeds_.size() && i < before.size(); ++i) {
    const ManifestLoss after = WriteErrorsOf(ManifestOf(*feeds_[i]));
    const uint64_t records = after.records - before[i].records;
    const uint64_t bytes = after.bytes - before[i].bytes;
    FeedCounters& counters = feeds_[i]->counters_;
    feeds_[i]->losses_.CountNoted(LossReason::kWriteError, records, bytes);
    writer_.dropped_error_.fetch_add(bytes, std::memory_order_relaxed);
    counters.records.fetch_sub(records, std::memory_order_relaxed);
    counters.bytes.fetch_sub(bytes, std::memory_order_relaxed);
  }
}

ManifestChannel& WriterSession::ManifestOf(const DumpFeed& feed) {
  Manifest& manifest = dump_->manifest();
  const FeedOptions& wish = feed.options_;
  auto is_of_feed = [&wish](const ManifestChannel& channel) {
    return channel.device == wish.device && channel.channel == wish.channel &&
           channel.collector == wish.collector;
  };
  // Asked for every feed at every flush; channels seldom move.
  std::vector<ManifestChannel>& channels = manifest.channels;
  if (feed.manifest_at_ < channels.size() && is_of_feed(channels[feed.manifest_at_])) {
    return channels[feed.manifest_at_];
  }
  const auto found = std::ranges::find_if(channels, is_of_feed);
  feed.manifest_at_ = static_cast<size_t>(found - channels.begin());
  if (found != channels.end()) return *found;
  ManifestChannel& channel = manifest.channels.emplace_back();
  channel.collector = wish.collector;
  channel.device = wish.device;
  channel.channel = wish.channel;
  channel.state = "running";  // until the session has its outcome: a recovery must know that it has data
  if (wish.format != nullptr && wish.file.empty()) {
    channel.file = wish.format->file;
  } else {
    channel.file = wish.file;
  }
  return channel;
}

}  // namespace profd
