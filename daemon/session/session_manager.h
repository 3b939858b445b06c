// Requests about sessions: what may start now, and which sessions must end for it; what ends, and whose lease is renewed.
// Lives on the control strand; nothing here waits.
#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/log_limit.h"
#include "base/status.h"
#include "daemon/jobs/session_calls.h"
#include "daemon/node/rights.h"
#include "daemon/session/live_sessions.h"
#include "daemon/session/peer.h"
#include "daemon/session/profiling_gate.h"
#include "daemon/session/session.h"
#include "daemon/session/session_limits.h"
#include "daemon/session/session_planner.h"

namespace profd {

class SelfMetrics;

class SessionManager final : public SessionCalls {
 public:
  // `rights`: for whom it can make dumps.
  SessionManager(const SessionKeeping& deps, LiveSessions& live, const SessionPlanner& planner, const ProfilingGate& gate, Rights rights)
      : deps_(deps), live_(live), planner_(planner), gate_(gate), rights_(rights) {}

  void Start(const Peer& peer, const v1::SessionSpec& spec_untrusted, Reply reply) override;
  void Stop(const Peer& peer, const v1::StopSessionRequest& request_untrusted, Reply reply) override;
  Result<v1::Session> Get(const Peer& peer, const std::string& id_untrusted) const override;
  // No client receives the answer to its start.
  void Withdraw(const std::string& id);
  // How long the session now lives without its starter and its processes, ms; unset = it has no lease.
  Result<std::optional<uint64_t>> RenewLease(const Peer& peer, const std::string& id_untrusted);
  void UpdateMetrics(SelfMetrics* self) const;

 private:
  void Try(const Peer& peer, const v1::SessionSpec& spec, int preemptions, const Reply& reply);
  Status CheckTuning(const Peer& peer, const Session::Request& request) const;
  std::vector<std::shared_ptr<Session>> Conflicts(const Session::Request& request) const;
  // Counts the start if it is within them.
  Status CheckLimits(const Peer& peer, const Session::Request& request);
  void Refuse(const Status& status, const Reply& reply);
  void Launch(const Peer& peer, Session::Request request, const Reply& reply);
  void OnStarted(const Peer& peer, const Session& session, const Reply& reply);
  void StopJob(const Peer& peer, const std::string& job_id, const Reply& reply);

  const SessionKeeping deps_;
  LiveSessions& live_;
  const SessionPlanner& planner_;
  const ProfilingGate& gate_;
  const Rights rights_;
  uint64_t started_total_ = 0;
  std::array<uint64_t, kStatusCodes> refused_{};  // by code
  StartRates rates_;
  LogLimit refusals_logged_;
};

}  // namespace profd
