// Which collectors a request runs, and with what: by the vendor's options, by name, or all of them.
#pragma once

#include <functional>
#include <span>
#include <vector>

#include "base/problem.h"
#include "daemon/session/session_plan.h"

namespace profd {

namespace v1 {
class CollectorRequest;
}

class CollectorPlanner {
 public:
  struct Deps {
    std::span<const CollectorEntry> collectors;
    const options::OptionSet& options;
    ProcessScope job;     // the request's own processes
    double max_hz;        // for users other than administrators; 0 = no limit
    std::function<void(Problem)> problem;
  };
  explicit CollectorPlanner(Deps deps) : deps_(std::move(deps)) {}

  // Everything, none of it demanded.
  void AddAll();
  void AddByOptions();
  void AddByName(std::span<const v1::CollectorRequest* const> requests_untrusted);

  std::vector<PlannedCollector>& planned() { return planned_; }
  // A rate that was not requested is lower than it would be for an administrator.
  bool lowered() const { return lowered_; }

 private:
  void AddChannel(CollectorIndex index, const CollectorSpec& spec);
  void AddHost(CollectorIndex index, const CollectorSpec& spec);
  void AddRequest(const v1::CollectorRequest& request);
  PlannedCollector& Entry(CollectorIndex index);
  double Allowed(double hz);

  Deps deps_;
  std::vector<PlannedCollector> planned_;
  bool lowered_ = false;
};

// Rate of both host_sys (fixed, 20 ms: driver-abi section 6) and host_sys_usage by default.
inline constexpr double kHostSysHz = 50;

}  // namespace profd
