#include <gtest/gtest.h>

#include <cstdint>

#include "collectors/collector_list.h"
#include "collectors/testing/channel_fixture.h"
#include "driver/abi/hal_abi.h"

namespace profd {
namespace {

using testing::DecoderRig;
using testing::MakeDevice;

constexpr uint32_t kChannel = abi::kChannelRoce;

TEST(RoceCollector, DecodesTheGoldenCapture) {
  for (int chip : {1, 5}) {
    testing::ExpectGolden(kRoceCollector, MakeDevice(chip), kChannel, "roce/testdata/roce_16");
  }
}

TEST(RoceCollector, SurvivesGarbage) {
  testing::ExpectSurvivesGarbage(kRoceCollector, MakeDevice(5), kChannel, "roce/testdata/roce_16",
                                 64 * 15 + 4);
}

TEST(RoceCollector, PlansWithoutUserData) {
  auto requests = kRoceCollector.plan(MakeDevice(5), {.hz = 50});
  ASSERT_EQ(requests.size(), 1u);
  EXPECT_EQ(requests[0].channel, 129u);
  EXPECT_EQ(requests[0].sample_period_ms, 20u);
  EXPECT_TRUE(requests[0].user_data.empty());
}

TEST(RoceCollector, ReportsWhyItCannotRun) {
  Status status = testing::ProbeWith(kRoceCollector, 0, {4, 6, 7, 10});
  EXPECT_EQ(status.code(), StatusCode::kUnimplemented);
  EXPECT_EQ(status.message(), "not supported on Ascend310: no channel 129");
  DeviceInfo device = MakeDevice(0);
  device.channels = {4};
  testing::NoHost nothing;
  EXPECT_EQ(kRoceCollector.probe_device(nothing.host, device).message(), "no channel 129") << "the chip is the caller's to name";
  EXPECT_TRUE(testing::ProbeWith(kRoceCollector, 5, {4, 129}).ok());
}

}  // namespace
}  // namespace profd
