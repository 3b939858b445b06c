#include "daemon/data/loss_ledger.h"

#include <algorithm>
#include <utility>

#include "base/clock.h"

namespace profd {
namespace {

// A loss that continues is one gap: `continues` is true for the last one where that has the same reason.
template <class Continues>
void AddToGaps(ManifestChannel& channel, const ManifestGap& gap, Continues continues) {
  if (channel.gaps.empty() || channel.gaps.back().reason != gap.reason || !continues(channel.gaps.back())) return channel.AddGap(gap);
  ManifestGap& last = channel.gaps.back();
  last.host_ns = gap.host_ns;
  last.lost_records += gap.lost_records;
}

}  // namespace

void LossLedger::Count(LossReason reason, uint64_t records, uint64_t bytes) {
  Entry& entry = EntryOf(reason);
  entry.records.fetch_add(records, std::memory_order_relaxed);
  entry.bytes.fetch_add(bytes, std::memory_order_release);  // a thread that reads them reads the records, too
}

LossLedger::Amount LossLedger::Total() const {
  Amount total;
  for (size_t i = 0; i < entries_.size(); ++i) {
    if (IsNotRead(static_cast<LossReason>(i))) continue;
    total.records += entries_[i].records.load(std::memory_order_relaxed);
    total.bytes += entries_[i].bytes.load(std::memory_order_relaxed);
  }
  return total;
}

void LossLedger::CountNoted(LossReason reason, uint64_t records, uint64_t bytes) {
  Count(reason, records, bytes);
  Amount& noted = EntryOf(reason).noted;
  noted.records += records;
  noted.bytes += bytes;
}

void LossLedger::Lose(Place at, LossReason reason, uint64_t records, uint64_t bytes, int64_t host_ns) {
  CountNoted(reason, records, bytes);
  ManifestChannel& channel = at.channel;
  AddToGaps(channel, {host_ns, records, reason, last_written_ns_}, [this](const ManifestGap& last) { return last.from_ns == last_written_ns_; });
  channel.AddLoss(reason, records, bytes, host_ns);
  if (!channel.gaps.empty()) at.dump.NoteLoss(channel, reason, channel.gaps.back());
  // What the driver left out was found by the timestamps, which stay comparable.
  if (reason != LossReason::kDriver) resync_ = true;
}

void LossLedger::LoseBetween(Place at, const ManifestLoss& loss) {
  CountNoted(loss.reason, loss.records, loss.bytes);
  const ManifestGap gap{loss.to_ns, loss.records, loss.reason, loss.from_ns};
  at.channel.AddGap(gap);
  at.channel.AddLoss(loss.reason, loss.records, loss.bytes, loss.to_ns);
  at.channel.AddLoss(loss.reason, 0, 0, loss.from_ns);
  at.dump.NoteLoss(at.channel, loss.reason, gap);
}

bool LossLedger::TakeResync() { return std::exchange(resync_, false); }

LossLedger::NotRead LossLedger::Settle(Place at, int64_t host_ns) {
  SettleDropped(at, LossReason::kNoBuffer, host_ns);
  SettleDropped(at, LossReason::kQueueFull, host_ns);
  NotRead not_read;
  not_read.late = SettleNotRead(at, LossReason::kLate, host_ns);
  not_read.over_budget = SettleNotRead(at, LossReason::kOverBudget, host_ns);
  last_settled_ns_ = host_ns;
  return not_read;
}

void LossLedger::SettleDropped(Place at, LossReason reason, int64_t host_ns) {
  Entry& entry = EntryOf(reason);
  Amount now;
  now.bytes = entry.bytes.load(std::memory_order_acquire);
  now.records = entry.records.load(std::memory_order_relaxed);
  const Amount more{now.records - entry.noted.records, now.bytes - entry.noted.bytes};
  if (more.records == 0 && more.bytes == 0) return;
  at.channel.AddLoss(reason, more.records, more.bytes, host_ns);
  // Bytes alone, of a feed that counts records: those were counted the last time, and have their gap.
  const bool is_known = more.records == 0 && entry.noted.records > 0;
  entry.noted = now;
  if (is_known) return;
  const ManifestGap gap{host_ns, more.records, reason, last_settled_ns_};
  at.channel.AddGap(gap);
  at.dump.NoteLoss(at.channel, reason, gap);
}

uint64_t LossLedger::SettleNotRead(Place at, LossReason reason, int64_t host_ns) {
  Entry& entry = EntryOf(reason);
  const uint64_t count = entry.records.load(std::memory_order_relaxed);
  const uint64_t more = count - std::exchange(entry.noted.records, count);
  if (more == 0) return 0;
  ManifestChannel& channel = at.channel;
  AddToGaps(channel, {host_ns, more, reason, last_settled_ns_}, [this](const ManifestGap& last) { return last.host_ns == last_settled_ns_; });
  channel.AddLoss(reason, more, 0, host_ns);
  at.dump.NoteLoss(channel, reason, channel.gaps.back());
  return more;
}

void LossLedger::BeginOutage() {
  if (outage_from_ns_ == 0) outage_from_ns_ = LastNs();
}

void LossLedger::NoteReleased() {
  released_ = true;
  BeginOutage();
}

void LossLedger::NoteRestart(Place at, int64_t now_ns, LossReason reason) {
  int64_t from_ns = LastNs();
  if (const int64_t outage_ns = std::exchange(outage_from_ns_, 0); outage_ns != 0) from_ns = outage_ns;
  ManifestChannel& channel = at.channel;
  if (!channel.gaps.empty() && channel.gaps.back().reason == reason && channel.gaps.back().from_ns == from_ns) {
    channel.gaps.back().host_ns = now_ns;
  } else {
    channel.AddGap({now_ns, 0, reason, from_ns});
  }
  at.dump.NoteLoss(channel, reason, channel.gaps.back());
}

void LossLedger::NoteNextRun(Place at, int64_t now_ns) {
  NoteRestart(at, now_ns, released_ ? LossReason::kChannelReleased : LossReason::kChannelRestart);
  BeginOutage();
}

// Not before the driver began, which was unknown when it was requested, nor after this block, however late the writer
// heard of the run.
void LossLedger::NoteRunBegan(Place at, int64_t start_ns, int64_t block_ns) const {
  auto& gaps = at.channel.gaps;
  const auto last = std::find_if(gaps.rbegin(), gaps.rend(), [](const ManifestGap& gap) {
    return gap.reason == LossReason::kChannelRestart || gap.reason == LossReason::kChannelReleased;
  });
  // One from before the last block is an earlier one.
  if (last == gaps.rend() || last->host_ns <= last_block_ns_) return;
  last->host_ns = std::max(start_ns, std::min(last->host_ns, block_ns));
  at.dump.TouchManifest();
}

void LossLedger::NoteNoPast(Place at, int64_t block_ns) {
  const bool first = (in_past_ || silence_ns_ > 0) && last_block_ns_ == 0;
  if (!first || block_ns - session_start_ns_ < std::max(silence_ns_, kNsPerSecond)) return;
  if (at.channel.gaps.empty()) NoteRestart(at, block_ns, LossReason::kNotRecorded);
}

void LossLedger::NoteEnd(Place at, int64_t end_ns) {
  if (silence_ns_ > 0 && end_ns - LastNs() > silence_ns_) BeginOutage();
  if (outage_from_ns_ == 0 || outage_from_ns_ != LastNs()) return;
  NoteRestart(at, end_ns, released_ ? LossReason::kChannelReleased : LossReason::kChannelSilent);
}

}  // namespace profd
