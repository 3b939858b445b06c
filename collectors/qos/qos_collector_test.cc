#include <gtest/gtest.h>

#include <cstdint>
#include <vector>

#include "collectors/collector_list.h"
#include "collectors/testing/channel_fixture.h"
#include "driver/abi/hal_abi.h"

namespace profd {
namespace {

using testing::Bytes;
using testing::DecoderRig;
using testing::MakeDevice;

constexpr uint32_t kQosChannel = abi::kChannelQos;

std::vector<std::byte> QosRecord(uint64_t count, uint32_t first, uint32_t second) {
  std::vector<std::byte> record = Bytes(uint64_t{0}, uint64_t{0}, count, first, second);
  record.resize(64);
  return record;
}

TEST(QosCollector, AStreamAppearsWithItsFirstTrafficAndStays) {
  constexpr uint64_t kPair = 50'000'000'000;
  DecoderRig rig(kQosCollector, MakeDevice(5), kQosChannel);
  EXPECT_EQ(rig.Feed(QosRecord(kPair + 50, 0, 0)), "");
  EXPECT_EQ(rig.Feed(QosRecord(kPair + 100, 0, 2)),
            "atlas_npu_qos_bandwidth_bytes_per_second{npu=\"0\",die=\"all\",stream=\"1\"} "
            "5000000002000 2097152\n");
  EXPECT_EQ(rig.Feed(QosRecord(kPair + 150, 0, 0)),
            "atlas_npu_qos_bandwidth_bytes_per_second{npu=\"0\",die=\"all\",stream=\"1\"} "
            "5000000003000 0\n");
  EXPECT_EQ(rig.Feed(QosRecord(kPair + 150, 0, 1)), "");
  EXPECT_EQ(rig.decoder().bad_records(), 1u);
}

TEST(QosCollector, PlansThePeriodAndStreamsInTheUserData) {
  ChannelOptions options{.hz = 50};
  EXPECT_TRUE(kQosCollector.plan(MakeDevice(5), options).empty());  // no streams known
  DeviceInfo device = MakeDevice(5);
  device.mpam_ids = {3, 9};
  auto requests = kQosCollector.plan(device, options);
  ASSERT_EQ(requests.size(), 1u);
  EXPECT_EQ(requests[0].channel, 133u);
  EXPECT_EQ(requests[0].sample_period_ms, 100u);
  EXPECT_EQ(requests[0].effective_hz, 50);
  std::vector<std::byte> expected =
      Bytes(uint32_t{20}, uint16_t{2}, uint16_t{0}, uint8_t{3}, uint8_t{9});
  expected.resize(28);
  EXPECT_EQ(requests[0].user_data, expected);
}

TEST(QosCollector, MoreStreamsThanTheDriverTakesAreCutOff) {
  ChannelOptions options{.hz = 50};
  DeviceInfo device = MakeDevice(5);
  device.mpam_ids.assign(300, 7);
  auto requests = kQosCollector.plan(device, options);
  ASSERT_EQ(requests.size(), 1u);
  ASSERT_EQ(requests[0].user_data.size(), 28u);
  EXPECT_EQ(LoadUnchecked<uint16_t>(requests[0].user_data, 4), 20u);
}

TEST(QosCollector, ReportsWhyItCannotRun) {
  EXPECT_EQ(testing::ProbeWith(kQosCollector, 1, {1, 3, 9}).message(),
            "not supported on Ascend910: no channel 133");
}

TEST(QosCollector, SampleJsonNamesTheStreamsOfTheFirstDeviceThatHasAny) {
  DeviceInfo none = MakeDevice(5);
  DeviceInfo named = MakeDevice(5);
  named.mpam_names = {"0", "1", "2", "3", "4", "5", "6", "7", "8", "9", "10"};  // a record has 10
  const std::vector<const DeviceInfo*> devices = {&none, &named};
  EXPECT_EQ(kQosCollector.sample({}, devices),
            (SampleFields{{"qosEvents", "0,1,2,3,4,5,6,7,8,9"}}));
  EXPECT_EQ(kQosCollector.sample({}, {}), (SampleFields{{"qosEvents", ""}}));
}

}  // namespace
}  // namespace profd
