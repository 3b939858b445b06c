#include "sim/device_model.h"

#include <gtest/gtest.h>

#include "sim/node.h"
#include "sim/test_support.h"

namespace profd::sim {
namespace {

constexpr int64_t kMs = 1'000'000;
constexpr int64_t kSecond = 1'000'000'000;

struct World {
  explicit World(const std::string& toml)
      : node(ParseScenario(toml).value(), clock, /*epoch_raw_ns=*/0) {}
  ManualClock clock;
  Node node;
};

TEST(DeviceClock, InvertsAndDriftsAFewPpm) {
  for (int device = 0; device < 16; ++device) {
    const DeviceClock clock(5, device, 50'000'000);
    EXPECT_LE(std::abs(clock.drift_ppb()), 5'000);
    EXPECT_GT(clock.offset_ns(), 0);
    int64_t last = 0;
    for (int64_t raw = 1; raw < 400 * 86'400 * kSecond; raw = raw * 3 + 12'345) {
      const int64_t there = clock.FromHost(raw);
      EXPECT_GT(there, last);
      last = there;
      EXPECT_NEAR(static_cast<double>(clock.ToHost(there) - raw), 0, 1) << raw;
    }
    EXPECT_EQ(clock.Counter(2 * kSecond) - clock.Counter(kSecond), 50'000'000u);
  }
}

TEST(DeviceModel, CountersNeverDecreaseAndStayBelowTheHardware) {
  World world(R"(
[[fault]]
kind = "throttle"
at = 2
for = 3
device = 0
[[fault]]
kind = "slow_hccs"
at = 3.3
for = 4
link = 2
device = 0
factor = 0.2
)");
  const DeviceModel& model = world.node.model(0);
  const ChipSpec& chip = model.chip();
  constexpr int64_t kStep = 3 * kMs;
  for (unsigned q = 0; q < kQuantities; ++q) {
    const auto quantity = static_cast<Quantity>(q);
    uint64_t last = model.Total(quantity, -5 * kMs);
    for (int64_t t = 0; t < 12 * kSecond; t += kStep) {
      const uint64_t now = model.Total(quantity, t);
      ASSERT_GE(now, last) << q << " at " << t;
      if (quantity >= kCubeBusy) {
        ASSERT_LE(now - last, static_cast<uint64_t>(kStep * 1.04)) << q;
      }
      last = now;
    }
  }
  uint64_t last_tx = 0, last_hbm = 0, last_pcie = 0;
  for (int64_t t = 0; t < 12 * kSecond; t += kStep) {
    for (unsigned link = 1; link <= chip.hccs_links; ++link) {
      const uint64_t bytes = model.LinkTx(link, t + kStep) - model.LinkTx(link, t);
      ASSERT_LE(static_cast<double>(bytes), chip.hccs_link_bytes_per_s * kStep / 1e9) << link;
    }
    const uint64_t hbm = model.Total(kHbmRead, t) + model.Total(kHbmWrite, t);
    const uint64_t pcie = model.Total(kPcieRxCompletion, t) + model.Total(kPcieRxPosted, t);
    if (t > 0) {
      ASSERT_LE(static_cast<double>(hbm - last_hbm), chip.hbm_bytes_per_s * kStep / 1e9);
      ASSERT_LE(static_cast<double>(pcie - last_pcie), chip.pcie_bytes_per_s * kStep / 1e9);
      ASSERT_GE(model.HccsTx(t), last_tx);
    }
    last_hbm = hbm;
    last_pcie = pcie;
    last_tx = model.HccsTx(t);
    ASSERT_LE(model.PowerWatts(t), chip.max_watts);
    ASSERT_GE(model.PowerWatts(t), chip.idle_watts * 0.98);
    ASSERT_LE(model.HbmUsedBytes(t), chip.hbm_mb << 20);
    ASSERT_LE(model.Total(kLlcHits, t), model.Total(kLlcLines, t));
  }
}

TEST(DeviceModel, AllReduceMovesHccsAndForwardMovesTheCores) {
  World world("");
  const DeviceModel& model = world.node.model(0);
  const int64_t step = 20 * 600 * kMs;
  const auto hccs = [&](int64_t a, int64_t b) {
    return model.HccsTx(step + b) - model.HccsTx(step + a);
  };
  const auto cube = [&](int64_t a, int64_t b) {
    return model.Total(kCubeBusy, step + b) - model.Total(kCubeBusy, step + a);
  };
  EXPECT_GT(hccs(460 * kMs, 530 * kMs), 20 * hccs(20 * kMs, 90 * kMs));
  EXPECT_GT(cube(20 * kMs, 90 * kMs), 5 * cube(460 * kMs, 530 * kMs));
}

TEST(DeviceModel, ThrottlingSlowsEveryDeviceAndHeatsOne) {
  World world(R"(
[[fault]]
kind = "throttle"
at = 60
for = 60
device = 3
mhz = 900
cause = 1
)");
  const DeviceModel& hot = world.node.model(3);
  const DeviceModel& other = world.node.model(0);
  EXPECT_EQ(hot.AicoreMhz(61 * kSecond), 900u);
  EXPECT_EQ(hot.ThrottleCause(61 * kSecond), 1u);
  EXPECT_EQ(other.ThrottleCause(61 * kSecond), 0u);
  EXPECT_EQ(hot.ThrottleCause(121 * kSecond), 0u);
  // Work per second of the whole node drops: the other device waits.
  const uint64_t before = other.HccsTx(60 * kSecond) - other.HccsTx(50 * kSecond);
  const uint64_t during = other.HccsTx(80 * kSecond) - other.HccsTx(70 * kSecond);
  EXPECT_LT(static_cast<double>(during), 0.75 * static_cast<double>(before));
  EXPECT_GT(hot.ChipCelsius(118 * kSecond), hot.ChipCelsius(59 * kSecond));
  EXPECT_LT(other.BusyRatio(kCubeBusy, 75 * kSecond) + 0.0, 1.0);
  // First-order lag: neither at once nor never.
  const double at_once = hot.ChipCelsius(60 * kSecond + 700 * kMs) - hot.ChipCelsius(59 * kSecond);
  EXPECT_LT(std::abs(at_once), 2.0);
}

TEST(DeviceModel, SlowLinkCarriesTheSameBytesLongerThanTheOthers) {
  World world(R"(
[[fault]]
kind = "slow_hccs"
device = 2
link = 4
factor = 0.25
)");
  const DeviceModel& model = world.node.model(2);
  // 600 ms step, all-reduce 90 -> 360 ms: step 870 ms. Look at the second half of an all-reduce
  // window.
  const int64_t step = 10 * 870 * kMs;
  const int64_t from = step + 650 * kMs, to = step + 790 * kMs;
  EXPECT_GT(model.LinkTx(4, to) - model.LinkTx(4, from), uint64_t{500'000'000});
  EXPECT_EQ(model.LinkTx(3, to) - model.LinkTx(3, from), 0u);
  const double ratio = static_cast<double>(model.LinkTx(4, 100 * step) - model.LinkTx(4, 0)) /
                       static_cast<double>(model.LinkTx(3, 100 * step) - model.LinkTx(3, 0));
  EXPECT_NEAR(ratio, 1, 0.03);
  EXPECT_GT(model.HccsRetries(4, kSecond), 0u);
  EXPECT_EQ(model.HccsRetries(3, kSecond), 0u);
  EXPECT_EQ(world.node.model(1).HccsRetries(4, kSecond), 0u);
}

TEST(DeviceModel, FrequencyEventsAreCompleteAndOrdered) {
  World world(R"(
[[fault]]
kind = "throttle"
at = 2.345
for = 1
device = 0
)");
  const DeviceModel& model = world.node.model(0);
  const std::vector<FreqEvent> all = model.FreqEvents(0, 60 * kSecond);
  ASSERT_GT(all.size(), 4u);
  unsigned mhz = model.AicoreMhz(0);
  for (const FreqEvent& event : all) {
    EXPECT_NE(event.mhz, mhz);
    EXPECT_EQ(model.AicoreMhz(event.t_ns), event.mhz);
    EXPECT_EQ(model.AicoreMhz(event.t_ns - 1), mhz);
    mhz = event.mhz;
  }
  // In pieces, the same.
  size_t pieces = 0;
  for (int64_t t = 0; t < 60 * kSecond; t += 100 * kMs) {
    pieces += model.FreqEvents(t, t + 100 * kMs).size();
    // The look-ahead never jumps over an event.
    const std::vector<FreqEvent> next = model.FreqEvents(t, 60 * kSecond);
    if (!next.empty()) {
      EXPECT_LE(model.NextFreqEvent(t), next.front().t_ns);
    }
    EXPECT_GT(model.NextFreqEvent(t), t);
  }
  EXPECT_EQ(pieces, all.size());
}

TEST(DeviceModel, FaultCountersStay) {
  World world(R"(
[[fault]]
kind = "roce_retrans"
at = 1
for = 2
device = 1
rate = 100
[[fault]]
kind = "ecc"
at = 1
for = 10
device = 1
single = 10
double = 1
)");
  const DeviceModel& model = world.node.model(1);
  EXPECT_EQ(model.RoceRetries(kSecond), 0u);
  EXPECT_EQ(model.RoceRetries(2 * kSecond), 100u);
  EXPECT_EQ(model.RoceRetries(30 * kSecond), 200u);
  EXPECT_EQ(world.node.model(0).RoceRetries(30 * kSecond), 0u);
  EXPECT_EQ(model.EccSingle(kSecond - 1), 0u);
  EXPECT_EQ(model.EccSingle(6 * kSecond), 6u);
  EXPECT_EQ(model.EccSingle(100 * kSecond), 10u);
  EXPECT_EQ(model.EccDouble(100 * kSecond), 1u);
}

TEST(DeviceModel, SeedDecidesEverything) {
  World a("seed = 5"), b("seed = 5"), c("seed = 6");
  const int64_t t = 123'456'789'012;
  EXPECT_EQ(a.node.model(2).HccsTx(t), b.node.model(2).HccsTx(t));
  EXPECT_EQ(a.node.model(2).PowerWatts(t), b.node.model(2).PowerWatts(t));
  EXPECT_NE(a.node.model(2).HccsTx(t), c.node.model(2).HccsTx(t));
  EXPECT_NE(a.node.model(2).HccsTx(t), a.node.model(3).HccsTx(t));
}

}  // namespace
}  // namespace profd::sim
