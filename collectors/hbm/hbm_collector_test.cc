#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdint>

#include "collectors/collector_list.h"
#include "collectors/testing/channel_fixture.h"
#include "driver/abi/hal_abi.h"

namespace profd {
namespace {

using testing::Bytes;
using testing::Concat;
using testing::DecoderRig;
using testing::MakeDevice;

constexpr uint32_t kHbmChannel = abi::kChannelHbm;

std::vector<std::byte> HbmRecord(uint64_t us, uint64_t count, uint32_t event, uint32_t stack) {
  return Bytes(us, count, event, stack);
}

TEST(HbmCollector, CountsThirtyTwoBytesPerAccess) {
  DecoderRig rig(kHbmCollector, MakeDevice(5), kHbmChannel);
  EXPECT_EQ(rig.Feed(HbmRecord(10'000, 7, 1, 3)), "");
  // 1000 accesses of 32 bytes in 20 ms: 1.6 MB/s. Host time: start + 30 ms.
  EXPECT_EQ(rig.Feed(HbmRecord(30'000, 1000, 1, 3)),
            "atlas_npu_hbm_bandwidth_bytes_per_second{npu=\"0\",hbm=\"3\",direction=\"write\"} "
            "5000130000000 1600000\n"
            "atlas_npu_hbm_bytes_total{npu=\"0\",hbm=\"3\",direction=\"write\"} "
            "5000130000000 32000\n");
}

TEST(HbmCollector, TotalsGrowByEveryCountedIntervalAndSurviveARestartOfTheChannel) {
  const std::string total =
      "atlas_npu_hbm_bytes_total{npu=\"0\",hbm=\"0\",direction=\"read\"} ";
  DecoderRig rig(kHbmCollector, MakeDevice(5), kHbmChannel);
  rig.Feed(HbmRecord(10'000, 7, 0, 0));
  rig.Feed(HbmRecord(20'000, 100, 0, 0));
  EXPECT_THAT(rig.Feed(HbmRecord(30'000, 100, 0, 0)), ::testing::HasSubstr(total + "5000130000000 6400"));
  rig.Feed(HbmRecord(30'000, 100, 0, 0));  // twice
  rig.Feed(HbmRecord(35'000, uint64_t{1} << 62, 0, 0));  // damaged
  rig.decoder().Reset();
  rig.Feed(HbmRecord(1'000, 9, 0, 0));
  EXPECT_THAT(rig.Feed(HbmRecord(2'000, 1, 0, 0)), ::testing::HasSubstr(total + "5000102000000 6432"));
}

TEST(HbmCollector, RepeatedTimestampsAreBadAndResetForgets) {
  DecoderRig rig(kHbmCollector, MakeDevice(5), kHbmChannel);
  rig.Feed(Concat({HbmRecord(10'000, 1, 0, 0), HbmRecord(10'000, 1, 1, 0)}));
  EXPECT_EQ(rig.decoder().bad_records(), 0u);  // two events of one instant
  EXPECT_EQ(rig.Feed(HbmRecord(10'000, 5, 0, 0)), "");
  EXPECT_EQ(rig.Feed(HbmRecord(9'000, 5, 0, 0)), "");
  EXPECT_EQ(rig.decoder().bad_records(), 2u);
  rig.decoder().Reset();
  EXPECT_EQ(rig.Feed(HbmRecord(5'000, 5, 0, 0)), "");
  EXPECT_EQ(rig.decoder().bad_records(), 2u);
  EXPECT_NE(rig.Feed(HbmRecord(6'000, 5, 0, 0)), "");
}

TEST(HbmCollector, AnIdFloodIsRefusedPastSixtyFour) {
  DecoderRig rig(kHbmCollector, MakeDevice(5), kHbmChannel);
  for (uint32_t stack = 0; stack < 100'000; ++stack) rig.Feed(HbmRecord(stack, 1, 0, stack));
  EXPECT_EQ(rig.registry().total(), 256u);
  EXPECT_EQ(rig.decoder().bad_records(), 100'000u - 64u);
}

TEST(HbmCollector, UnknownEventsAndTruncatedRecordsAreBad) {
  DecoderRig rig(kHbmCollector, MakeDevice(5), kHbmChannel);
  rig.Feed(HbmRecord(1, 1, 2, 0));
  std::vector<std::byte> half = HbmRecord(2, 1, 0, 0);
  half.resize(13);
  rig.Feed(half);
  EXPECT_EQ(rig.decoder().records(), 2u);
  EXPECT_EQ(rig.decoder().bad_records(), 2u);
}

TEST(HbmCollector, AFullRegistryIsNotAnError) {
  DecoderRig rig(kHbmCollector, MakeDevice(5), kHbmChannel, 1);  // the bandwidth of reads
  rig.Feed(Concat({HbmRecord(1'000, 1, 0, 0), HbmRecord(1'000, 1, 1, 0)}));
  EXPECT_NE(rig.Feed(HbmRecord(2'000, 1, 0, 0)), "");
  EXPECT_EQ(rig.Feed(HbmRecord(2'000, 1, 1, 0)), "");
}

TEST(HbmCollector, PlansBothEventsOfAllMasters) {
  auto requests = kHbmCollector.plan(MakeDevice(5), {.hz = 30});
  ASSERT_EQ(requests.size(), 1u);
  EXPECT_EQ(requests[0].channel, 1u);
  EXPECT_EQ(requests[0].sample_period_ms, 33u);
  EXPECT_DOUBLE_EQ(requests[0].effective_hz, 1000.0 / 33);
  EXPECT_EQ(requests[0].user_data,
            Bytes(uint32_t{33}, uint32_t{0xFFFFFFFF}, uint32_t{2}, uint32_t{0}, uint32_t{1}));
  EXPECT_EQ(kHbmCollector.plan(MakeDevice(5), {.hz = 5000})[0].sample_period_ms, 10u);
}

}  // namespace
}  // namespace profd
