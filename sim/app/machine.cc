#include "sim/app/machine.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstdlib>
#include <string>

namespace profd::sim::app {

Result<Machine> Machine::FromEnvironment() {
  const char* const scenario = std::getenv(std::string(kScenarioEnv).c_str());
  if (scenario == nullptr || *scenario == '\0') return Machine(nullptr);
  const Node* const node = NodeFromEnvironment("sim_train").release();  // as long as the process
  if (node == nullptr) return InvalidArgument("the scenario cannot be used");
  return Machine(node);
}

Status Machine::Check(uint32_t ranks) const {
  if (node_ == nullptr || ranks <= static_cast<uint32_t>(node_->devices())) return Status::Ok();
  return InvalidArgument(
      fmt::format("the job has {} ranks, the scenario {} devices", ranks, node_->devices()));
}

double Machine::KernelFactor(int device) const {
  if (node_ == nullptr) return 1;
  const unsigned mhz = node_->model(static_cast<unsigned>(device)).AicoreMhz(node_->ScenarioNow());
  return static_cast<double>(node_->chip().aic_mhz) / mhz;
}

double Machine::LinkFactor(int devices) const {
  if (node_ == nullptr) return 1;
  double slowest = 1;
  const int64_t now = node_->ScenarioNow();
  for (int device = 0; device < devices; ++device) {
    const Fault* const fault = node_->faults().Find(FaultKind::kSlowHccs, now, device);
    if (fault != nullptr) slowest = std::min(slowest, fault->factor);
  }
  return 1 / slowest;
}

}  // namespace profd::sim::app
