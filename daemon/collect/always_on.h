// The collectors that run without a session, for /metrics. Control strand.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "base/strand.h"
#include "daemon/collect/poll_engine.h"

namespace profd {

class AlwaysOn {
 public:
  AlwaysOn(Strand& control, const Host& host, PollEngine& pollers)
      : control_(control), host_(host), pollers_(pollers) {}

  // `off`: metrics.disable.
  void Start(const std::vector<std::string>& off);
  // `done` on the control strand, when none reads any more.
  void Stop(std::function<void()> done);

  struct Running {
    CollectorIndex collector;
    PollEngine::Handle handle;
  };
  const std::vector<Running>& running() const { return running_; }

 private:
  Strand& control_;
  const Host& host_;
  PollEngine& pollers_;
  std::vector<Running> running_;
};

}  // namespace profd
