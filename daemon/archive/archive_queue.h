// Finished dumps on their way into a database ([archive]): which of them wait, since when, what became of them. profctl
// archive, a process without rights, takes one after the other, loads it and reports; here nothing is sent and no dump is
// read. Until a dump is loaded it is protected: retention removes it only where nothing else is left. The queue is
// bounded; beyond its bounds the oldest lose their protection, which is logged and counted.
//
// Lives on the control strand. What it knows is in a file of the state folder, so that nothing is forgotten by a daemon
// that is killed; that a dump is loaded twice where a report was lost does no harm, the second load replaces the first.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <functional>
#include <map>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "base/clock.h"
#include "base/status.h"
#include "base/strand.h"
#include "daemon/config/daemon_config.h"
#include "daemon/dumps/dump_quota.h"
#include "daemon/dumps/dump_retention.h"
#include "daemon/dumps/state_saver.h"
#include "daemon/node/node_access.h"
#include "daemon/session/peer.h"
#include "profd/v1/profd.pb.h"

namespace profd {

class SelfMetrics;

class ArchiveQueue final : public DumpRetention::Watcher {
 public:
  struct Deps {
    Strand& control;
    const Clock& clock;
    DumpRetention& dumps;
    std::string host;  // {host} of archive.run
    StateSaver& states;
    const NodeProcesses& processes;
  };
  struct Counts {
    uint64_t loaded = 0;
    uint64_t loaded_bytes = 0;
    std::map<std::string, uint64_t, std::less<>> loaded_by_database;
    // Failed attempts. Each reason from 0 on, as the next: a series that begins with its first event hides that event
    // from increase().
    std::map<std::string, uint64_t, std::less<>> failures = {{"unreachable", 0}, {"denied", 0}, {"refused", 0}, {"fetch", 0}, {"unreadable", 0}};
    // Not loaded, and protected no longer; the last three are why the dump was removed.
    std::map<std::string, uint64_t, std::less<>> lost = {{"max_waiting", 0}, {"gave_up", 0}, {"unreadable", 0},
        {std::string(kReasonRequest), 0}, {std::string(kReasonTotal), 0}, {std::string(kReasonPerUid), 0}};
  };
  struct Waiting {
    uint64_t dumps = 0;
    uint64_t bytes = 0;
    int64_t oldest_wall_ns = 0;  // 0: none
  };

  // `saved`: what the daemon before this one saved.
  ArchiveQueue(Deps deps, const DaemonConfig& config, std::string_view saved);

  void Configure(const DaemonConfig& config);
  bool on() const { return !config_.archive_to.empty(); }

  // DumpRetention::Watcher:
  void OnFound(const DumpRetention::RecoveredDump& found) override;
  void OnClosed(const KeptDump& dump) override;
  void OnRemoved(const std::string& name, std::string_view reason) override;
  // What is known of others is of no use any more.
  void OnComplete() override;
  // About once a second.
  void Tick();

  // A user's own dumps, by request (archive_request.cc).
  Status Request(const Peer& peer, const v1::ArchiveDumpsRequest& request_untrusted, v1::ArchiveDumpsResponse* out);
  Status Take(const Peer& peer, v1::ClaimArchiveUploadResponse* out);
  Status Report(const v1::ReportArchiveRequest& request_untrusted);
  // Whether the user that archives may fetch it.
  bool IsWaiting(std::string_view name) const;
  std::vector<std::string> WaitingOf(std::vector<std::string> names) const;

  void Describe(v1::Dump* out) const;
  void Describe(v1::ArchiveStatus* out) const;
  void UpdateMetrics(SelfMetrics* self) const;
  Waiting waiting() const;
  const Counts& counts() const { return counts_; }

 private:
  struct Entry {
    v1::ArchiveState::State state = v1::ArchiveState::STATE_WAITING;
    int64_t since_wall_ns = 0;  // its end, or when a user asked for it; by it the oldest is found
    uint32_t attempts = 0;
    int64_t next_ns = 0;  // steady clock; not before
    std::string run;      // that it was loaded into
    std::string to;       // the database of that; empty: none
    bool requested = false;  // by a user
    std::string named;       // the run, as the user has it; empty: by archive.run
    std::string problem;
    uint64_t rows = 0;
    // Who loads it now.
    pid_t pid = 0;
    uint64_t pid_started = 0;
  };
  using Entries = std::map<std::string, Entry, std::less<>>;

  void Load(std::string_view saved);
  void Save();
  bool IsMeant(const KeptDump& dump) const;
  void Protect();
  Entries::iterator Oldest(bool waiting);  // of those that wait, or of the others
  void Bound();
  void GiveUp();
  void Lose(Entries::iterator entry, std::string_view reason, std::string problem);
  bool IsHeld(const Entry& entry, const Peer& peer) const;
  int64_t PauseAfter(uint32_t failures) const;
  std::string RunOf(const KeptDump& dump, const Entry& entry) const;
  Status CheckRequest(const v1::ArchiveDumpsRequest& request_untrusted) const;
  std::vector<const KeptDump*> Requested(const Peer& peer, const v1::ArchiveDumpsRequest& request_untrusted,
                                         std::set<std::string>* unfinished) const;
  Status CheckRun(const std::vector<const KeptDump*>& meant, const std::string& run) const;
  Status CheckCapacity(const Peer& peer, const std::vector<const KeptDump*>& added) const;
  bool IsToBeLoaded(const KeptDump& dump, const std::string& run) const;
  void Enqueue(const KeptDump& dump, const std::string& run);
  void Describe(const KeptDump& dump, v1::Dump* out) const;
  void OnLoaded(const std::string& name, Entry* entry, const v1::ArchiveLoaded& loaded);
  void OnFailed(Entries::iterator entry, const v1::ArchiveFailed& failed_untrusted);

  Deps deps_;
  DaemonConfig config_;
  Entries entries_;  // by dump
  // Since when dumps are archived: older ones are left alone.
  int64_t since_wall_ns_ = 0;
  // Of the database: where it does not answer, no other dump is tried.
  uint32_t failures_in_turn_ = 0;
  int64_t next_ns_ = 0;
  int64_t failing_since_wall_ns_ = 0;
  std::string problem_;
  int64_t asked_wall_ns_ = 0;
  Counts counts_;
};

}  // namespace profd
