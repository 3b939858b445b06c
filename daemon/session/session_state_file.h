// What the next daemon needs to continue a session, as one file of the state directory.
#pragma once

#include <cstdint>
#include <string>

#include "base/clock.h"
#include "daemon/dumps/state_saver.h"
#include "daemon/session/session.h"
#include "daemon/session/stored_session.pb.h"

namespace profd {

inline constexpr uint32_t kStateFileVersion = 2;

// Of one session that has not ended. Control strand.
class SessionStateFile {
 public:
  // References outlive it. `boot_id`: of the machine's present run.
  SessionStateFile(StateSaver& states, const Clock& clock, const std::string& id, const std::string& boot_id, const Peer& peer,
                   const Session::Request& request);

  // The session began under an earlier daemon. `since_wall_ns`: where its data begins; 0 = with the session.
  void SetStart(int64_t wall_ns, int64_t raw_ns, int64_t since_wall_ns);
  void Save(const Session& session);
  // What has come since it was saved last is worth another time.
  bool IsStale(const Session& session) const;

 private:
  StateSaver& states_;
  const Clock& clock_;
  state::StoredSession stored_;  // as saved last
  int64_t saved_ns_ = 0;         // when, steady clock
};

// False: it is damaged.
bool ParseStateFile(const std::string& text, state::StoredSession* out);
Peer PeerOf(const state::StoredSession& stored);
// None is attached: they have to come again. `same_boot`: pids are still of the same processes.
SessionTargets TargetsOf(const state::StoredSession& stored, bool same_boot);

}  // namespace profd
