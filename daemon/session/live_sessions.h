// The sessions that have not ended: begun, watched over, ended, and what of them is kept meanwhile, in their records and for
// the next daemon. Lives on the control strand; nothing here waits.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <utility>

#include "daemon/config/daemon_config.h"
#include "daemon/dumps/dump_retention.h"
#include "daemon/dumps/state_saver.h"
#include "daemon/session/peer.h"
#include "daemon/session/session.h"
#include "daemon/session/session_records.h"
#include "daemon/session/session_watches.h"

namespace profd {

// What begins, resumes and ends sessions works with. References outlive it.
struct SessionKeeping {
  const SessionDeps& session;
  const DaemonConfig& config;  // as it is now
  SessionRecords& records;
  DumpRemover& remover;
  StateSaver& states;
  std::string boot_id = {};
  DumpRetention* dumps_or_null = nullptr;
};

class LiveSessions {
 public:
  // `on_begun`: there is one more session that CheckDiskSpace has to look after.
  explicit LiveSessions(const SessionKeeping& deps, std::function<void()> on_begun = nullptr)
      : deps_(deps), on_begun_(std::move(on_begun)), watches_(deps.session.control) {}

  // A session that has yet to be started.
  SessionRecord& Begin(const std::string& id, const Peer& peer, Session::Request request);
  SessionWatches& watches() { return watches_; }

  // About once a second.
  void Tick();
  // Dumps grow, and sessions end where there is no space for them; several times a second.
  void CheckDiskSpace();
  // The daemon is about to leave them to the next one: saves what has come since they were saved last.
  void SaveStates();
  // Ends all sessions; `done` when every dump is complete.
  void Shutdown(std::string reason, std::function<void()> done);
  bool shutting_down() const { return shutting_down_; }
  // Their buffers are free again.
  uint64_t ended_total() const { return ended_total_; }

 private:
  void OnChange(const Session& session);
  void NoteProgress(SessionRecord& record);
  void Freeze(const std::string& id);
  void OnClosed(const Session& session);
  void NoteDumpClosed(const Session& session, DumpState state);
  void RemoveDump(const Session& session);
  void EndYoungest(std::optional<uint32_t> uid, const std::string& why);
  void EndIfIdle();

  const SessionKeeping deps_;
  const std::function<void()> on_begun_;
  SessionWatches watches_;
  uint64_t ended_total_ = 0;
  bool shutting_down_ = false;
  std::function<void()> shutdown_done_;
  size_t closing_ = 0;  // ended sessions whose dumps are still being completed
};

}  // namespace profd
