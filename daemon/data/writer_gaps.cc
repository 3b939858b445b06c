// What is missing from one session's dump: since when, why, how much, as its manifest has it.
#include <algorithm>
#include <utility>

#include "daemon/data/dump_writer.h"

namespace profd {

// Losses whose reason is known on the writer's side; what else is dropped was too much for the queue.
void WriterSession::NoteLoss(DumpFeed& feed, LossReason reason, uint64_t records,
                             uint64_t bytes, int64_t host_ns) {
  ManifestChannel& channel = ManifestOf(feed);
  int64_t now = host_ns != 0 ? host_ns : writer_.clock_.MonotonicRawNs();
  // A loss that goes on is one gap.
  bool same = !channel.gaps.empty() && channel.gaps.back().reason == reason &&
              channel.gaps.back().from_ns == feed.last_written_ns_;
  if (same) {
    channel.gaps.back().host_ns = now;
    channel.gaps.back().lost_records += records;
  } else {
    channel.AddGap({now, records, reason, feed.last_written_ns_});
  }
  channel.AddLoss(reason, records, bytes, now);
  if (!channel.gaps.empty()) dump_->NoteLoss(channel, reason, channel.gaps.back());
  feed.noted_dropped_ += records;
  feed.noted_dropped_bytes_ += bytes;
}

void WriterSession::NoteLostBefore(DumpFeed* feed, const ManifestLoss& what) {
  writer_.Post([this, self = shared_from_this(), feed, what] {
    if (dump_ == nullptr) return;
    feed->counters_.dropped_records.fetch_add(what.records, std::memory_order_relaxed);
    feed->counters_.dropped_bytes.fetch_add(what.bytes, std::memory_order_relaxed);
    feed->noted_dropped_ += what.records;
    feed->noted_dropped_bytes_ += what.bytes;
    ManifestChannel& channel = ManifestOf(*feed);
    const ManifestGap gap{what.to_ns, what.records, what.reason, what.from_ns};
    channel.AddGap(gap);
    channel.AddLoss(what.reason, what.records, what.bytes, what.to_ns);
    channel.AddLoss(what.reason, 0, 0, what.from_ns);
    dump_->NoteLoss(channel, what.reason, gap);
  });
}

// Between the last block of the old run and the new one the driver measured nothing. Attempts that
// failed meanwhile belong to the same gap.
void WriterSession::NoteRestart(DumpFeed& feed, int64_t now, LossReason reason) {
  ManifestChannel& channel = ManifestOf(feed);
  int64_t from = feed.last_block_ns_ != 0 ? feed.last_block_ns_ : feed.options_.session_start_ns;
  if (int64_t outage = std::exchange(feed.outage_from_ns_, 0); outage != 0) from = outage;
  if (!channel.gaps.empty() && channel.gaps.back().reason == reason &&
      channel.gaps.back().from_ns == from) {
    channel.gaps.back().host_ns = now;
  } else {
    channel.AddGap({now, 0, reason, from});
  }
  dump_->NoteLoss(channel, reason, channel.gaps.back());
}

// The first of a new run is there, and with it the end of the gap: not before the driver began, which was unknown
// when it was asked to, nor after this block, however late the writer heard of the run.
void WriterSession::EndRestart(DumpFeed& feed, int64_t block_ns) {
  if (feed.epoch_ == nullptr) return;
  const int64_t start = feed.epoch_->start_ns.load(std::memory_order_relaxed);
  auto& gaps = ManifestOf(feed).gaps;
  const auto last = std::find_if(gaps.rbegin(), gaps.rend(),
                                 [](const auto& gap) {
                                   return gap.reason == LossReason::kChannelRestart ||
                                          gap.reason == LossReason::kChannelReleased;
                                 });
  // One from before the last block is an earlier one.
  if (last == gaps.rend() || last->host_ns <= feed.last_block_ns_) return;
  last->host_ns = std::max(start, std::min(last->host_ns, block_ns));
  dump_->TouchManifest();
}

// The session began in the past, and this is of the present: the flight recorder did not hold the channel.
void WriterSession::NoteNoPast(DumpFeed& feed, int64_t block_ns) {
  const bool first = feed.options_.in_past && feed.last_block_ns_ == 0;
  if (!first || block_ns - feed.options_.session_start_ns < kNsPerSecond) return;
  if (ManifestOf(feed).gaps.empty()) NoteRestart(feed, block_ns, LossReason::kNotRecorded);
}

// What was silent to the end is missing up to there.
void WriterSession::NoteOpenOutages(int64_t end_ns) {
  MutexLock lock(mutex_);
  for (const auto& feed : feeds_) {
    if (feed->outage_from_ns_ != 0 && feed->outage_from_ns_ == feed->last_block_ns_) {
      NoteRestart(*feed, end_ns, feed->released_ ? LossReason::kChannelReleased : LossReason::kChannelSilent);
    }
  }
}

void WriterSession::NoteAllLosses(int64_t host_ns) {
  MutexLock lock(mutex_);
  for (const auto& feed : feeds_) NoteLosses(*feed, host_ns);
}

// What is dropped and not noted yet is dropped for want of a block, or of room in the queue.
void WriterSession::NoteDropped(DumpFeed& feed, ManifestChannel& channel, int64_t host_ns) {
  const FeedCounters& counters = feed.counters_;
  const uint64_t bytes = counters.dropped_bytes.load(std::memory_order_acquire);
  const uint64_t records = counters.dropped_records.load(std::memory_order_acquire);
  uint64_t lost = records - feed.noted_dropped_;
  uint64_t lost_bytes = bytes - feed.noted_dropped_bytes_;
  if (lost == 0 && lost_bytes == 0) return;
  auto note = [&](LossReason reason, uint64_t n, uint64_t n_bytes) {
    if (n == 0 && n_bytes == 0) return;
    const ManifestGap gap{host_ns, n, reason, feed.last_noted_ns_};
    channel.AddGap(gap);
    channel.AddLoss(reason, n, n_bytes, host_ns);
    dump_->NoteLoss(channel, reason, gap);
  };
  // More of it may have been dropped since the sums were read: that comes with the next look.
  const uint64_t unserved = std::min(
      lost, counters.no_block_records.load(std::memory_order_relaxed) - feed.noted_no_block_);
  const uint64_t unserved_bytes = std::min(
      lost_bytes, counters.no_block_bytes.load(std::memory_order_relaxed) - feed.noted_no_block_bytes_);
  note(LossReason::kNoBuffer, unserved, unserved_bytes);
  note(LossReason::kQueueFull, lost - unserved, lost_bytes - unserved_bytes);
  feed.noted_no_block_ += unserved;
  feed.noted_no_block_bytes_ += unserved_bytes;
  feed.noted_dropped_ = records;
  feed.noted_dropped_bytes_ = bytes;
  feed.resync_gap_detector_ = true;
}

// Readings that did not take place since the last time, by their count so far; how many.
uint64_t WriterSession::NoteNotRead(LossReason reason, uint64_t count, uint64_t* noted, const DumpFeed& feed, ManifestChannel& channel,
                                    int64_t host_ns) {
  if (count <= *noted) return 0;
  const uint64_t more = count - std::exchange(*noted, count);
  const bool goes_on =
      !channel.gaps.empty() && channel.gaps.back().reason == reason && channel.gaps.back().host_ns == feed.last_noted_ns_;
  if (goes_on) {
    channel.gaps.back().host_ns = host_ns;
    channel.gaps.back().lost_records += more;
  } else {
    channel.AddGap({host_ns, more, reason, feed.last_noted_ns_});
  }
  channel.AddLoss(reason, more, 0, host_ns);
  dump_->NoteLoss(channel, reason, channel.gaps.back());
  return more;
}

// Brings the feed's numbers into the manifest; a loss since the last time becomes a located gap.
void WriterSession::NoteLosses(DumpFeed& feed, int64_t host_ns) {
  if (dump_ == nullptr) return;
  ManifestChannel& channel = ManifestOf(feed);
  NoteDropped(feed, channel, host_ns);
  writer_.missing_late_ += NoteNotRead(LossReason::kLate, feed.counters_.late_readings, &feed.noted_late_, feed, channel, host_ns);
  writer_.missing_left_out_ +=
      NoteNotRead(LossReason::kOverBudget, feed.counters_.left_out_readings, &feed.noted_left_out_, feed, channel, host_ns);
  feed.last_noted_ns_ = host_ns;
  channel.records = feed.counters_.records.load(std::memory_order_relaxed) - channel.aged.records;
  channel.bytes = feed.counters_.bytes.load(std::memory_order_relaxed) - channel.aged.bytes;
  channel.thinned = feed.thinned();
  channel.rebased = feed.rebased();
  channel.rebase_us = feed.rebase_us_;
  channel.thinned_records = feed.counters_.thinned_records.load(std::memory_order_relaxed);
  channel.readings = feed.counters_.readings.load(std::memory_order_relaxed);
  channel.channel_hz = feed.channel_hz_;
  channel.past_hz = feed.past_hz_;
  channel.past_until_ns = feed.past_until_ns_;
  channel.hz_asked = feed.options_.hz;
  bool of_channel = feed.options_.format != nullptr;
  channel.hz_effective = feed.thinned() || !of_channel ? feed.options_.hz : feed.channel_hz_;
}

}  // namespace profd
