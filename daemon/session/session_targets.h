// Which training processes a request means, and which devices follow from that. Pure: what it must know
// about processes is given to it.
#pragma once

#include <cstdint>
#include <set>
#include <span>
#include <string>
#include <vector>

#include "base/status.h"
#include "daemon/jobs/job_directory.h"
#include "daemon/session/peer.h"
#include "profd/v1/profd.pb.h"

namespace profd {

struct SessionTargets {
  std::string job_id = {};
  std::set<int> ranks = {};   // empty = all
  std::set<pid_t> pids = {};  // the job's processes it is narrowed to, or named without a job; empty = all
  bool admin = false;    // may act on the processes of all users
  uint32_t uid = UINT32_MAX;
  std::vector<TrainingProcess> processes = {};  // known when it was requested
  // Devices and the end of the session follow from the processes; otherwise the complete node is meant
  // and the processes only take part with their marks and steps.
  bool bound = false;
  std::vector<int> devices = {};  // of the processes, if bound
  // Processes named by pid of which nothing more is known (host_sys): they too keep a session alive.
  std::set<pid_t> unknown_pids = {};
  std::vector<std::string> warnings = {};

  // The job is yet to come.
  bool awaits() const { return bound && processes.empty(); }
  bool any() const { return !job_id.empty() || !pids.empty() || !unknown_pids.empty(); }
  // Does a process that has just attached belong to it?
  bool Matches(const TrainingProcess& process) const;
};

// INVALID_ARGUMENT (all problems, one per line) or NOT_FOUND with the caller's jobs, or with pids that are not of the job. `known` is
// processes of all users; what does not belong to the peer does not exist for it.
Result<SessionTargets> ResolveTargets(const v1::SessionSpec::Target& target_untrusted,
                                      const Peer& peer, std::span<const TrainingProcess> known);

}  // namespace profd
