// What profd itself may cost: its own CPU time is held against overhead.max_daemon_permille, and polled collectors are read
// less often while it is above. What collecting costs in training processes their own collector holds against
// overhead.max_process_permille (client/libprofd/mspti/collect_kinds.h). docs/jobs.md, What it may cost, has the order.
//
// Control strand.
#pragma once

#include "base/clock.h"
#include "base/overhead_budget.h"
#include "daemon/collect/poll_engine.h"

namespace profd {

class SelfMetrics;

namespace v1 {
class Overhead;
}

class DaemonOverhead {
 public:
  DaemonOverhead(PollEngine& pollers, const Clock& clock) : pollers_(pollers), clock_(clock) {}

  // About once a second. `max_permille`: overhead.max_daemon_permille.
  void Tick(int64_t max_permille);
  void Describe(v1::Overhead* out) const;
  void UpdateMetrics(SelfMetrics* self) const;

 private:
  int pace() const;  // one of so many polls of polled collectors takes place

  PollEngine& pollers_;
  const Clock& clock_;
  OverheadBudget budget_;
};

}  // namespace profd
