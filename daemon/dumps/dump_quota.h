// Which dumps go when there is too much of them. Pure functions over a short account of every dump.
#pragma once

#include <cstdint>
#include <map>
#include <set>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "dump/manifest.h"

namespace profd {

// A dump on the disk, as far as the daemon must know it.
struct KeptDump {
  std::string name = {};
  uint32_t uid = 0;
  std::string session_id = {};  // empty: unknown
  std::string job_id = {};
  DumpState state = DumpState::kRunning;
  int64_t started_wall_ns = 0;
  int64_t ended_wall_ns = 0;
  uint64_t bytes = 0;
  uint64_t queued = 0;  // bytes that wait to be written to it
  uint32_t segment = 1;
  std::string label = {};
  std::string fleet = {};      // of sessions that were started together on several nodes; empty: it was alone
  bool recorder = false;  // the flight recorder's
  bool pinned = false;
  bool waiting = false;   // for the database (archive/): goes only where nothing else is left
  bool writing = false;   // by this daemon, now
  bool removing = false;  // its removal has been requested
};

// The metadata of a session by which profctl marks those it starts on several nodes.
inline constexpr const char* kFleetMetadata = "fleet_id";

// In bytes; 0 = no limit.
struct QuotaLimits {
  uint64_t total = 0;
  uint64_t per_uid = 0;
  uint64_t pinned_per_uid = 0;
};

inline constexpr std::string_view kReasonRequest = "request";
inline constexpr std::string_view kReasonTotal = "max_total";
inline constexpr std::string_view kReasonPerUid = "max_kept_per_uid";

struct QuotaPlan {
  struct Removal {
    std::string name;
    std::string_view reason;
  };
  std::vector<Removal> removals;  // oldest first
  // What stays too much although everything that may go has gone.
  bool over_total = false;
  std::set<uint32_t> over_uids;
};

// What has to go so that `headroom` more bytes could be written (of them `uid_headroom` by each user).
// `over_*` are judged with `margin` bytes only. Root has no limit of its own.
struct Headroom {
  uint64_t total = 0;
  std::map<uint32_t, uint64_t> by_uid{};
  uint64_t margin = 0;
};
QuotaPlan PlanRemovals(std::span<const KeptDump> dumps, const QuotaLimits& limits,
                       const Headroom& headroom);

}  // namespace profd
