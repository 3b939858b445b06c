// All sessions of the node: requests in, states out, who may see what, limits. Lives on the control
// strand; nothing here waits.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <set>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/log_limit.h"
#include "base/status.h"
#include "daemon/config/daemon_config.h"
#include "daemon/dumps/dump_retention.h"
#include "daemon/dumps/state_saver.h"
#include "daemon/jobs/job_view.h"
#include "daemon/jobs/session_calls.h"
#include "daemon/node/rights.h"
#include "daemon/session/ended_session.h"
#include "daemon/session/peer.h"
#include "daemon/session/profiling_gate.h"
#include "daemon/session/session.h"
#include "daemon/session/session_limits.h"
#include "profd/v1/profd.pb.h"

namespace profd {

class SelfMetrics;

namespace state {
class StoredSession;
}

// Nothing about the session will change any more.
inline bool IsFinished(const v1::Session& session) {
  return IsOver(session.status().state());
}

class SessionManager final : public SessionCalls {
 public:
  struct Deps {
    SessionDeps session;
    DumpRemover& remover;
    StateSaver& states;
    const ProfilingGate& gate;
    Rights rights;  // for whom it can make dumps
    std::string boot_id = {};
    DumpRetention* dumps_or_null = nullptr;
    // There is one more session that CheckDiskSpace has to look after.
    std::function<void()> on_begun = nullptr;
  };
  using SessionReply = SessionCalls::Reply;

  SessionManager(Deps deps, const DaemonConfig& config);

  void Configure(const DaemonConfig& config) {
    config_ = config;
    deps_.session.stop_deadline_ns = config.stop_deadline_s * kNsPerSecond;
  }
  // A session that has ended elsewhere (a dump of the flight recorder).
  void AddRecovered(v1::Session frozen);
  // session_resume.cc. One dump of an earlier session, from its manifest; newest first. Several
  // of one session are its segments.
  void AddFound(v1::Session found);
  // A session that had not ended when the daemon did: continues if it may, with the word of its state
  // file alone. `same_boot`: its processes and monotonic clock are still of this boot.
  void Resume(const std::string& id, const std::string& stored);
  // The daemon is about to leave them to the next one: saves what has come since they were saved last.
  void SaveStates();
  void OnDumpRemoved(const std::string& name, std::string_view reason);
  // Dumps grow, and sessions end where there is no space for them; several times a second.
  void CheckDiskSpace();

  void Start(const Peer& peer, const v1::SessionSpec& spec_untrusted, SessionReply reply) override;
  void Stop(const Peer& peer, const v1::StopSessionRequest& request_untrusted, SessionReply reply) override;
  // No client receives the answer to its start.
  void Withdraw(const std::string& id);
  // How long the session now lives without its starter and its processes, ms; unset = it has no lease.
  Result<std::optional<uint64_t>> RenewLease(const Peer& peer, const std::string& id_untrusted);
  Result<v1::Session> Get(const Peer& peer, const std::string& id_untrusted) const override;
  v1::ListSessionsResponse List(const Peer& peer,
                                const v1::ListSessionsRequest& request_untrusted) const;
  // Directory names of a finished session's dumps, oldest first, if the peer may take them; or the one
  // that is named.
  Result<std::vector<std::string>> DumpsOf(const Peer& peer, const std::string& id_untrusted,
                                           const std::string& dump_untrusted) const;
  void Delete(const Peer& peer, const std::string& id_untrusted, const std::string& dump_untrusted,
              std::function<void(Result<uint64_t>)> reply);
  // session_dumps.cc: what there is on the disk. Whether a dump (its path or name), or one of a session's, waits for
  // the database.
  bool IsWaiting(std::string_view dump) const;
  bool IsWaiting(const v1::Session& session) const;
  v1::ListDumpsResponse ListDumps(const Peer& peer) const;
  Status Pin(const Peer& peer, const v1::PinDumpRequest& request_untrusted, v1::PinDumpResponse* out);
  Status Unpin(const Peer& peer, const v1::UnpinDumpRequest& request_untrusted, v1::UnpinDumpResponse* out);

  // Of a session that has not ended.
  std::optional<uint32_t> UidOf(const std::string& id) const;
  // The session that collects, or will, inside an application on one of these devices, as far as the peer may see it; empty: none.
  std::string ProfilingOn(const Peer& peer, std::span<const uint32_t> devices) const;

  // `changed` runs at every change of the session's state until Unwatch.
  uint64_t Watch(const std::string& id, std::function<void()> changed);
  void Unwatch(uint64_t watch);

