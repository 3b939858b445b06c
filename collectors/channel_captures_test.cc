// What all channel collectors have in common: their captures give the lines beside them, damage costs records only, and
// those that need no user data plan a channel at the period of the rate.
#include <gtest/gtest.h>

#include <cstddef>
#include <cstdint>
#include <vector>

#include "collectors/collector_list.h"
#include "collectors/testing/channel_fixture.h"
#include "driver/abi/hal_abi.h"

namespace profd {
namespace {

using testing::MakeDevice;

// Per port 15 series, at most 64 ports; the NIC's four totals.
constexpr size_t kMaxOfPorts = 64 * 15 + 4;
// Per type at most 64 sources: QoS 8, SIO 8, acc PMU 4, chip transfer 2, low power 21; levels 2.
constexpr size_t kMaxOfSoc = 64 * (8 + 8 + 4 + 2 + 21) + 2;

struct Capture {
  const CollectorEntry* collector;
  const char* name;
  uint32_t channel;
  std::vector<int> chips;  // garbage is decoded as of the last one
  size_t max_series = 0;  // 0: another capture of the layout is damaged
};

std::vector<Capture> Captures() {
  return {
      {&kAicoreFreqCollector, "aicore_freq/testdata/lpm_freq", abi::kChannelLp, {7}},
      {&kAicoreFreqCollector, "aicore_freq/testdata/lpm_info", abi::kChannelLp, {5}, 3},
      {&kDdrCollector, "ddr/testdata/ddr_310p", abi::kChannelDdr, {1, 2, 3, 4}, 256},
      {&kDdrCollector, "ddr/testdata/ddr_310b", abi::kChannelDdr, {0, 5, 7}},
      {&kDvppCollector, "dvpp/testdata/dvpp_11", abi::kChannelDvpp, {0}},
      {&kDvppCollector, "dvpp/testdata/dvpp_12", abi::kChannelDvpp, {5}, 64 * 3 + 7},
      {&kDvppCollector, "dvpp/testdata/dvpp_12", abi::kChannelDvppVenc, {5}},
      {&kHbmCollector, "hbm/testdata/hbm", abi::kChannelHbm, {1, 5}, 256},
      {&kHccsCollector, "hccs/testdata/hccs", abi::kChannelHccs, {1, 5}, 4},
      // 16 slices, two operations, two metrics; four totals.
      {&kLlcCollector, "llc/testdata/llc_read", abi::kChannelLlc, {5}, 16 * 4 + 4},
      {&kLlcCollector, "llc/testdata/llc_write", abi::kChannelLlc, {1}},
      {&kNicCollector, "nic/testdata/nic_14", abi::kChannelNic, {5}},
      {&kNicCollector, "nic/testdata/nic_15", abi::kChannelNic, {5}, kMaxOfPorts},
      {&kNicCollector, "nic/testdata/nic_16", abi::kChannelNic, {5}},
      {&kNpuMemCollector, "npu_mem/testdata/npu_mem_app", 130, {1, 5}, 4},
      {&kNpuMemCollector, "npu_mem/testdata/npu_mem_device", 131, {1, 5}, 4},
      {&kNpuMemCollector, "npu_mem/testdata/npu_module_mem", 142, {1, 5}, 64},
      {&kPcieCollector, "pcie/testdata/pcie", abi::kChannelPcie, {1, 5}, 21},
      {&kQosCollector, "qos/testdata/qos", abi::kChannelQos, {5}, 10},
      {&kRoceCollector, "roce/testdata/roce_16", abi::kChannelRoce, {1, 5}, kMaxOfPorts},
      {&kSocProfileCollector, "soc_profile/testdata/soc_910b", abi::kChannelStarsSocProfile, {5}, kMaxOfSoc},
      {&kSocProfileCollector, "soc_profile/testdata/soc_950", abi::kChannelStarsSocProfile, {16, 15}, kMaxOfSoc},
  };
}

TEST(ChannelCaptures, AreDecodedAsExpected) {
  for (const Capture& capture : Captures()) {
    for (int chip : capture.chips) {
      testing::ExpectGolden(*capture.collector, MakeDevice(chip), capture.channel, capture.name);
    }
  }
}

TEST(ChannelCaptures, GarbageIsSurvived) {
  for (const Capture& capture : Captures()) {
    if (capture.max_series == 0) continue;
    SCOPED_TRACE(capture.name);
    testing::ExpectSurvivesGarbage(*capture.collector, MakeDevice(capture.chips.back()), capture.channel, capture.name,
                                   capture.max_series);
  }
}

TEST(ChannelPlans, WithoutUserDataAreAChannelAndThePeriodOfTheRate) {
  struct Planned {
    const CollectorEntry* collector;
    double hz;
    uint32_t channel;
    uint32_t period_ms;
  };
  for (const Planned& wanted : std::vector<Planned>{
           {&kHccsCollector, 50, 9, 20}, {&kNicCollector, 100, 4, 10}, {&kPcieCollector, 7, 3, 142}, {&kRoceCollector, 50, 129, 20}}) {
    SCOPED_TRACE(wanted.channel);
    const std::vector<ChannelRequest> requests = wanted.collector->plan(MakeDevice(5), {.hz = wanted.hz});
    ASSERT_EQ(requests.size(), 1u);
    EXPECT_EQ(requests[0].channel, wanted.channel);
    EXPECT_EQ(requests[0].sample_period_ms, wanted.period_ms);
    EXPECT_TRUE(requests[0].user_data.empty());
  }
}

}  // namespace
}  // namespace profd
