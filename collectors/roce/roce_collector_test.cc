#include <gtest/gtest.h>

#include "collectors/collector_list.h"
#include "collectors/testing/channel_fixture.h"

namespace profd {
namespace {

TEST(RoceCollector, ReportsWhyItCannotRun) {
  Status status = testing::ProbeWith(kRoceCollector, 0, {4, 6, 7, 10});
  EXPECT_EQ(status.code(), StatusCode::kUnimplemented);
  EXPECT_EQ(status.message(), "not supported on Ascend310: no channel 129");
  DeviceInfo device = testing::MakeDevice(0);
  device.channels = {4};
  testing::NoHost nothing;
  EXPECT_EQ(kRoceCollector.probe_device(nothing.host, device).message(), "no channel 129") << "the chip is the caller's to name";
  EXPECT_TRUE(testing::ProbeWith(kRoceCollector, 5, {4, 129}).ok());
}

}  // namespace
}  // namespace profd
