// What a session is tied to: a process, those of its job, and a lease that is renewed by calls, or while those processes
// or the starter are alive. Control strand.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "base/clock.h"
#include "base/status.h"
#include "daemon/node/node_access.h"
#include "daemon/session/session_job.h"
#include "daemon/session/session_schedule.h"
#include "profd/v1/profd.pb.h"

namespace profd {

class SessionTerms {
 public:
  // References outlive the object. `starter` with pid 0: no process renews the lease by being alive.
  SessionTerms(const v1::SessionSpec& spec, ProcessId starter, const NodeProcesses& processes, const Clock& clock);

  // They hold from now on. NOT_FOUND: the process that the session is to end with has ended.
  Status Begin();
  // Why the session is to end; nothing: all of it is still there.
  std::optional<std::string> WhyOver(const SessionJob* job_or_null);
  // How long it lasts from now on unless renewed; nothing: it has no lease.
  std::optional<uint64_t> Renew();
  // Of the lease; 0 while something keeps it, or without one.
  int64_t left_ms() const;
  // Of the process that the session ends with.
  uint64_t end_pid_start() const { return end_pid_start_; }

 private:
  const v1::SessionSpec& spec_;
  const ProcessId starter_;
  const NodeProcesses& processes_;
  const Clock& clock_;
  uint64_t end_pid_start_ = 0;
  int64_t until_ns_ = 0;  // steady clock
  bool kept_ = true;      // by a process that is alive
};

}  // namespace profd
