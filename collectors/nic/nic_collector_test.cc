#include <fmt/format.h>
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

constexpr uint32_t kNicChannel = abi::kChannelNic;
constexpr size_t kSeriesPerPort = 15;
constexpr size_t kTotals = 4;

TEST(NicCollector, UtilizationIsOfMegabitsOfTwoToTheTwentieth) {
  DecoderRig rig(kNicCollector, MakeDevice(5), kNicChannel);
  // 100 Gbit/s; 4 GiB/s received: 2^32 * 8 / (100000 * 2^20) = 0.32768.
  std::string lines = rig.Feed("1000:000000001 100000 5 4294967296 1 2 3 4 0 0 0 0 0 0\n");
  EXPECT_NE(
      lines.find("atlas_npu_network_port_utilization_ratio{npu=\"0\",layer=\"nic\",port=\"0\","
                 "direction=\"rx\"} 5000000000001 0.32768\n"),
      std::string::npos);
  EXPECT_NE(lines.find("atlas_npu_network_port_speed_bytes_per_second{npu=\"0\",layer=\"nic\","
                       "port=\"0\"} 5000000000001 12500000000\n"),
            std::string::npos);
  EXPECT_NE(lines.find("errors_total{npu=\"0\",layer=\"nic\",port=\"0\",direction=\"rx\"} "
                       "5000000000001 3\n"),
            std::string::npos);
}

// driver-abi 3.6: nanoseconds without a width.
TEST(NicCollector, NanosecondsMayLackTheirZeros) {
  DecoderRig rig(kNicCollector, MakeDevice(5), kNicChannel);
  // 9,619,850 ns past device ns 1e12, which is host ns 5e12.
  const std::string lines = rig.Feed("1000:9619850 100000 5 4294967296 1 2 3 4 0 0 0 0 0 0\n");
  EXPECT_NE(lines.find("atlas_npu_network_port_speed_bytes_per_second{npu=\"0\",layer=\"nic\","
                       "port=\"0\"} 5000009619850 12500000000\n"),
            std::string::npos);
}

TEST(NicCollector, AnUnknownSpeedGivesNoUtilization) {
  DecoderRig rig(kNicCollector, MakeDevice(5), kNicChannel);
  std::string lines = rig.Feed("1000:0 0 5 5 1 2 3 4 0 0 0 0 0 0\n");
  EXPECT_EQ(lines.find("utilization"), std::string::npos);
  EXPECT_NE(lines.find("bandwidth"), std::string::npos);
}

TEST(NicCollector, ATotalDoesNotShrinkWhenAPortMissesAnInstant) {
  DecoderRig rig(kNicCollector, MakeDevice(5), kNicChannel);
  rig.Feed("1000:0 1 0 0 10 100 0 0 0 0 0 0 0 0 0\n1000:0 1 0 0 20 200 0 0 0 0 0 0 0 0 1\n");
  rig.Feed("1001:0 1 0 0 11 110 0 0 0 0 0 0 0 0 0\n");
  std::string lines = rig.Feed("1002:0 1 0 0 12 120 0 0 0 0 0 0 0 0 0\n");
  EXPECT_NE(lines.find("atlas_npu_network_bytes_total{npu=\"0\",direction=\"rx\",layer=\"nic\"} "
                       "5001000000000 310\n"),
            std::string::npos)
      << lines;
}

TEST(NicCollector, DamagedLinesAndRepeatedTimestampsAreBad) {
  DecoderRig rig(kNicCollector, MakeDevice(5), kNicChannel);
  EXPECT_NE(rig.Feed("1000:0 1 0 0 0 0 0 0 0 0 0 0 0 0 0\n"), "");
  for (const char* line :
       {"1000:0 1 0 0 0 0 0 0 0 0 0 0 0 0 0\n",      // same port, same timestamp
        "1001:0 1 0 0 0 0 0 0 0 0 0 0 0\n",          // 13 tokens
        "1001:0 1 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0\n",  // 17 tokens
        "1001:0 inf 0 0 0 0 0 0 0 0 0 0 0 0\n", "1001:0 1 0 0 -1 0 0 0 0 0 0 0 0 0\n",
        "1001:0 1 0 0 0 0 0 0 0 0 0 0 0 0 eth0\n"}) {
    uint64_t before = rig.decoder().bad_records();
    EXPECT_EQ(rig.Feed(line), "") << line;
    EXPECT_EQ(rig.decoder().bad_records(), before + 1) << line;
  }
}

TEST(NicCollector, APortFloodIsRefusedPastSixtyFour) {
  DecoderRig rig(kNicCollector, MakeDevice(5), kNicChannel);
  for (int port = 0; port < 1000; ++port) {
    rig.Feed(fmt::format("1000:0 1 0 0 0 0 0 0 0 0 0 0 0 0 {}\n", port));
  }
  EXPECT_EQ(rig.registry().total(), 64 * kSeriesPerPort + kTotals);
  EXPECT_EQ(rig.decoder().bad_records(), 1000u - 64u);
}

}  // namespace
}  // namespace profd
