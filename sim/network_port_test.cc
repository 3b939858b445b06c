#include "sim/network_port.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include "base/clock.h"
#include "sim/node.h"

namespace profd::sim {
namespace {

constexpr int64_t kS = kNsPerSecond;

Scenario Of(const char* text) {
  Result<Scenario> scenario = ParseScenario(text);
  EXPECT_TRUE(scenario.ok()) << scenario.status().message();
  return scenario.value_or(Scenario{});
}

TEST(NetworkPort, IsUpAndLitWhenNothingIsWrong) {
  const Scenario scenario;
  for (int device = 0; device < scenario.devices; ++device) {
    const NetworkPort port(scenario, device);
    EXPECT_TRUE(port.LinkUp(0));
    EXPECT_EQ(port.LinkUps(3600 * kS), 1u);
    const std::optional<OpticalValues> values = port.Optics(60 * kS);
    ASSERT_TRUE(values.has_value());
    EXPECT_GT(values->celsius, 30);
    EXPECT_LT(values->celsius, 70);
    EXPECT_NEAR(values->millivolts, 3300, 20);
    for (double power : values->tx_milliwatts) EXPECT_NEAR(power, 1.0, 0.1);
    for (double power : values->rx_milliwatts) EXPECT_NEAR(power, 0.8, 0.1);
  }
}

TEST(NetworkPort, DownOnceAndUpAgain) {
  const Scenario scenario = Of("[[fault]]\nkind = \"link_down\"\nat = 10\nfor = 5\ndevice = 2\n");
  const NetworkPort port(scenario, 2);
  EXPECT_TRUE(port.LinkUp(10 * kS - 1));
  EXPECT_FALSE(port.LinkUp(10 * kS));
  EXPECT_EQ(port.LinkUps(15 * kS - 1), 1u);
  EXPECT_TRUE(port.LinkUp(15 * kS));
  EXPECT_EQ(port.LinkUps(15 * kS), 2u);
  EXPECT_TRUE(NetworkPort(scenario, 3).LinkUp(12 * kS));
  EXPECT_EQ(NetworkPort(scenario, 3).LinkUps(20 * kS), 1u);
}

// The count goes up exactly when the link does, whatever cuts the last period.
TEST(NetworkPort, FlapsAreCountedWhenTheyHappen) {
  for (const char* length : {"40", "43", "47", "5"}) {
    const Scenario scenario = Of(
        (std::string("[[fault]]\nkind = \"link_down\"\nat = 10\nfor = ") + length + "\nflap = 10\n")
            .c_str());
    const NetworkPort port(scenario, 0);
    uint64_t expected = 1;
    bool before = true;
    for (int64_t t = 0; t < 80 * kS; t += kS / 2) {
      const bool up = port.LinkUp(t);
      if (up && !before) ++expected;
      before = up;
      ASSERT_EQ(port.LinkUps(t), expected) << length << " at " << t;
    }
    EXPECT_TRUE(before);
  }
}

TEST(NetworkPort, FaultsOfTheModule) {
  const Scenario scenario = Of(R"(
[[fault]]
kind = "optical"
mode = "low_power"
lane = 2
factor = 0.1
device = 0
at = 10
[[fault]]
kind = "optical"
device = 1
at = 10
for = 10
)");
  const NetworkPort dim(scenario, 0);
  EXPECT_NEAR(dim.Optics(9 * kS)->rx_milliwatts[2], 0.8, 0.1);
  EXPECT_NEAR(dim.Optics(10 * kS)->rx_milliwatts[2], 0.08, 0.01);
  EXPECT_NEAR(dim.Optics(10 * kS)->rx_milliwatts[1], 0.8, 0.1);
  EXPECT_TRUE(dim.LinkUp(10 * kS));
  const NetworkPort gone(scenario, 1);
  EXPECT_EQ(gone.Optics(10 * kS), std::nullopt);
  EXPECT_FALSE(gone.LinkUp(10 * kS));
  EXPECT_TRUE(gone.Optics(20 * kS).has_value());
  EXPECT_EQ(gone.LinkUps(20 * kS), 2u);
}

// The stand-in for hccn_tool counts from the start of the process that runs it.
TEST(NetworkPort, TheStartOfAnotherProcessIsKnown) {
  // Both are read against clocks that tick meanwhile.
  EXPECT_LE(ProcessStartRawNs(::getppid()), ProcessStartRawNs() + kNsPerMs);
}

}  // namespace
}  // namespace profd::sim
