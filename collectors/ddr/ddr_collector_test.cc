#include <gtest/gtest.h>

#include <cstdint>
#include <string>

#include "collectors/collector_list.h"
#include "collectors/testing/channel_fixture.h"
#include "driver/abi/hal_abi.h"

namespace profd {
namespace {

using testing::Bytes;
using testing::Concat;
using testing::DecoderRig;
using testing::MakeDevice;

constexpr uint32_t kDdrChannel = abi::kChannelDdr;

std::vector<std::byte> DdrRecord(uint32_t us, uint32_t count, uint32_t event) {
  return Bytes(us, count, event, uint32_t{0}, uint32_t{0xFFFFFFFF});
}

TEST(DdrCollector, AnAccessIsAsWideAsTheChipsBus) {
  const char* line =
      "atlas_npu_ddr_bandwidth_bytes_per_second{npu=\"0\",ddr=\"0\",direction=\"read\"} "
      "5000120000000 ";
  DecoderRig wide(kDdrCollector, MakeDevice(4), kDdrChannel);
  wide.Feed(DdrRecord(10'000, 1, 0));
  const char* total =
      "atlas_npu_ddr_bytes_total{npu=\"0\",ddr=\"0\",direction=\"read\"} 5000120000000 ";
  EXPECT_EQ(wide.Feed(DdrRecord(20'000, 1000, 0)),
            std::string(line) + "3200000\n" + total + "32000\n");
  DecoderRig narrow(kDdrCollector, MakeDevice(7), kDdrChannel);
  narrow.Feed(DdrRecord(10'000, 1, 0));
  EXPECT_EQ(narrow.Feed(DdrRecord(20'000, 1000, 0)),
            std::string(line) + "1600000\n" + total + "16000\n");
}

TEST(DdrCollector, RepeatedTimestampsAndUnknownEventsAreBad) {
  DecoderRig rig(kDdrCollector, MakeDevice(4), kDdrChannel);
  rig.Feed(Concat({DdrRecord(10, 1, 0), DdrRecord(10, 1, 0), DdrRecord(20, 1, 2)}));
  EXPECT_EQ(rig.decoder().records(), 3u);
  EXPECT_EQ(rig.decoder().bad_records(), 2u);
}

TEST(DdrCollector, PlansBothEventsOfAllMasters) {
  auto requests = kDdrCollector.plan(MakeDevice(4), {.hz = 50});
  ASSERT_EQ(requests.size(), 1u);
  EXPECT_EQ(requests[0].channel, 7u);
  EXPECT_EQ(requests[0].sample_period_ms, 20u);
  EXPECT_EQ(requests[0].effective_hz, 50);
  EXPECT_EQ(requests[0].user_data,
            Bytes(uint32_t{20}, uint32_t{0xFFFFFFFF}, uint32_t{2}, uint32_t{0}, uint32_t{1}));
}

}  // namespace
}  // namespace profd
