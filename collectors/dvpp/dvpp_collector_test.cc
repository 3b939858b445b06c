#include <gtest/gtest.h>

#include <cstdint>
#include <string>

#include "collectors/collector_list.h"
#include "collectors/testing/channel_fixture.h"
#include "driver/abi/hal_abi.h"

namespace profd {
namespace {

using testing::DecoderRig;
using testing::MakeDevice;

TEST(DvppCollector, ReportsTheMeanOfTheInstancesOfAnEngine) {
  DecoderRig rig(kDvppCollector, MakeDevice(0), abi::kChannelDvpp);
  EXPECT_EQ(rig.Feed("1000:0 5 0 2500 3 20 0 0 0 0 0\n"),
            "atlas_npu_dvpp_engine_utilization_ratio{npu=\"0\",engine=\"venc\",dvpp=\"0\","
            "engine_id=\"0\"} 5000000000000 0.2\n"
            "atlas_npu_dvpp_engine_busy_seconds{npu=\"0\",engine=\"venc\",dvpp=\"0\","
            "engine_id=\"0\"} 5000000000000 0.0025\n"
            "atlas_npu_dvpp_engine_frames{npu=\"0\",engine=\"venc\",dvpp=\"0\",engine_id=\"0\"} "
            "5000000000000 3\n");
  rig.Feed("1000:0 5 1 0 0 60 0 0 0 0 0\n");
  std::string lines = rig.Feed("1000:020000000 5 0 0 0 0 0 0 0 0 0\n");
  EXPECT_EQ(lines.substr(0, lines.find('\n')),
            "atlas_npu_dvpp_utilization_ratio{npu=\"0\",engine=\"venc\"} 5000000000000 0.4");
}

TEST(DvppCollector, UnknownEnginesOddLinesAndRepeatedTimestampsAreBad) {
  DecoderRig rig(kDvppCollector, MakeDevice(0), abi::kChannelDvpp);
  EXPECT_NE(rig.Feed("1000:0 5 0 0 0 0 0 0 0 0 0\n"), "");
  for (const char* line : {"1000:0 5 0 0 0 0 0 0 0 0 0\n", "1001:0 7 0 0 0 0 0 0 0 0 0\n",
                           "1001:0 5 0 0 0 0 0 0 0 0\n", "1001:0 1 5 0 0 0 0 0 0 0 0 0 0\n",
                           "1001:0 5 0 0 0 nan 0 0 0 0 0\n", "1001:0 5 0 0 0 % 0 0 0 0 0\n",
                           "1001:0 5 70000 0 0 0 0 0 0 0 0\n"}) {
    uint64_t before = rig.decoder().bad_records();
    EXPECT_EQ(rig.Feed(line), "") << line;
    EXPECT_EQ(rig.decoder().bad_records(), before + 1) << line;
  }
}

TEST(DvppCollector, PlansTheOldChannelAndOnePerEngineAsListed) {
  auto all = kDvppCollector.plan(MakeDevice(5), {.hz = 50});
  ASSERT_EQ(all.size(), 8u);
  for (const ChannelRequest& request : all) {
    EXPECT_EQ(request.sample_period_ms, 20u);
    EXPECT_TRUE(request.user_data.empty());
  }
  DeviceInfo old = MakeDevice(0);
  old.channels = {4, 6, 7};
  auto one = kDvppCollector.plan(old, {.hz = 50});
  ASSERT_EQ(one.size(), 1u);
  EXPECT_EQ(one[0].channel, 6u);
  EXPECT_TRUE(testing::ProbeWith(kDvppCollector, 4, {138, 139}).ok());
  // The driver of the 910 lists them.
  one = kDvppCollector.plan(MakeDevice(1), {.hz = 50});
  ASSERT_EQ(one.size(), 1u);
  EXPECT_EQ(one[0].channel, 6u);
  EXPECT_FALSE(testing::ProbeWith(kDvppCollector, 1, {138, 139}).ok());
  EXPECT_EQ(kDvppCollector.plan(MakeDevice(-1), {.hz = 50}).size(), 8u);
}

}  // namespace
}  // namespace profd
