#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>
#include <vector>

#include "collectors/collector_list.h"
#include "collectors/testing/channel_fixture.h"
#include "driver/abi/channels.h"

namespace profd {
namespace {

using ::testing::ElementsAreArray;
using ::testing::HasSubstr;
using testing::DecoderRig;
using testing::MakeDevice;

// driver-abi 2.1: groups 0..9 are 11..40, group 10 is 41, 42, 55, groups 11..19 are 56..82, group 20 is
// 83, 84, 86, groups 21..24 are 87..98.
std::vector<uint32_t> Documented() {
  std::vector<uint32_t> ids;
  for (uint32_t id = 11; id <= 42; ++id) ids.push_back(id);
  for (uint32_t id = 55; id <= 84; ++id) ids.push_back(id);
  for (uint32_t id = 86; id <= 98; ++id) ids.push_back(id);
  return ids;
}

TEST(InstrCollector, StartsEveryCoreOfEveryGroupWithThePeriodInCycles) {
  std::vector<ChannelRequest> plan = kInstrCollector.plan(MakeDevice(5), {.values = {30000}});
  std::vector<uint32_t> ids;
  for (const ChannelRequest& request : plan) {
    ids.push_back(request.channel);
    EXPECT_TRUE(request.task_scheduler_owned);
    EXPECT_EQ(request.sample_period_ms, 0u);
    EXPECT_EQ(request.effective_hz, 0);
    ASSERT_EQ(request.user_data.size(), 8u);
    uint32_t words[2];
    std::memcpy(words, request.user_data.data(), sizeof words);
    EXPECT_EQ(words[0], 30000u);
    EXPECT_EQ(words[1], 0u);
  }
  std::sort(ids.begin(), ids.end());
  EXPECT_THAT(ids, ElementsAreArray(Documented()));
}

TEST(InstrCollector, StartsOnlyWhatTheDriverLists) {
  DeviceInfo device = MakeDevice(5);
  device.channels = {11, 55, 98};
  std::vector<ChannelRequest> plan = kInstrCollector.plan(device, {});
  ASSERT_EQ(plan.size(), 3u);
  uint32_t period = 0;
  std::memcpy(&period, plan[0].user_data.data(), sizeof period);
  EXPECT_EQ(period, 1000u);  // the vendor's default
}

TEST(InstrCollector, OfThe910BOnly) {
  for (int chip : {1, 4, 7, 15}) {
    EXPECT_TRUE(kInstrCollector.plan(MakeDevice(chip), {}).empty()) << chip;
  }
  DeviceInfo device = MakeDevice(5);
  device.channels = {1};
  testing::NoHost nothing;
  EXPECT_THAT(kInstrCollector.probe_device(nothing.host, device).message(), HasSubstr("no channel 11"));
  EXPECT_THAT(kInstrCollector.probe_device(nothing.host, MakeDevice(15)).message(),
              HasSubstr("Ascend910B (A2) only"));
}

TEST(InstrCollector, FilesAreNamedByGroupAndCore) {
  EXPECT_EQ(abi::FindChannelFormat(11)->file, "instr.group_0_aic");
  EXPECT_EQ(abi::FindChannelFormat(42)->file, "instr.group_10_aiv0");
  EXPECT_EQ(abi::FindChannelFormat(55)->file, "instr.group_10_aiv1");
  EXPECT_EQ(abi::FindChannelFormat(98)->file, "instr.group_24_aiv1");
}

TEST(InstrCollector, RecordsAreCountedByTheSizeOfTheirCore) {
  const std::vector<std::byte> bytes(192 + 64);
  DecoderRig cube(kInstrCollector, MakeDevice(5), 11);
  EXPECT_EQ(cube.Feed(std::span(bytes).first(192)), "");
  EXPECT_EQ(cube.decoder().records(), 2u);
  EXPECT_EQ(cube.decoder().bad_records(), 0u);
  DecoderRig vector(kInstrCollector, MakeDevice(5), 12);
  EXPECT_EQ(vector.Feed(bytes), "");
  EXPECT_EQ(vector.decoder().records(), 4u);
  DecoderRig cut(kInstrCollector, MakeDevice(5), 11);
  cut.Feed(std::span(bytes).first(100));
  EXPECT_EQ(cut.decoder().bad_records(), 1u);
}

TEST(InstrCollector, SampleJsonHasThePeriodOrTheVendorsDefault) {
  auto fields = [](int64_t cycles) {
    return SampleFields{{"instrProfiling", "on"}, {"instrProfilingFreq", cycles}};
  };
  EXPECT_EQ(kInstrCollector.sample({.values = {30000}}, {}), fields(30000));
  EXPECT_EQ(kInstrCollector.sample({}, {}), fields(1000));
}

}  // namespace
}  // namespace profd
