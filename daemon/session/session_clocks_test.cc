#include "daemon/session/session_clocks.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "daemon/data/testing/test_dump.h"
#include "daemon/session/testing/session_manager_fixture.h"
#include "driver/device_control.h"

namespace profd {
namespace {

// The clocks of the devices that it is given, as they were at any time.
class FakeHistory final : public RecorderHistory {
 public:
  int64_t Reach() override { return 0; }
  bool Records(uint16_t) const override { return false; }
  bool ClockAt(int device, int64_t, ClockPair* out) const override {
    const auto found = pairs.find(device);
    if (found == pairs.end()) return false;
    *out = found->second;
    return true;
  }
  std::shared_ptr<BlockSource> HostSince(uint16_t, int64_t) override { return nullptr; }
  std::unique_ptr<ActivitySource> ActivitySince(int64_t, const std::function<bool(const TrainingProcess&)>&) override {
    return nullptr;
  }
  bool RecordsActivity() const override { return false; }
  double HostHz(uint16_t) const override { return 0; }

  std::map<int, ClockPair> pairs;
};

class SessionClocksTest : public testing::SessionManagerTest {
 protected:
  SessionClocksTest() {
    devices_.control = &device_;
    for (int id = 0; id < 3; ++id) known_[static_cast<size_t>(id)].id = id;
  }

  void DeviceNs(int64_t ns) { hal_.Info(abi::kModuleSystem, abi::kInfoMonotonicRaw, 0, ns); }
  void ReadFirst(const std::vector<int>& devices) {
    bool done = false;
    clocks_->ReadFirst(devices, [&done] { done = true; });
    EXPECT_TRUE(time_.RunUntil([&done] { return done; }));
  }
  void TickClocks() { clocks_->Tick({0}, nullptr); }
  bool AwaitDeviceNs(int64_t ns) {
    return time_.RunUntil([&] { return three_.ClockOf(0) != nullptr && three_.ClockOf(0)->device_ns == ns; });
  }

