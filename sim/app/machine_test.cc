#include "sim/app/machine.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/clock.h"
#include "sim/scenario.h"

namespace profd::sim::app {
namespace {

constexpr char kFaults[] = R"(
devices = 2
[[fault]]
kind = "throttle"
device = 1
at = 10
for = 5
mhz = 900
[[fault]]
kind = "slow_hccs"
device = 1
at = 20
for = 5
factor = 0.25
)";

class MachineTest : public testing::Test {
 protected:
  void At(int64_t seconds) { clock_.raw_ns = seconds * kNsPerSecond; }

  ManualClock clock_;
  Node node_{*ParseScenario(kFaults), clock_, 0};
  Machine machine_{&node_};
};

TEST_F(MachineTest, AThrottledDeviceTakesLonger) {
  At(12);
  EXPECT_EQ(machine_.KernelFactor(1), 2) << "900 of 1800 MHz";
  EXPECT_LT(machine_.KernelFactor(0), 1.1) << "a dip at most";
  At(16);
  EXPECT_LT(machine_.KernelFactor(1), 1.1);
}

TEST_F(MachineTest, ASlowLinkIsSlowForAllThatUseIt) {
  At(12);
  EXPECT_EQ(machine_.LinkFactor(2), 1);
  At(22);
  EXPECT_EQ(machine_.LinkFactor(2), 4);
  EXPECT_EQ(machine_.LinkFactor(1), 1) << "the job does not use it";
}

TEST_F(MachineTest, AJobNeedsItsDevices) {
  EXPECT_TRUE(machine_.Check(2).ok());
  EXPECT_THAT(machine_.Check(3).message(), testing::HasSubstr("3 ranks, the scenario 2 devices"));
}

TEST(Machine, WithoutAScenarioNothingIsLonger) {
  const Machine machine(nullptr);
  EXPECT_EQ(machine.KernelFactor(63), 1);
  EXPECT_EQ(machine.LinkFactor(64), 1);
  EXPECT_TRUE(machine.Check(64).ok());
}

}  // namespace
}  // namespace profd::sim::app
