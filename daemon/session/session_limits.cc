#include "daemon/session/session_limits.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/clock.h"
#include "base/count_text.h"

namespace profd {
namespace {

constexpr int64_t kMinuteNs = 60 * kNsPerSecond;
constexpr uint32_t kRoot = 0;

std::string FromNow(int64_t wall_ns, int64_t end_wall_ns) {
  int64_t left_s = std::max<int64_t>(0, (end_wall_ns - wall_ns + kNsPerSecond - 1) / kNsPerSecond);
  if (left_s < 120) return fmt::format("in {} s", left_s);
  if (left_s < 7200) return fmt::format("in {} min", left_s / 60);
  return fmt::format("in {} h", left_s / 3600);
}

uint64_t BytesOf(const SessionBrief& session) {
  return std::max(session.written, session.reserved);
}

}  // namespace

std::string DescribeHolder(const SessionBrief& session, const Peer& peer, int64_t wall_ns) {
  std::string who = "of another user";
  if (session.uid == peer.uid) {
    who = "owned by you";
  } else if (peer.admin) {
    who = fmt::format("of uid {}", session.uid);
  }
  if (peer.Owns(session.uid) && !session.job_id.empty()) {
    who += fmt::format(", job {}", session.job_id);
  }
  std::string until = "end time unknown";
  if (session.ending) {
    until = "ending now";
  } else if (session.end_wall_ns != 0) {
    until = "ends " + FromNow(wall_ns, session.end_wall_ns);
  }
  return fmt::format("session {} {}, {}", session.id, who, until);
}

std::string DescribeHolders(std::span<const SessionBrief> sessions, const Peer& peer,
                            int64_t wall_ns) {
  size_t own = 0;
  std::map<uint32_t, size_t> others;
  int64_t first = 0;
  for (const SessionBrief& session : sessions) {
    session.uid == peer.uid ? ++own : ++others[session.uid];
    if (session.end_wall_ns != 0 && (first == 0 || session.end_wall_ns < first)) {
      first = session.end_wall_ns;
    }
  }
  std::string text = fmt::format("{} {} yours", own, own == 1 ? "is" : "are");
  if (peer.admin) {
    for (const auto& [uid, count] : others) text += fmt::format(", {} of uid {}", count, uid);
  } else if (!others.empty()) {
    text += fmt::format(", {} of other users", sessions.size() - own);
  }
  text += first == 0 ? "; no end time is known"
                     : fmt::format("; the next one ends {}", FromNow(wall_ns, first));
  return text;
}

bool NodeIsFull(std::span<const SessionBrief> live, const DaemonConfig& config) {
  return static_cast<int64_t>(live.size()) >= config.max_sessions;
}

Status CheckSessionLimits(std::span<const SessionBrief> live, const Peer& peer,
                          const DaemonConfig& config, int64_t wall_ns, uint64_t reserve) {
  if (NodeIsFull(live, config)) {
    return ResourceExhausted(
        fmt::format("{}, the limit of this node is {} (limits.max_sessions): {}",
                    CountText(live.size(), "session is running", "sessions are running"), config.max_sessions,
                    DescribeHolders(live, peer, wall_ns)));
  }
  if (peer.uid == kRoot) return Status::Ok();
  std::vector<SessionBrief> own;
  uint64_t bytes = 0;
  for (const SessionBrief& session : live) {
    if (session.uid != peer.uid) continue;
    own.push_back(session);
    bytes += BytesOf(session);
  }
  if (static_cast<int64_t>(own.size()) >= config.max_sessions_per_uid) {
    return ResourceExhausted(fmt::format(
        "you have {} running, the limit for one user is {} (limits.max_sessions_per_uid): {}",
        CountText(own.size(), "session"), config.max_sessions_per_uid, DescribeHolders(own, peer, wall_ns)));
  }
  const uint64_t limit = static_cast<uint64_t>(config.max_dump_mb_per_uid) << 20;
  if (reserve > limit) {
    return ResourceExhausted(fmt::format("this session requests {} MB, the limit for one user is {} MB "
                                         "(limits.max_dump_mb_per_uid): give it a smaller storage_limit, or none",
                                         reserve >> 20, config.max_dump_mb_per_uid));
  }
  if (bytes >= limit || reserve > limit - bytes) {
    return ResourceExhausted(fmt::format(
        "your running sessions have written or may write {} MB{}, the limit for one user is {} MB "
        "(limits.max_dump_mb_per_uid): {}",
        bytes >> 20, reserve > 0 ? fmt::format(", this one requests {} MB", reserve >> 20) : "",
        config.max_dump_mb_per_uid, DescribeHolders(own, peer, wall_ns)));
  }
  return Status::Ok();
}

const SessionBrief* FindVictim(std::span<const SessionBrief> live, uint32_t priority) {
  const SessionBrief* victim = nullptr;
  for (const SessionBrief& session : live) {
    if (session.ending || session.priority >= priority) continue;
    if (victim == nullptr || session.priority < victim->priority ||
        (session.priority == victim->priority && session.order > victim->order)) {
      victim = &session;
    }
  }
  return victim;
}

const SessionBrief* FindOverwriter(std::span<const SessionBrief> live,
                                   const DaemonConfig& config) {
  const uint64_t limit = static_cast<uint64_t>(config.max_dump_mb_per_uid) << 20;
  std::map<uint32_t, uint64_t> written;
  for (const SessionBrief& session : live) written[session.uid] += session.written;
  for (const auto& [uid, bytes] : written) {
    if (uid == kRoot || bytes <= limit) continue;
    const SessionBrief* youngest = nullptr;
    for (const SessionBrief& session : live) {
      if (session.uid != uid || session.ending) continue;
      if (youngest == nullptr || session.order > youngest->order) youngest = &session;
    }
    if (youngest != nullptr) return youngest;
  }
  return nullptr;
}

Status StartRates::Check(uint32_t uid, int64_t now_ns, int64_t max_per_minute) {
  for (auto it = starts_.begin(); it != starts_.end();) {
    std::deque<int64_t>& times = it->second;
    while (!times.empty() && now_ns - times.front() >= kMinuteNs) times.pop_front();
    it = times.empty() ? starts_.erase(it) : std::next(it);
  }
  auto found = starts_.find(uid);
  if (uid == kRoot || found == starts_.end()) return Status::Ok();
  const std::deque<int64_t>& times = found->second;
  if (static_cast<int64_t>(times.size()) < max_per_minute) return Status::Ok();
  int64_t free_ns = times[times.size() - static_cast<size_t>(max_per_minute)] + kMinuteNs - now_ns;
  return ResourceExhausted(fmt::format(
      "you started {} within a minute, the limit for one user is {} (limits.max_starts_per_minute); the next may start in {} s",
      CountText(times.size(), "session"), max_per_minute, free_ns / kNsPerSecond + 1));
}

}  // namespace profd
