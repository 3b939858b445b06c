// When a session begins and ends, beside what it collects: start instant or step, number of steps,
// lease, priority, metadata. This part of a spec is checked here; PlanSession has the rest.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <optional>
#include <string>

#include "base/status.h"
#include "daemon/config/daemon_config.h"
#include "daemon/node/node_access.h"
#include "daemon/session/peer.h"
#include "profd/v1/profd.pb.h"
#include "proto/session_state.h"

namespace profd {

inline constexpr uint32_t kDefaultPriority = 5;
inline constexpr uint32_t kMaxPriority = 9;

// A process that is not mistaken for a later one of the same number.
struct ProcessId {
  pid_t pid = 0;
  uint64_t start_ticks = 0;
};

// Of a spec that was admitted: its start is an instant or a step, if it is not now.
inline bool IsScheduled(const v1::SessionSpec& spec) {
  return spec.schedule().has_start_at_ns() || spec.schedule().has_start_step();
}
inline bool NeedsSteps(const v1::SessionSpec& spec) {
  return spec.schedule().has_steps() || spec.schedule().has_start_step();
}
inline std::optional<int64_t> StartStepOf(const v1::SessionSpec& spec) {
  return spec.schedule().has_start_step() ? std::optional(spec.schedule().start_step()) : std::nullopt;
}
inline uint32_t PriorityOf(const v1::SessionSpec& spec) {
  return spec.has_priority() ? spec.priority() : kDefaultPriority;
}

struct TermsContext {
  const DaemonConfig& config;
  const Peer& peer;
  int64_t wall_ns = 0;
  const NodeProcesses& processes;
};

// Checks the terms, makes a start that is so long from now an instant, and sets the priority. The process whose life renews the
// lease, pid 0 = none; or INVALID_ARGUMENT or PERMISSION_DENIED with all problems, one per line.
Result<ProcessId> AdmitTerms(const TermsContext& context, v1::SessionSpec* spec_untrusted);

// Of two checks of one request: the problems of both, with the code of the graver one. Refusals for want of permission
// come first, then what is invalid.
Status JoinProblems(const Status& a, const Status& b);

// Counts the steps of one job by what its counting process reports. A step counts when it has begun
// and ended in the session; numbers only grow, and need not be consecutive.
class StepCounter {
 public:
  StepCounter(std::optional<int64_t> start_step, uint32_t steps)
      : start_step_(start_step), steps_(steps) {}

  // Has the step to start at come?
  bool Begins(int64_t step) const { return start_step_ && step >= *start_step_; }
  // The session takes steps from now on, unless it did already. `running_step`: one that is under way and counts.
  // Without one, a request with a first step was under way before the daemon was started again: the numbers of the
  // steps are then what is known of those that ended meanwhile.
  void Open(std::optional<int64_t> running_step);
  // So many were counted before the daemon was started again.
  void Restore(uint32_t done) { done_ = done; }
  void OnBegin(int64_t step);
  void OnEnd(int64_t step);
  // The process, which counts too, reports that the last step that was requested has ended.
  void OnLastEnd();
  // The last step that was requested has ended.
  bool over() const { return over_; }
  uint32_t done() const { return done_; }
  // "2 steps (11..12)"
  std::string Text() const;

 private:
  const std::optional<int64_t> start_step_;
  const uint32_t steps_;
  bool open_ = false;
  bool over_ = false;
  bool by_number_ = false;
  uint32_t begins_ = 0;           // different steps that have begun
  std::optional<int64_t> begun_;  // the last one that has begun
  std::optional<int64_t> first_;
  std::optional<int64_t> ended_;
  uint32_t done_ = 0;
};

}  // namespace profd
