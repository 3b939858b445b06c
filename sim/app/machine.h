// The machine a job runs on, when a scenario describes one: its clocks and links make what the job
// does longer, at the same time at which the device's own channels show why.
#pragma once

#include <cstdint>

#include "base/status.h"
#include "sim/node.h"

namespace profd::sim::app {

class Machine {
 public:
  // Of PROFD_SIM_SCENARIO and PROFD_SIM_EPOCH; without a scenario nothing is ever longer.
  static Result<Machine> FromEnvironment();
  // `node` may be nullptr, and outlives the machine.
  explicit Machine(const Node* node) : node_(node) {}

  // Whether the devices of a job with so many ranks are there.
  Status Check(uint32_t ranks) const;
  // How many times as long as at the nominal clock a kernel takes now.
  double KernelFactor(int device) const;
  // How many times as long communication of the first devices takes now: as its slowest link.
  double LinkFactor(int devices) const;

 private:
  const Node* node_;
};

}  // namespace profd::sim::app
