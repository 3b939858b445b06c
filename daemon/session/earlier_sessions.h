// Sessions of earlier daemons: those that had not ended go on if they may, the others are shown as their dumps have them.
#pragma once

#include <set>
#include <string>

#include "base/status.h"
#include "daemon/session/live_sessions.h"
#include "daemon/session/session.h"
#include "daemon/session/session_planner.h"
#include "profd/v1/profd.pb.h"

namespace profd {

namespace state {
class StoredSession;
}

// Control strand.
class EarlierSessions {
 public:
  EarlierSessions(const SessionKeeping& deps, LiveSessions& live, const SessionPlanner& planner)
      : deps_(deps), live_(live), planner_(planner) {}

  // One dump of an earlier session, from its manifest; newest first. Several of one session are its segments.
  void AddFound(v1::Session found);
  // A session that had not ended when the daemon did: continues if it may, by its state file alone.
  void Resume(const std::string& id, const std::string& stored);

 private:
  Result<Session::Request> PlanAgain(const state::StoredSession& stored, bool same_boot) const;
  void Continue(const state::StoredSession& stored, bool same_boot, Session::Request request);
  void GiveUp(const state::StoredSession& stored, const std::string& why);
  void KeepReason(const v1::SessionStatus& session) const;
  void Discard(const std::string& id);

  const SessionKeeping deps_;
  LiveSessions& live_;
  const SessionPlanner& planner_;
  std::set<std::string> withdrawn_;  // their dumps may be found later
};

}  // namespace profd
