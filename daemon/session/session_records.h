// The sessions of the node, those that have not ended and those that have: which of them a client may see, and what is shown
// of each. Control strand.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/status.h"
#include "daemon/config/daemon_config.h"
#include "daemon/dumps/dump_retention.h"
#include "daemon/jobs/job_view.h"
#include "daemon/session/ended_session.h"
#include "daemon/session/peer.h"
#include "daemon/session/session.h"
#include "daemon/session/session_limits.h"
#include "profd/v1/profd.pb.h"

namespace profd {

class SelfMetrics;
class SessionStateFile;

struct SessionRecord {
  uint32_t uid = 0;
  uint64_t order = 0;  // later sessions have higher ones
  std::shared_ptr<Session> live = nullptr;                 // null once it has ended
  std::shared_ptr<SessionStateFile> state_file = nullptr;  // of a live one
  EndedSession ended = {};
  std::vector<EndedSession> segments = {};  // of one that may go on, as they were found; empty: there is one, or none
  std::string not_continued = {};           // why it did not go on
};

class SessionRecords {
 public:
  // References outlive it. `config`: as it is now.
  SessionRecords(const Strand& control, const Clock& clock, const DaemonConfig& config, DumpRetention* dumps_or_null)
      : control_(control), clock_(clock), config_(config), dumps_(dumps_or_null) {}

  SessionRecord& AddLive(std::shared_ptr<Session> session, std::shared_ptr<SessionStateFile> state_file);
  // One that has ended elsewhere; its dump, if it has one, is the flight recorder's.
  void AddEnded(v1::Session ended);
  // One of an earlier daemon; they come newest first.
  void AddFound(const v1::Session& found);
  // It is shown so from now on. Of those that have ended the oldest go beyond limits.keep_finished.
  void End(SessionRecord& record, const v1::Session& view);
  void Erase(const std::string& id) { records_.erase(id); }
  void OnDumpRemoved(const std::string& name, std::string_view reason);

  // Null: there is none, or it is not the peer's own. What is not its own does not exist for a peer: the answers are the same.
  SessionRecord* Find(const std::string& id);
  const SessionRecord* Find(const Peer& peer, const std::string& id) const;
  static Status NoSession(const std::string& id_untrusted);
  // Those that have not ended; valid until the end of the present task.
  std::vector<SessionRecord*> Live();
  size_t active() const;
  std::vector<SessionBrief> Briefs() const;

  Result<v1::Session> Get(const Peer& peer, const std::string& id_untrusted) const;
  v1::ListSessionsResponse List(const Peer& peer, const v1::ListSessionsRequest& request_untrusted) const;
  // Adds whose the sessions are that occupy what was asked for, as far as the peer may see it.
  Status AnnotateWithOwner(const Peer& peer, const Status& status) const;
  // Of a session that has not ended.
  std::optional<uint32_t> UidOf(const std::string& id) const;
  // The session that collects inside an application on one of these devices, now or later, as DescribeHolder names it to the
  // peer; empty: there is none.
  std::string ProfilingOn(const Peer& peer, std::span<const uint32_t> devices) const;
  // All users'.
  std::vector<ActiveSession> ActiveSessions() const;
  void UpdateMetrics(SelfMetrics* self) const;

 private:
  v1::Session View(const SessionRecord& record) const;
  std::string OwnerOf(const Peer& peer, const std::string& holder) const;
  void Insert(const v1::Session& ended, uint64_t order);
  void Forget();

  const Strand& control_;
  const Clock& clock_;
  const DaemonConfig& config_;
  DumpRetention* const dumps_;  // null: this daemon writes none
  std::map<std::string, SessionRecord> records_;
  // What is found at start-up counts down from here, newest first.
  uint64_t next_order_ = uint64_t{1} << 32;
  uint64_t found_order_ = (uint64_t{1} << 32) - 1;
};

// 48 random bits: not guessable by counting, short enough to type. Empty: there is no randomness.
std::string NewId();

// What retention and archive look at, of a dump that begins.
KeptDump NewDump(std::string_view path, const std::string& session_id, uint32_t uid, const v1::SessionSpec& spec);

}  // namespace profd
