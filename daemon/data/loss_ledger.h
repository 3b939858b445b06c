// What is missing from one feed of a dump: how much, why and since when. Any thread counts what it loses; the writer
// brings the counts into the dump's manifest and journal.
#pragma once

#include <array>
#include <atomic>
#include <cstdint>

#include "dump/loss_reason.h"
#include "dump/manifest.h"
#include "dump/session_dump.h"

namespace profd {

class LossLedger {
 public:
  struct Amount {
    uint64_t records = 0;
    uint64_t bytes = 0;
  };
  // The feed's channel in the manifest, and the dump.
  struct Place {
    ManifestChannel& channel;
    SessionDump& dump;
  };

  // `session_start_ns`: H of the device's start_info. `in_past`: the session was requested after that. `silence_ns`:
  // without a block for longer the channel has an outage, in a dump of what lies in the past; 0 = outages are reported.
  LossLedger(int64_t session_start_ns, bool in_past, int64_t silence_ns = 0)
      : session_start_ns_(session_start_ns), in_past_(in_past), silence_ns_(silence_ns) {}

  // Any thread. Lost, or not read, for a reason that Settle brings into the manifest: kQueueFull, kNoBuffer, kLate
  // or kOverBudget. Records 0 = unknown; polls that did not take place have no bytes.
  void Count(LossReason reason, uint64_t records, uint64_t bytes);
  // Records that were received and lost on the way; without polls that did not take place and what was evicted.
  Amount Total() const;

  // The writer's thread from here on. A loss whose reason is known at once, noticed at `host_ns`, is in the manifest
  // when this returns.
  void Lose(Place at, LossReason reason, uint64_t records, uint64_t bytes, int64_t host_ns);
  // The same for one that happened between two times.
  void LoseBetween(Place at, const ManifestLoss& loss);
  // Is in the manifest already.
  void CountNoted(LossReason reason, uint64_t records, uint64_t bytes);
  // Brings what was counted into the manifest, each loss as a gap since the last time. Polls that did not take place
  // since then are returned.
  struct NotRead {
    uint64_t late = 0;
    uint64_t over_budget = 0;
  };
  NotRead Settle(Place at, int64_t host_ns);

  // A block that was read at that time reached the dump.
  void NoteBlock(int64_t host_ns) { last_block_ns_ = host_ns; }
  void NoteWritten(int64_t host_ns) { last_written_ns_ = host_ns; }
  // Up to when there is something, or there could have been.
  int64_t LastNs() const { return last_block_ns_ != 0 ? last_block_ns_ : session_start_ns_; }
  // True: since the last block something was lost that is accounted for, so gap detection must start again.
  bool TakeResync();
  void RequestResync() { resync_ = true; }

  // Its device has stopped answering, or answers again; its channel was released to another tool, could not be stopped
  // for a restart, or runs again. The gap is noted with the next run, or at the end.
  void BeginOutage();
  void EndOutage() { outage_from_ns_ = 0; }
  void NoteReleased();
  // Between the last block of the run before and the next one nothing was measured. Attempts that failed meanwhile
  // belong to the same gap.
  void NoteRestart(Place at, int64_t now_ns, LossReason reason);
  // NoteRestart with the outage's own reason. The run may fail to begin: the gap continues until EndOutage.
  void NoteNextRun(Place at, int64_t now_ns);
  void ForgetRelease() { released_ = false; }
  // The first block of a run that began at `start_ns` was read at `block_ns`: the gap ends there.
  void NoteRunBegan(Place at, int64_t start_ns, int64_t block_ns) const;
  // A session that began in the past gets a block of the present: the flight recorder did not hold the channel.
  void NoteNoPast(Place at, int64_t block_ns);
  // What was silent to the end is missing up to there.
  void NoteEnd(Place at, int64_t end_ns);

 private:
  struct Entry {
    std::atomic<uint64_t> records{0};
    std::atomic<uint64_t> bytes{0};
    Amount noted;  // in the manifest already; the writer's
  };
  Entry& EntryOf(LossReason reason) { return entries_[static_cast<size_t>(reason)]; }
  void SettleDropped(Place at, LossReason reason, int64_t host_ns);
  uint64_t SettleNotRead(Place at, LossReason reason, int64_t host_ns);
  const int64_t session_start_ns_;
  const bool in_past_;
  const int64_t silence_ns_;
  std::array<Entry, kLossReasons> entries_;
  bool resync_ = false;
  int64_t last_settled_ns_ = 0;
  int64_t last_written_ns_ = 0;
  int64_t last_block_ns_ = 0;   // 0 = none yet
  int64_t outage_from_ns_ = 0;  // 0 = no outage
  bool released_ = false;       // to another tool, since the last run
};

}  // namespace profd