  std::vector<DeviceInfo> known_ = std::vector<DeviceInfo>(3);
  DeviceControl device_{0, hal_.Library(), pump_, clock_};
  ChannelArbiter three_{{control_, host_, store_, router_, pump_},
                        {{&known_[0], &device_}, {&known_[1], &device_}, {&known_[2], &device_}}};
  std::shared_ptr<SessionClocks> clocks_ =
      std::make_shared<SessionClocks>(SessionClocks::Deps{control_, clock_, devices_, three_});
};

TEST_F(SessionClocksTest, ASessionBeginsStopsAndEndsAsTheClocksAre) {
  EXPECT_FALSE(clocks_->begun());
  clocks_->Begin();
  const int64_t raw = clock_.raw_ns, wall = clock_.wall_ns;
  const uint64_t counter = clock_.counter;
  clock_.Advance(kNsPerSecond);
  clocks_->Stop();
  clock_.Advance(kNsPerSecond);
  clocks_->End();
  EXPECT_TRUE(clocks_->begun());
  EXPECT_EQ(clocks_->start_raw_ns(), raw);
  EXPECT_EQ(clocks_->start_wall_ns(), wall);
  EXPECT_EQ(clocks_->requested_wall_ns(), 0);
  EXPECT_EQ(clocks_->host().host_ns, raw);
  EXPECT_EQ(clocks_->host().host_count, counter);
  EXPECT_EQ(clocks_->stop_raw_ns(), raw + kNsPerSecond);
  EXPECT_EQ(clocks_->end_wall_ns(), wall + 2 * kNsPerSecond);
  EXPECT_EQ(clocks_->Of(0), nullptr);
}

TEST_F(SessionClocksTest, AStartToComeIsKnownBefore) {
  const int64_t wall = clock_.wall_ns + 5 * kNsPerSecond;
  clocks_->BeginAt(wall, 5 * kNsPerSecond);
  EXPECT_EQ(clocks_->start_wall_ns(), wall);
  EXPECT_EQ(clocks_->start_raw_ns(), clock_.raw_ns + 5 * kNsPerSecond);
}

TEST_F(SessionClocksTest, InThePastTheClocksAreThoseOfThen) {
  FakeHistory past;
  past.pairs[kHostDevice].host_count = 1234;
  past.pairs[0] = {77, 88, 99, 0, 0};
  clock_.Advance(60 * kNsPerSecond);
  const int64_t raw = clock_.raw_ns, wall = clock_.wall_ns;
  clocks_->Begin();
  for (int device : {0, 1}) clocks_->Add(device, ClockPair{raw, 5, 6, 7, 0});
  clocks_->MoveBack(raw - 10 * kNsPerSecond, past);
  EXPECT_EQ(clocks_->requested_wall_ns(), wall);
  EXPECT_EQ(clocks_->start_wall_ns(), wall - 10 * kNsPerSecond);
  EXPECT_EQ(clocks_->start_raw_ns(), raw - 10 * kNsPerSecond);
  EXPECT_EQ(clocks_->host().host_ns, raw - 10 * kNsPerSecond);
  EXPECT_EQ(clocks_->host().host_count, 1234u);
  clocks_->TakePast(past);
  EXPECT_EQ(clocks_->Of(0)->device_ns, 88);
  EXPECT_EQ(clocks_->Of(1)->device_ns, 5);  // it has none of then
}

TEST_F(SessionClocksTest, WhatIsReadAtTheStartStays) {
  clocks_->Begin();
  ReadFirst({});
  EXPECT_EQ(clocks_->Of(0), nullptr);
  DeviceNs(7000);
  ReadFirst({0});
  ASSERT_NE(clocks_->Of(0), nullptr);
  EXPECT_EQ(clocks_->Of(0)->device_ns, 7000);
  EXPECT_EQ(clocks_->Of(0)->host_ns, clock_.raw_ns);
  ASSERT_NE(three_.ClockOf(0), nullptr);
  EXPECT_EQ(three_.ClockOf(0)->device_ns, 7000);
  // Every five minutes from the start on.
  clock_.Advance(300 * kNsPerSecond - 1);
  DeviceNs(8000);
  TickClocks();
  DeviceNs(9000);
  clock_.Advance(1);
  TickClocks();
  EXPECT_TRUE(AwaitDeviceNs(9000));
  EXPECT_EQ(clocks_->Of(0)->device_ns, 7000);
}

// A week has 2016 times five minutes.
TEST_F(SessionClocksTest, AManifestDoesNotGrowWithEachPair) {
  std::string path;
  const std::shared_ptr<WriterSession> dump = OpenTestDump(writer_, &path, {0});
  clocks_->Begin();
  DeviceNs(1);
  ReadFirst({0});
  for (int64_t n = 2; n <= 2017; ++n) {
    clock_.Advance(300 * kNsPerSecond);
    DeviceNs(n);
    clocks_->Tick({0}, dump);
    ASSERT_TRUE(AwaitDeviceNs(n));
  }
  std::vector<int64_t> ages;
  for (const ManifestClock& pair : FinishTestDump(*dump).clocks) {
    if (std::string_view(pair.when) == "periodic") ages.push_back((pair.clocks.host_ns - clocks_->start_raw_ns()) / kNsPerSecond);
  }
  // All of the first 100 times five minutes, then one in at least a hundredth of the age.
  ASSERT_GT(ages.size(), 100u);
  EXPECT_EQ(ages[99], 100 * 300);
  EXPECT_LT(ages.size(), 100u + 100 * 3.1);
  for (size_t i = 100; i < ages.size(); ++i) EXPECT_GE(ages[i] - ages[i - 1], std::max<int64_t>(300, ages[i - 1] / 100));
  EXPECT_GE(ages.back(), 2016 * 300 * 98 / 100);
}

TEST_F(SessionClocksTest, WhatCannotBeReadIsTriedAgainSoon) {
  clocks_->Begin();
  ReadFirst({0});  // the driver does not know
  EXPECT_EQ(clocks_->Of(0), nullptr);
  EXPECT_EQ(three_.ClockOf(0), nullptr);
  DeviceNs(8000);
  clock_.Advance(5 * kNsPerSecond - 1);
  TickClocks();
  DeviceNs(9000);
  clock_.Advance(1);
  TickClocks();
  EXPECT_TRUE(AwaitDeviceNs(9000));
  EXPECT_EQ(clocks_->Of(0), nullptr);  // not at the start
}

TEST_F(SessionClocksTest, ADeviceThatComesLaterHasItsOwn) {
  clocks_->Begin();
  clocks_->Add(1, Unavailable("it does not answer"));
  EXPECT_EQ(clocks_->Of(1), nullptr);
  clocks_->Add(2, ClockPair{10, 20, 30, 40, 0});
  EXPECT_EQ(clocks_->Of(2)->device_ns, 20);
  EXPECT_EQ(three_.ClockOf(2)->device_count, 30u);
}

}  // namespace
}  // namespace profd
