#include <gtest/gtest.h>

#include <cstdint>

#include "collectors/collector_list.h"
#include "collectors/testing/channel_fixture.h"

namespace profd {
namespace {

using testing::Bytes;
using testing::DecoderRig;
using testing::MakeDevice;

std::vector<std::byte> Usage(uint32_t us, uint32_t event, uint64_t ddr, uint64_t hbm) {
  return Bytes(us, event, uint64_t{0}, ddr, hbm);
}

TEST(NpuMemCollector, UsageRecordsThatMakeNoSenseAreBad) {
  DecoderRig rig(kNpuMemCollector, MakeDevice(5), 131);
  EXPECT_EQ(rig.Feed(Usage(10, 2, 0, 0)), "");
  EXPECT_EQ(rig.Feed(Usage(10, 1, 0, UINT64_MAX)), "");
  EXPECT_NE(rig.Feed(Usage(10, 1, 0, 1)), "");
  EXPECT_EQ(rig.Feed(Usage(10, 1, 0, 1)), "");  // same timestamp again
  EXPECT_EQ(rig.decoder().bad_records(), 3u);
}

std::vector<std::byte> Module(uint32_t id, uint64_t count, uint64_t bytes) {
  return Bytes(id, uint32_t{0}, count, bytes);
}

TEST(NpuMemCollector, ModuleTimestampsAreHostCyclesOrNanosecondsWhenTheirLengthIsUnknown) {
  DecoderRig rig(kNpuMemCollector, MakeDevice(5), 142);
  EXPECT_EQ(rig.Feed(Module(3, 1'000'000'100, 4096)),
            "atlas_npu_module_memory_reserved_bytes{npu=\"0\",module=\"HCCL\"} 5000000001000 "
            "4096\n");
  rig.decoder().Reset();
  rig.time().host_counter_hz = 0;
  EXPECT_EQ(rig.Feed(Module(3, 777, 4096)),
            "atlas_npu_module_memory_reserved_bytes{npu=\"0\",module=\"HCCL\"} 777 4096\n");
}

TEST(NpuMemCollector, AModuleThatDoesNotKnowIsAbsentAndNotBad) {
  DecoderRig rig(kNpuMemCollector, MakeDevice(5), 142);
  EXPECT_EQ(rig.Feed(Module(3, 1'000'000'100, UINT64_MAX)), "");
  EXPECT_EQ(rig.decoder().bad_records(), 0u);
  EXPECT_EQ(rig.Feed(Module(3, 1'000'000'100, uint64_t{1} << 62)), "");
  EXPECT_EQ(rig.decoder().bad_records(), 1u);
}

TEST(NpuMemCollector, AModuleFloodIsRefusedPastSixtyFour) {
  DecoderRig rig(kNpuMemCollector, MakeDevice(5), 142);
  for (uint32_t id = 0; id < 10'000; ++id) rig.Feed(Module(id, 1'000'000'100, 1));
  EXPECT_EQ(rig.registry().total(), 64u);
  EXPECT_EQ(rig.decoder().bad_records(), 10'000u - 64u);
}

TEST(NpuMemCollector, PlansTheEventAndTimestampOfEachChannel) {
  auto requests = kNpuMemCollector.plan(MakeDevice(5), {.hz = 50, .host_counter_hz = 100e6});
  ASSERT_EQ(requests.size(), 3u);
  constexpr uint32_t kZero = 0;
  EXPECT_EQ(requests[0].channel, 130u);
  EXPECT_EQ(requests[0].user_data, Bytes(uint32_t{20}, kZero, kZero, kZero));
  EXPECT_EQ(requests[1].channel, 131u);
  EXPECT_EQ(requests[1].user_data, Bytes(uint32_t{20}, kZero, uint32_t{1}, kZero));
  EXPECT_EQ(requests[2].channel, 142u);
  EXPECT_EQ(requests[2].user_data, Bytes(uint32_t{20}, uint32_t{1}, kZero, kZero));
  requests = kNpuMemCollector.plan(MakeDevice(5), {.hz = 50});
  EXPECT_EQ(requests[2].user_data, Bytes(uint32_t{20}, kZero, kZero, kZero));
}

}  // namespace
}  // namespace profd
