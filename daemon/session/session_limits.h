// Who may still start a session, which sessions an administrator's request may end, and how a refusal reports
// by whom the node is busy and until when. Pure functions over a short account of every live session.
#pragma once

#include <cstdint>
#include <deque>
#include <map>
#include <span>
#include <string>

#include "base/status.h"
#include "daemon/config/daemon_config.h"
#include "daemon/session/peer.h"

namespace profd {

struct SessionBrief {
  std::string id = {};
  uint32_t uid = 0;
  std::string job_id = {};
  uint32_t priority = 0;
  uint64_t order = 0;        // later sessions have higher ones
  bool ending = false;
  int64_t end_wall_ns = 0;   // when it will have ended by its own request; 0 = not known
  uint64_t written = 0;      // bytes of its dump so far
  uint64_t reserved = 0;     // bytes it may write at most by its own spec; 0 = not set
};

// "session 71bd0e29b475 of uid 1000 (job j), until 12 s from now" as far as the peer may see it.
std::string DescribeHolder(const SessionBrief& session, const Peer& peer, int64_t wall_ns);
// "3 are yours, 61 of other users; the next one ends in 12 s"
std::string DescribeHolders(std::span<const SessionBrief> sessions, const Peer& peer,
                            int64_t wall_ns);

// The request that may not start: RESOURCE_EXHAUSTED naming limit, holders and the earliest known end.
// `reserve` bytes: what the new session may write by its spec.
Status CheckSessionLimits(std::span<const SessionBrief> live, const Peer& peer,
                          const DaemonConfig& config, int64_t wall_ns, uint64_t reserve);
bool NodeIsFull(std::span<const SessionBrief> live, const DaemonConfig& config);

// The lowest priority below `priority`, of these the youngest; null if there is none.
const SessionBrief* FindVictim(std::span<const SessionBrief> live, uint32_t priority);

// The youngest session of the first user whose sessions have written more than one user may.
const SessionBrief* FindOverwriter(std::span<const SessionBrief> live, const DaemonConfig& config);

// Starts of the last minute by user. Bounded by the limit and by the users there were in that minute.
class StartRates {
 public:
  Status Check(uint32_t uid, int64_t now_ns, int64_t max_per_minute);
  void Note(uint32_t uid, int64_t now_ns) { starts_[uid].push_back(now_ns); }

 private:
  std::map<uint32_t, std::deque<int64_t>> starts_;
};

}  // namespace profd
