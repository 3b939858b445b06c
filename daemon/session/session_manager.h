// All sessions of the node: orders in, states out, who may see what, limits. Lives on the control
// strand; nothing here waits.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include "base/status.h"
#include "daemon/config/daemon_config.h"
#include "daemon/session/peer.h"
#include "daemon/session/session.h"
#include "daemon/session/session_limits.h"
#include "profd/v1/profd.pb.h"

namespace profd {

// Nothing about the session will change any more.
inline bool IsFinished(const v1::Session& session) {
  return session.state() == v1::Session::DONE || session.state() == v1::Session::FAILED ||
         session.state() == v1::Session::INTERRUPTED;
}

class SessionManager {
 public:
  struct Deps {
    SessionDeps session;
    std::function<Result<uint32_t>(pid_t)> owner_of;
    std::function<Status(const Peer&, const DeviceInfo&)> may_use;
    // Removes the named dump; runs `done` on the control strand with the bytes freed.
    std::function<void(const std::string& name, std::function<void(Result<uint64_t>)> done)>
        remove_dump;
  };
  using SessionReply = std::function<void(const Result<v1::Session>&)>;

  SessionManager(Deps deps, const DaemonConfig& config);

  void Configure(const DaemonConfig& config) {
    config_ = config;
    deps_.session.stop_deadline_ns = config.stop_deadline_s * kNsPerSecond;
  }
  // Where training processes are found; before the first order. Without it there are none.
  void UseJobs(JobDirectory* jobs) { deps_.session.jobs_or_null = jobs; }
  // A dump found at start-up; `frozen` as its manifest tells.
  void AddRecovered(v1::Session frozen);

  void Start(const Peer& peer, const v1::StartSessionRequest& request_untrusted,
             SessionReply reply);
  // By id, or the peer's running sessions of a job (answers the last to end).
  void Stop(const Peer& peer, const v1::StopSessionRequest& request_untrusted, SessionReply reply);
  // How long the session now lives without its starter and its processes, ms; 0 = it has no lease.
  Result<uint64_t> RenewLease(const Peer& peer, const std::string& id_untrusted);
  Result<v1::Session> Get(const Peer& peer, const std::string& id_untrusted) const;
  v1::ListSessionsResponse List(const Peer& peer,
                                const v1::ListSessionsRequest& request_untrusted) const;
  // Directory name of a finished session's dump, if the peer may read it.
  Result<std::string> DumpOf(const Peer& peer, const std::string& id_untrusted) const;
  void Delete(const Peer& peer, const std::string& id_untrusted,
              std::function<void(Result<uint64_t>)> reply);

  // `changed` runs at every change of the session's state until Unwatch.
  uint64_t Watch(const std::string& id, std::function<void()> changed);
  void Unwatch(uint64_t watch);

  // About once a second.
  void Tick();
  // Ends all sessions; `done` when every dump is complete.
  void Shutdown(std::string reason, std::function<void()> done);

  size_t active() const;
  uint64_t started_total() const { return started_total_; }
  const std::map<std::string, uint64_t>& refused() const { return refused_; }
  std::map<std::string, size_t> CountByState() const;

 private:
  struct Record {
    std::shared_ptr<Session> live;  // null once frozen
    v1::Session frozen;
    uint32_t uid = 0;
    uint64_t order = 0;
  };

  // session_orders.cc: from a request to a running session, or to why there is none.
  void Try(const Peer& peer, const v1::StartSessionRequest& request, int preemptions,
           SessionReply reply);
  void Launch(const Peer& peer, Session::Order order, SessionReply reply);
  void Refuse(const Status& status, const SessionReply& reply);
  Result<Session::Order> Plan(const Peer& peer, const v1::StartSessionRequest& request) const;
  Result<SessionPlan> PlanFor(const Peer& peer, v1::StartSessionRequest request,
                              const SessionTargets& targets) const;
  Status CheckSteps(const Session::Order& order) const;
  std::vector<std::shared_ptr<Session>> InTheWay(const Session::Order& order) const;
  SessionBrief BriefOf(const Record& record) const;
  std::vector<SessionBrief> Briefs() const;
  std::string NameHolders(const Peer& peer, std::string text) const;
  void NameHolders(const Peer& peer, v1::Session* view) const;
  void OnChange(Session& session);
  void Freeze(const std::string& id);
  void Forget();
  v1::Session View(const Record& record) const;
  const Record* Find(const Peer& peer, const std::string& id) const;
  void StopJob(const Peer& peer, const std::string& job_id, SessionReply reply);
  void CountRefusal(const Status& status);

  Deps deps_;
  DaemonConfig config_;
  std::map<std::string, Record> records_;
  struct WatchEntry {
    std::string id;
    std::function<void()> changed;
  };
  std::map<uint64_t, WatchEntry> watches_;
  uint64_t next_watch_ = 1;
  uint64_t next_order_ = 1;
  uint64_t started_total_ = 0;
  std::map<std::string, uint64_t> refused_;
  StartRates rates_;
  bool shutting_down_ = false;
  std::function<void()> shutdown_done_;
};

}  // namespace profd
