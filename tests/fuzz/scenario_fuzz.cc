// Input: a scenario of the simulator. One that is accepted must make a node.
#include "base/clock.h"
#include "sim/hal_engine.h"
#include "sim/node.h"
#include "sim/scenario.h"
#include "tests/fuzz/fuzz_input.h"

namespace profd::sim {
namespace {

void Run(fuzz::Input input) {
  Result<Scenario> scenario = ParseScenario(input.rest());
  if (!scenario.ok()) {
    FUZZ_EXPECT(!scenario.status().message().empty());
    return;
  }
  FUZZ_EXPECT(scenario->devices >= 1 && scenario->devices <= kMaxSimDevices);
  FUZZ_EXPECT(scenario->faults.size() <= kMaxFaults);
  ManualClock clock;
  Node node(*scenario, clock, /*epoch_raw_ns=*/0);
  HalEngine engine(node);
}

}  // namespace
}  // namespace profd::sim

void profd::fuzz::Run(Input input) { sim::Run(input); }
