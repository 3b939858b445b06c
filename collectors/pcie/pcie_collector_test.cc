#include <gtest/gtest.h>

#include <cstdint>
#include <string>

#include "collectors/collector_list.h"
#include "collectors/testing/channel_fixture.h"
#include "driver/abi/hal_abi.h"

namespace profd {
namespace {

using testing::Bytes;
using testing::DecoderRig;
using testing::MakeDevice;

constexpr uint32_t kPcieChannel = abi::kChannelPcie;

std::vector<std::byte> PcieRecord(uint64_t ns, uint32_t tx_min, uint32_t tx_max) {
  std::vector<std::byte> record = Bytes(ns, uint32_t{0}, tx_min, tx_max, uint32_t{5});
  record.resize(96);
  StoreUnchecked<uint32_t>(record, 12 + 3 * 12 + 8, 1500);  // average latency, ns
  return record;
}

TEST(PcieCollector, BytesPerMicrosecondAndNanosecondsBecomeBaseUnits) {
  DecoderRig rig(kPcieCollector, MakeDevice(5), kPcieChannel);
  std::string lines = rig.Feed(PcieRecord(1'000'000'000'000, 0xFFFFF, 1022));
  EXPECT_NE(lines.find("direction=\"tx\",type=\"posted\",stat=\"min\"} 5000000000000 0\n"),
            std::string::npos);
  EXPECT_NE(lines.find("direction=\"tx\",type=\"posted\",stat=\"max\"} 5000000000000 1022000000\n"),
            std::string::npos);
  EXPECT_NE(
      lines.find(
          "atlas_npu_pcie_read_latency_seconds{npu=\"0\",stat=\"avg\"} 5000000000000 1.5e-06"),
      std::string::npos);
}

TEST(PcieCollector, AMaximumBelowTheMinimumIsABadRecord) {
  DecoderRig rig(kPcieCollector, MakeDevice(5), kPcieChannel);
  EXPECT_EQ(rig.Feed(PcieRecord(1'000'000'000'000, 10, 9)), "");
  EXPECT_EQ(rig.decoder().bad_records(), 1u);
  EXPECT_NE(rig.Feed(PcieRecord(1'000'000'000'000, 10, 10)), "");
}

TEST(PcieCollector, RepeatedTimestampsAreBad) {
  DecoderRig rig(kPcieCollector, MakeDevice(5), kPcieChannel);
  EXPECT_NE(rig.Feed(PcieRecord(7, 0, 0)), "");
  EXPECT_EQ(rig.Feed(PcieRecord(7, 0, 0)), "");
  EXPECT_EQ(rig.decoder().bad_records(), 1u);
  rig.decoder().Reset();
  EXPECT_NE(rig.Feed(PcieRecord(7, 0, 0)), "");
}

}  // namespace
}  // namespace profd