  // About once a second.
  void Tick();
  // Ends all sessions; `done` when every dump is complete.
  void Shutdown(std::string reason, std::function<void()> done);

  size_t active() const;
  // Their buffers are free again.
  uint64_t ended_total() const { return ended_total_; }
  // All users'.
  std::vector<ActiveSession> ActiveSessions() const;
  void UpdateMetrics(SelfMetrics* self) const;

 private:
  struct Record {
    std::shared_ptr<Session> live;  // null once frozen
    EndedSession frozen;
    std::vector<EndedSession> segments;  // of one that may go on, as they were found; empty: there is one, or none
    std::string not_continued = {};      // why it did not go on
    uint32_t uid = 0;
    uint64_t order = 0;
    std::shared_ptr<state::StoredSession> stored;  // of a live one: as saved last
    int64_t saved_ns = 0;                          // when, steady clock
  };

  // session_admission.cc: from a request to a running session, or to why there is none.
  void Try(const Peer& peer, const v1::SessionSpec& spec, int preemptions,
           SessionReply reply);
  void Launch(const Peer& peer, Session::Request request, SessionReply reply);
  Record& AddLive(const std::string& id, const Peer& peer, Session::Request request);
  void Save(Record& record);
  // Its state has changed: what is kept of it, and of its dump.
  void NoteProgress(Record& record);
  void NoteRecovered(v1::Session* session);
  static void DropSegment(v1::SessionStatus* session, const std::string& dump);
  Result<Session::Request> PlanAgain(const state::StoredSession& stored, bool same_boot) const;
  void GiveUp(const state::StoredSession& stored, const std::string& why);
  void Discard(const std::string& id);
  static std::vector<v1::SessionStatus> SegmentsOf(const Record& record);
  const KeptDump* FindDump(const Peer& peer, const std::string& name) const;
  void Refuse(const Status& status, const SessionReply& reply);
  Status CheckTuning(const Peer& peer, const Session::Request& request) const;
  Result<Session::Request> Plan(const Peer& peer, const v1::SessionSpec& spec) const;
  Result<SessionPlan> PlanFor(const Peer& peer, v1::SessionSpec spec,
                              const SessionTargets& targets) const;
  Status CheckSteps(const Session::Request& request) const;
  // start_in_steps becomes start_step.
  Status ResolveStep(const SessionTargets& targets, v1::SessionSpec* spec) const;
  std::function<Result<SessionPlan>(const SessionTargets&)> PlannerFor(
      const Peer& peer, v1::SessionSpec spec) const;
  std::vector<std::shared_ptr<Session>> Conflicts(const Session::Request& request) const;
  SessionBrief BriefOf(const Record& record) const;
  std::vector<SessionBrief> Briefs() const;
  template <class Request, class Response>
  Status SetPinned(bool pinned, const Peer& peer, const Request& request, Response* out);
  std::string OwnerOf(const Peer& peer, const std::string& holder) const;
  Status AnnotateWithOwner(const Peer& peer, const Status& status) const;
  void AnnotateWithOwner(const Peer& peer, v1::Session* view) const;
  void OnChange(Session& session);
  void Freeze(const std::string& id);
  void OnClosed(Session& session);
  void CloseKept(const Session& session, DumpState state);
  void EndIfIdle();
  void Forget();
  v1::Session View(const Record& record) const;
  const Record* Find(const Peer& peer, const std::string& id) const;
  static Status NoSession(const std::string& id_untrusted);
  void StopJob(const Peer& peer, const std::string& job_id, SessionReply reply);
  void CountRefusal(const Status& status);

  Deps deps_;
  DaemonConfig config_;
  std::map<std::string, Record> records_;
  struct WatchEntry {
    std::string id;
    std::function<void()> changed;
  };
  std::set<std::string> withdrawn_;  // sessions of earlier daemons
  std::map<uint64_t, WatchEntry> watches_;
  uint64_t next_watch_ = 1;
  // What is found at start-up counts down from here, newest first.
  uint64_t next_order_ = uint64_t{1} << 32;
  uint64_t found_order_ = (uint64_t{1} << 32) - 1;
  uint64_t started_total_ = 0;
  uint64_t ended_total_ = 0;
  std::map<std::string, uint64_t> refused_;
  StartRates rates_;
  LogLimit refusals_logged_;
  bool shutting_down_ = false;
  std::function<void()> shutdown_done_;
  size_t closing_ = 0;  // ended sessions whose dumps are still being completed
};

}  // namespace profd
