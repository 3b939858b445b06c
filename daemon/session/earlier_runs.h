// What earlier runs of the daemon left: their dumps, which stay listed, fetched and removed like any other and are completed
// where a crash left them unfinished, and their sessions that had not ended, which resume.
#pragma once

#include <future>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "base/strand.h"
#include "daemon/dumps/dump_retention.h"
#include "daemon/dumps/state_store.h"
#include "daemon/session/earlier_sessions.h"
#include "dump/dump_root.h"

namespace profd {

class EarlierRuns final : private DumpRetention::Watcher {
 public:
  // What there is, before the first dump of this run. The store is locked: no other daemon works here, so unfinished dumps
  // may be completed.
  static Result<std::unique_ptr<EarlierRuns>> Find(const DumpRoot& root, StateStore& store);

  // Completes the dumps, in the background where there is much of it. `boot_id`: of the machine's present run; empty if it
  // is not known.
  void Begin(Strand& control, DumpRetention* retention, const std::string& boot_id);
  // Before the first request: sessions resume when their dumps have been looked at, or when it is too late to wait for it.
  void Resume(Strand& control, EarlierSessions& sessions);

 private:
  EarlierRuns() = default;
  // DumpRetention::Watcher:
  void OnFirstComplete() override { found_sessions_.set_value(); }
  void OnComplete() override { found_all_.set_value(); }

  std::vector<std::string> dumps_;
  std::map<std::string, std::string> sessions_;  // that had not ended: id, state file
  std::promise<void> found_sessions_;  // the dumps of sessions have been looked at
  std::promise<void> found_all_;
  bool dumps_unknown_ = false;  // a session's state was saved before its dump was made: it is known when all have been
};

// A dump that was found, as a session that has ended; `root` is the path of the dump root.
v1::Session SessionOf(const DumpRetention::RecoveredDump& found, const std::string& root);

}  // namespace profd
