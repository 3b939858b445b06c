#include <gtest/gtest.h>

#include <array>
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

constexpr uint32_t kLlcChannel = abi::kChannelLlc;

constexpr std::array<uint32_t, 8> kRead = {0x00, 0x01, 0x02, 0x13, 0x20, 0x22, 0x34, 0x36};

// All events of an instant of slice 0; e[i] = counts[i].
std::vector<std::byte> Instant(uint64_t us, std::array<uint64_t, 8> counts,
                               std::array<uint32_t, 8> codes = kRead) {
  std::vector<std::byte> all;
  for (size_t i = 0; i < counts.size(); ++i) {
    all = Concat({all, Bytes(us, counts[i], codes[i], uint32_t{0})});
  }
  return all;
}

TEST(LlcCollector, ComputesHitRatioAndThroughput) {
  DecoderRig rig(kLlcCollector, MakeDevice(5), kLlcChannel);
  rig.Feed(Instant(10'000, {1, 1, 1, 1, 1, 1, 1, 1}));
  // Hits 30+20+10+15 = 75 of 60+40 = 100; (1000+500) lines of 64 bytes in 10 ms.
  EXPECT_EQ(rig.Feed(Instant(20'000, {1000, 500, 30, 20, 60, 10, 40, 15})),
            "atlas_npu_llc_hit_ratio{npu=\"0\",op=\"read\"} 5000110000000 2\n"
            "atlas_npu_llc_slice_hit_ratio{npu=\"0\",op=\"read\",llc=\"0\"} 5000120000000 0.75\n"
            "atlas_npu_llc_slice_throughput_bytes_per_second{npu=\"0\",op=\"read\",llc=\"0\"} "
            "5000120000000 9600000\n"
            "atlas_npu_llc_hit_ratio{npu=\"0\",op=\"read\"} 5000120000000 0.75\n"
            "atlas_npu_llc_throughput_bytes_per_second{npu=\"0\"} 5000120000000 9600000\n"
            "atlas_npu_llc_bytes_total{npu=\"0\"} 5000120000000 96000\n");
}

TEST(LlcCollector, NoLookupsGiveNoRatio) {
  DecoderRig rig(kLlcCollector, MakeDevice(5), kLlcChannel);
  EXPECT_EQ(rig.Feed(Instant(10'000, {0, 0, 0, 0, 0, 0, 0, 0})), "");
  EXPECT_EQ(rig.Feed(Instant(20'000, {0, 0, 0, 0, 0, 0, 0, 0})),
            "atlas_npu_llc_slice_throughput_bytes_per_second{npu=\"0\",op=\"read\",llc=\"0\"} "
            "5000120000000 0\n"
            "atlas_npu_llc_throughput_bytes_per_second{npu=\"0\"} 5000120000000 0\n"
            "atlas_npu_llc_bytes_total{npu=\"0\"} 5000120000000 0\n");
}

TEST(LlcCollector, AnInstantWithoutAllItsEventsIsGivenUp) {
  DecoderRig rig(kLlcCollector, MakeDevice(5), kLlcChannel);
  std::vector<std::byte> partial = Instant(10'000, {1, 2, 3, 4, 5, 6, 7, 8});
  partial.resize(partial.size() - 24);
  EXPECT_EQ(rig.Feed(partial), "");
  EXPECT_NE(rig.Feed(Instant(20'000, {1, 2, 3, 4, 5, 6, 7, 8})), "");
}

TEST(LlcCollector, RepeatedEventsUnlistedValuesAndOldTimestampsAreBad) {
  DecoderRig rig(kLlcCollector, MakeDevice(5), kLlcChannel);
  rig.Feed(Instant(20'000, {1, 2, 3, 4, 5, 6, 7, 8}));
  rig.Feed(Bytes(uint64_t{20'000}, uint64_t{1}, uint32_t{0x02}, uint32_t{0}));
  rig.Feed(Bytes(uint64_t{10'000}, uint64_t{1}, uint32_t{0x02}, uint32_t{0}));
  rig.Feed(Bytes(uint64_t{30'000}, uint64_t{1}, uint32_t{0x99}, uint32_t{0}));
  rig.Feed(Bytes(uint64_t{30'000}, uint64_t{1}, uint32_t{0x02}, uint32_t{16}));
  EXPECT_EQ(rig.decoder().bad_records(), 4u);
}

TEST(LlcCollector, PlansReadsOrWrites) {
  auto read = kLlcCollector.plan(MakeDevice(5), {.hz = 100});
  ASSERT_EQ(read.size(), 1u);
  EXPECT_EQ(read[0].channel, 8u);
  EXPECT_EQ(read[0].sample_period_ms, 10u);
  EXPECT_EQ(read[0].user_data, Bytes(uint32_t{10}, uint32_t{1}));
  auto write = kLlcCollector.plan(MakeDevice(5), {.hz = 100, .values = {0, 1}});
  EXPECT_EQ(write[0].user_data, Bytes(uint32_t{10}, uint32_t{2}));
}

TEST(LlcCollector, The310HasNoChannelForIt) {
  EXPECT_TRUE(kLlcCollector.plan(MakeDevice(0), {.hz = 50}).empty());
  EXPECT_EQ(testing::ProbeWith(kLlcCollector, 0, {8}).code(), StatusCode::kUnimplemented);
  EXPECT_TRUE(testing::ProbeWith(kLlcCollector, 1, {8}).ok());
}

TEST(LlcCollector, SampleJsonNamesWhatIsMeasured) {
  EXPECT_EQ(kLlcCollector.sample({}, {}), (SampleFields{{"llc_profiling", "read"}}));
  EXPECT_EQ(kLlcCollector.sample({.values = {0, 1}}, {}),
            (SampleFields{{"llc_profiling", "write"}}));
}

}  // namespace
}  // namespace profd
