#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <string>
#include <vector>

#include "collectors/collector_list.h"
#include "collectors/testing/channel_fixture.h"
#include "driver/abi/hal_abi.h"

namespace profd {
namespace {

using testing::Bytes;
using testing::Concat;
using testing::DecoderRig;
using testing::MakeDevice;

constexpr uint32_t kFreqChannel = abi::kChannelLp;

struct Entry {
  uint64_t count;
  uint32_t value;
};

std::vector<std::byte> FreqRecord(uint32_t count, uint32_t type, std::vector<Entry> entries) {
  std::vector<std::byte> record = Bytes(count, type);
  for (const Entry& entry : entries) {
    record = Concat({record, Bytes(entry.count, entry.value, uint32_t{0})});
  }
  record.resize(888);
  return record;
}

constexpr uint64_t kPair = 50'000'000'000;      // device counter of the time base
constexpr uint64_t kStart = kPair + 5'000'000;  // 100 ms later the channel started

TEST(AicoreFreqCollector, MegahertzAndMillivoltsBecomeBaseUnits) {
  DecoderRig rig(kAicoreFreqCollector, MakeDevice(5), kFreqChannel);
  EXPECT_EQ(rig.Feed(FreqRecord(1, 0, {{kStart + 50, 1650}})),
            "atlas_npu_frequency_hertz{npu=\"0\",domain=\"aicore\"} 5000100001000 1650000000\n");
  EXPECT_EQ(rig.Feed(FreqRecord(1, 1, {{kStart + 50, 850}})),
            "atlas_npu_voltage_volts{npu=\"0\",rail=\"aicore\"} 5000100001000 0.85\n");
  EXPECT_EQ(rig.Feed(FreqRecord(1, 2, {{kStart + 50, 900}})),
            "atlas_npu_voltage_volts{npu=\"0\",rail=\"bus\"} 5000100001000 0.9\n");
}

TEST(AicoreFreqCollector, OfOldChangesOnlyTheLastCountsAndIsTheValueAtTheStart) {
  DecoderRig rig(kAicoreFreqCollector, MakeDevice(5), kFreqChannel);
  EXPECT_EQ(rig.Feed(FreqRecord(3, 0, {{10, 800}, {20, 1000}, {kStart + 50, 1650}})),
            "atlas_npu_frequency_hertz{npu=\"0\",domain=\"aicore\"} 5000100000000 1000000000\n"
            "atlas_npu_frequency_hertz{npu=\"0\",domain=\"aicore\"} 5000100001000 1650000000\n");
}

TEST(AicoreFreqCollector, ACountPastTheTableAnUnknownTypeAndRepeatedEntriesAreBad) {
  DecoderRig rig(kAicoreFreqCollector, MakeDevice(5), kFreqChannel);
  EXPECT_EQ(rig.Feed(FreqRecord(56, 0, {{kStart, 1}})), "");
  EXPECT_EQ(rig.Feed(FreqRecord(1, 3, {{kStart, 1}})), "");
  EXPECT_EQ(rig.decoder().bad_records(), 2u);
  EXPECT_NE(rig.Feed(FreqRecord(1, 0, {{kStart, 1}})), "");
  EXPECT_EQ(rig.Feed(FreqRecord(1, 0, {{kStart, 1}})), "");
  EXPECT_EQ(rig.decoder().bad_records(), 3u);
  EXPECT_EQ(rig.Feed(FreqRecord(0, 0, {})), "");
  EXPECT_EQ(rig.decoder().bad_records(), 3u);
}

TEST(AicoreFreqCollector, TakesAllFiftyFiveEntries) {
  DecoderRig rig(kAicoreFreqCollector, MakeDevice(5), kFreqChannel);
  std::vector<Entry> entries;
  for (uint32_t i = 0; i < 55; ++i) entries.push_back({kStart + i, 1000 + i});
  std::string lines = rig.Feed(FreqRecord(55, 0, entries));
  EXPECT_EQ(std::count(lines.begin(), lines.end(), '\n'), 55);
}

TEST(AicoreFreqCollector, WithoutACounterFrequencyRecordsHaveNoTime) {
  DecoderRig rig(kAicoreFreqCollector, MakeDevice(5), kFreqChannel);
  rig.time().device_counter_hz = 0;
  EXPECT_EQ(rig.Feed(FreqRecord(1, 0, {{kStart, 1}})), "");
  EXPECT_EQ(rig.decoder().bad_records(), 1u);
}

TEST(AicoreFreqCollector, AChangeAfterTheClocksWereCorrelatedAgainCounts) {
  DecoderRig rig(kAicoreFreqCollector, MakeDevice(5), kFreqChannel);
  EXPECT_NE(rig.Feed(FreqRecord(1, 0, {{kStart, 1000}})), "");
  rig.time().host_ns += 20'000'000'000;
  rig.time().device_count += 1'000'000'000;  // 20 s at 50 MHz
  EXPECT_EQ(rig.Feed(FreqRecord(1, 0, {{kStart + 1'000'000'000, 800}})),
            "atlas_npu_frequency_hertz{npu=\"0\",domain=\"aicore\"} 5020100000000 800000000\n");
  EXPECT_EQ(rig.decoder().bad_records(), 0u);
}

TEST(AicoreFreqCollector, PlansAFixedPeriodAndNoRate) {
  auto requests = kAicoreFreqCollector.plan(MakeDevice(5), {.hz = 50});
  ASSERT_EQ(requests.size(), 1u);
  EXPECT_EQ(requests[0].channel, 132u);
  EXPECT_EQ(requests[0].sample_period_ms, 100u);
  EXPECT_EQ(requests[0].effective_hz, 0);
  EXPECT_EQ(requests[0].user_data, Bytes(uint32_t{100}, uint32_t{1}));
}

}  // namespace
}  // namespace profd
