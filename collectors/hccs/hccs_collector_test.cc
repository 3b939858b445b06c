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

constexpr uint32_t kHccsChannel = abi::kChannelHccs;

TEST(HccsCollector, BandwidthIsTheDifferenceOverTheDevicesTime) {
  DecoderRig rig(kHccsCollector, MakeDevice(5), kHccsChannel);
  rig.Feed("1000:000000000 1000 5000\n");
  // 2000 and 1000 bytes in 20 ms.
  EXPECT_EQ(rig.Feed("1000:020000000 3000 6000\n"),
            "atlas_npu_hccs_bytes_total{npu=\"0\",direction=\"tx\"} 5000020000000 3000\n"
            "atlas_npu_hccs_bandwidth_bytes_per_second{npu=\"0\",link=\"all\",direction=\"tx\"} "
            "5000020000000 100000\n"
            "atlas_npu_hccs_bytes_total{npu=\"0\",direction=\"rx\"} 5000020000000 6000\n"
            "atlas_npu_hccs_bandwidth_bytes_per_second{npu=\"0\",link=\"all\",direction=\"rx\"} "
            "5000020000000 50000\n");
}

TEST(HccsCollector, ACounterThatWrapsCostsOneIntervalAndIsCounted) {
  DecoderRig rig(kHccsCollector, MakeDevice(5), kHccsChannel);
  rig.Feed("1000:000000000 1000 5000\n");
  EXPECT_EQ(rig.Feed("1001:000000000 10 6000\n"),
            "atlas_npu_hccs_bytes_total{npu=\"0\",direction=\"tx\"} 5001000000000 10\n"
            "atlas_npu_hccs_bytes_total{npu=\"0\",direction=\"rx\"} 5001000000000 6000\n");
  EXPECT_EQ(rig.decoder().bad_records(), 1u);
  EXPECT_NE(rig.Feed("1002:000000000 20 7000\n").find("direction=\"tx\"} 5002000000000 10\n"),
            std::string::npos);
  EXPECT_EQ(rig.decoder().bad_records(), 1u);
}

TEST(HccsCollector, HeadersAreNotRecordsAndRepeatedTimestampsAreBad) {
  DecoderRig rig(kHccsCollector, MakeDevice(5), kHccsChannel);
  rig.Feed("time_stamp(s):time_stamp(ns) send_amount receive_amount\n\n");
  EXPECT_EQ(rig.decoder().records(), 0u);
  EXPECT_NE(rig.Feed("1000:000000000 1 1\n"), "");
  EXPECT_EQ(rig.Feed("1000:000000000 2 2\n"), "");
  EXPECT_EQ(rig.Feed("999:000000000 2 2\n"), "");
  EXPECT_EQ(rig.decoder().bad_records(), 2u);
  rig.decoder().Reset();
  EXPECT_NE(rig.Feed("999:000000000 2 2\n"), "");
}

TEST(HccsCollector, DamagedLinesAreBad) {
  DecoderRig rig(kHccsCollector, MakeDevice(5), kHccsChannel);
  for (const char* line : {"1000:000000000 1\n", "1000:000000000 1 2 3\n", "1000 1 2\n", "x\n",
                           "1000:000000000 -1 2\n", "1000:000000000 1.5 2\n",
                           "1000:000000000 99999999999999999999 2\n", "1000:000000000 1 2"}) {
    uint64_t before = rig.decoder().bad_records();
    EXPECT_EQ(rig.Feed(line), "") << line;
    EXPECT_EQ(rig.decoder().bad_records(), before + 1) << line;
  }
}

}  // namespace
}  // namespace profd
