#include "daemon/session/session_collectors.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <memory>

#include "daemon/session/testing/session_manager_fixture.h"

namespace profd {
namespace {

using ::testing::IsEmpty;
using ::testing::StartsWith;

class SessionCollectorsTest : public testing::SessionManagerTest {
 protected:
  SessionCollectorsTest() { clocks_->Begin(); }
  ~SessionCollectorsTest() override { host_.devices = {}; }

  PlannedCollector& Plan(std::string_view name) {
    PlannedCollector& planned = plan_.collectors.emplace_back();
    planned.index = static_cast<CollectorIndex>(FindCollector(name) - Collectors().data());
    planned.named = true;
    planned.hz = planned.poll.hz = 10;
    return planned;
  }
  // Without any channel. The arbiter has none of them, either.
  void HasDevices(const std::vector<std::string>& chips) {
    for (const std::string& chip : chips) {
      DeviceInfo& device = known_.emplace_back();
      device.id = static_cast<int>(known_.size()) - 1;
      device.chip_name = chip;
      plan_.devices.push_back(device.id);
    }
    host_.devices = known_;
  }
  // The driver is not called: true at once.
  bool Start() {
    bool settled = false;
    collectors_.Start(nullptr, 0, [&settled] { settled = true; });
    return settled;
  }
  v1::SessionStatus Filled(bool finished) const {
    v1::SessionStatus status;
    collectors_.Fill(finished, &status);
    return status;
  }
  Manifest Outcomes() const {
    Manifest manifest;
    collectors_.Outcomes()(manifest);
    return manifest;
  }

  SessionPlan plan_;
  std::vector<DeviceInfo> known_;
  std::shared_ptr<SessionClocks> clocks_ =
      std::make_shared<SessionClocks>(SessionClocks::Deps{control_, clock_, devices_, arbiter_});
  SessionCollectors collectors_{{control_, host_, store_, arbiter_, pollers_, nullptr, plan_, *clocks_}, "s"};
};

TEST_F(SessionCollectorsTest, WithoutAnyItIsSettledAndGoneAtOnce) {
  EXPECT_TRUE(Start());
  EXPECT_FALSE(collectors_.AnyRunning());
  EXPECT_FALSE(collectors_.AllUnsupported());
  EXPECT_THAT(collectors_.Unstarted(), IsEmpty());
  EXPECT_FALSE(collectors_.gone());
  bool gone = false;
  collectors_.Release([&gone] { gone = true; });
  EXPECT_TRUE(gone);
  EXPECT_TRUE(collectors_.gone());
}

TEST_F(SessionCollectorsTest, APollerRunsUntilItIsReleased) {
  Plan("host_mem");
  EXPECT_TRUE(Start());
  EXPECT_TRUE(collectors_.AnyRunning());
  EXPECT_THAT(collectors_.Unstarted(), IsEmpty());
  const v1::SessionStatus running = Filled(false);
  ASSERT_EQ(running.outcomes_size(), 1);
  EXPECT_EQ(running.outcomes(0).collector(), "host_mem");
  EXPECT_EQ(running.outcomes(0).result(), v1::Outcome::RESULT_RUNNING);
  EXPECT_EQ(running.outcomes(0).hz(), 10);
  EXPECT_FALSE(running.outcomes(0).has_device());
  EXPECT_EQ(Outcomes().channels.at(0).state, "running");
  bool gone = false;
  collectors_.Release([&gone] { gone = true; });
  EXPECT_TRUE(collectors_.released());
  EXPECT_FALSE(collectors_.gone());
  ASSERT_TRUE(time_.RunUntil([&gone] { return gone; }));
  EXPECT_TRUE(collectors_.gone());
  EXPECT_EQ(Filled(true).outcomes(0).result(), v1::Outcome::RESULT_FINISHED);
  const Manifest manifest = Outcomes();
  EXPECT_EQ(manifest.channels.at(0).collector, "host_mem");
  EXPECT_EQ(manifest.channels.at(0).state, "finished");
}

TEST_F(SessionCollectorsTest, DevicesOnWhichACollectorFaredAlikeAreOneLine) {
  HasDevices({"Ascend910B", "Ascend910B", "Ascend310P"});
  Plan("hbm");
  EXPECT_TRUE(Start());
  EXPECT_FALSE(collectors_.AnyRunning());
  EXPECT_TRUE(collectors_.AllUnsupported());
  EXPECT_EQ(Filled(false).outcomes_size(), 3);
  const std::vector<Problem> problems = collectors_.Unstarted();
  ASSERT_EQ(problems.size(), 2u);  // by their text
  EXPECT_THAT(problems[0].text, StartsWith("hbm on device 2: not supported on Ascend310P"));
  EXPECT_THAT(problems[1].text, StartsWith("hbm on devices 0, 1: not supported on Ascend910B"));
  for (const Problem& problem : problems) EXPECT_EQ(problem.kind, Problem::Kind::kUnsupported);
  EXPECT_EQ(Outcomes().channels.at(2).state, "unsupported");
}

TEST_F(SessionCollectorsTest, AllDevicesAreNotNamed) {
  HasDevices({"Ascend910B", "Ascend910B"});
  Plan("hbm");
  EXPECT_TRUE(Start());
  const std::vector<Problem> problems = collectors_.Unstarted();
  ASSERT_EQ(problems.size(), 1u);
  EXPECT_THAT(problems[0].text, StartsWith("hbm: not supported on Ascend910B"));
}

// Of an option's collectors the chip has some and lacks others.
TEST_F(SessionCollectorsTest, WhatNoOneAskedForByNameMayBeAbsent) {
  HasDevices({"Ascend910B"});
  Plan("hbm").named = false;
  Plan("llc").by_option = true;
  EXPECT_TRUE(Start());
  EXPECT_THAT(collectors_.Unstarted(), IsEmpty());
  EXPECT_FALSE(collectors_.AllUnsupported());
  EXPECT_EQ(Filled(false).outcomes_size(), 0);
}

TEST_F(SessionCollectorsTest, WithoutDevicesWhatWasAskedForByNameIsReported) {
  Plan("hbm");
  Plan("llc").by_option = true;
  EXPECT_TRUE(Start());
  const std::vector<Problem> problems = collectors_.Unstarted();
  ASSERT_EQ(problems.size(), 1u);
  EXPECT_EQ(problems[0].kind, Problem::Kind::kUnsupported);
  EXPECT_EQ(problems[0].text, "hbm: no devices on this node");
  ASSERT_EQ(Filled(false).outcomes_size(), 1);
  EXPECT_EQ(Outcomes().channels.at(0).state, "unsupported");
}

// A device that cannot be read is missing where another has the collector.
TEST_F(SessionCollectorsTest, ADeviceThatCannotBeReadHasFailed) {
  HasDevices({"Ascend910B", "Ascend910B"});
  known_[0].usable = Unavailable("lost communication");
  known_[1].channels = {1};
  plan_.devices = {0};
  Plan("hbm").by_option = true;
  EXPECT_TRUE(Start());
  const std::vector<Problem> problems = collectors_.Unstarted();
  ASSERT_EQ(problems.size(), 1u);
  EXPECT_EQ(problems[0].kind, Problem::Kind::kFailed);
  EXPECT_EQ(problems[0].text, "hbm on device 0: lost communication");
  EXPECT_FALSE(collectors_.AllUnsupported());
}

}  // namespace
}  // namespace profd
