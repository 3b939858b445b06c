// From a client's spec to what its session is to do on this node: which processes it means, its terms and its plan.
#pragma once

#include <functional>

#include "base/status.h"
#include "daemon/config/daemon_config.h"
#include "daemon/session/peer.h"
#include "daemon/session/session.h"

namespace profd {

class SessionPlanner {
 public:
  // References outlive it, and it outlives the sessions that it plans. `config`: as it is now.
  SessionPlanner(const SessionDeps& session, const DaemonConfig& config) : session_(session), config_(config) {}

  // All problems of the request at once.
  Result<Session::Request> Plan(const Peer& peer, const v1::SessionSpec& spec_untrusted) const;
  // The plan of the processes' devices, if the request is bound to processes; host_sys follows too.
  Result<SessionPlan> PlanFor(const Peer& peer, v1::SessionSpec spec, const SessionTargets& targets) const;
  // The same for processes that come later.
  std::function<Result<SessionPlan>(const SessionTargets&)> PlannerFor(const Peer& peer, v1::SessionSpec spec) const;

 private:
  const SessionDeps& session_;
  const DaemonConfig& config_;
};

}  // namespace profd
