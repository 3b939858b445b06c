#include <gtest/gtest.h>

#include <cstdint>
#include <string>
#include <vector>

#include "collectors/collector_list.h"
#include "collectors/testing/channel_fixture.h"
#include "driver/abi/hal_abi.h"

namespace profd {
namespace {

using testing::Bytes;
using testing::DecoderRig;
using testing::MakeDevice;

constexpr uint32_t kSocChannel = abi::kChannelStarsSocProfile;
constexpr uint16_t kMagic = 0x6BD3;
constexpr uint64_t kPair = 50'000'000'000;  // device counter of the time base, host ns 5e12

std::vector<std::byte> Sio(uint64_t count, uint16_t acc, uint32_t req_rx, uint16_t magic = kMagic) {
  std::vector<std::byte> record = Bytes(uint16_t{0b011001}, magic, uint32_t{0}, count, uint16_t{0},
                                        acc, uint64_t{0}, uint32_t{0}, req_rx);
  record.resize(64);
  return record;
}

TEST(SocProfileCollector, SioBytesAreOverTheTimeSinceTheDiesPreviousRecord) {
  DecoderRig rig(kSocProfileCollector, MakeDevice(5), kSocChannel);
  EXPECT_EQ(rig.Feed(Sio(kPair, 0, 5)), "");
  EXPECT_EQ(rig.Feed(Sio(kPair + 500'000, 1, 5)), "");  // another die
  // 1000 bytes in 20 ms.
  std::string lines = rig.Feed(Sio(kPair + 1'000'000, 0, 1000));
  EXPECT_EQ(lines.substr(0, lines.find('\n')),
            "atlas_npu_sio_bandwidth_bytes_per_second{npu=\"0\",die=\"0\",kind=\"req\","
            "direction=\"rx\"} 5000020000000 50000");
  EXPECT_EQ(rig.Feed(Sio(kPair + 1'000'000, 0, 1000)), "");  // no time passed
  EXPECT_EQ(rig.decoder().bad_records(), 1u);
}

TEST(SocProfileCollector, WrongMagicIsBadAndAnUnknownTypeIsPassedOver) {
  DecoderRig rig(kSocProfileCollector, MakeDevice(5), kSocChannel);
  rig.Feed(Sio(kPair, 0, 5, 0x1234));
  std::vector<std::byte> unknown = Sio(kPair, 0, 5);
  unknown[0] = std::byte{0b000001};
  rig.Feed(unknown);
  EXPECT_EQ(rig.decoder().bad_records(), 1u);
}

TEST(SocProfileCollector, AFloodOfDiesIsRefusedPastSixtyFour) {
  DecoderRig rig(kSocProfileCollector, MakeDevice(5), kSocChannel);
  for (uint16_t acc = 0; acc < 1000; ++acc) rig.Feed(Sio(kPair, acc, 1));
  EXPECT_EQ(rig.registry().total(), 64u * 8u);
  EXPECT_EQ(rig.decoder().bad_records(), 1000u - 64u);
}

// The configuration as u32 words.
std::vector<uint32_t> Words(const ChannelRequest& request) {
  std::vector<uint32_t> words;
  for (size_t at = 0; at + 4 <= request.user_data.size(); at += 4) {
    words.push_back(LoadUnchecked<uint32_t>(request.user_data, at));
  }
  return words;
}

TEST(SocProfileCollector, PlansNothingUnlessAPartIsRequested) {
  EXPECT_TRUE(kSocProfileCollector.plan(MakeDevice(5), {.hz = 50}).empty());
}

TEST(SocProfileCollector, PlansOnlyTheRequestedPartsInMilliseconds) {
  ChannelOptions options;
  options.values = {100, 0};  // by option: memory, interconnect
  auto requests = kSocProfileCollector.plan(MakeDevice(5), options);
  ASSERT_EQ(requests.size(), 1u);
  EXPECT_EQ(requests[0].channel, 52u);
  EXPECT_EQ(requests[0].sample_period_ms, 0u);
  EXPECT_EQ(requests[0].effective_hz, 100);
  EXPECT_EQ(Words(requests[0]),
            (std::vector<uint32_t>{1, 20, 1, 10, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0}));

  options = {};
  options.values = {0, 50};
  requests = kSocProfileCollector.plan(MakeDevice(5), options);
  ASSERT_EQ(requests.size(), 1u);
  EXPECT_EQ(requests[0].effective_hz, 50);
  EXPECT_EQ(Words(requests[0]),
            (std::vector<uint32_t>{0, 0, 0, 0, 1, 20, 1, 20, 0, 0, 0, 0, 0, 0}));
}

TEST(SocProfileCollector, PlansNoLinksOnAChipThatHasNone) {
  DeviceInfo device = MakeDevice(7);
  std::erase_if(device.channels, [](uint32_t channel) { return channel == abi::kChannelPcie || channel == abi::kChannelHccs; });
  EXPECT_TRUE(kSocProfileCollector.plan(device, {.values = {0, 50}}).empty());
  auto requests = kSocProfileCollector.plan(device, {.values = {100, 50}});
  ASSERT_EQ(requests.size(), 1u);
  EXPECT_EQ(Words(requests[0]), (std::vector<uint32_t>{1, 20, 1, 10, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0}));
}

TEST(SocProfileCollector, PlansMicrosecondsAndStreamsWhereTheChipTakesThem) {
  ChannelOptions options;
  options.values = {10'000, 50};
  DeviceInfo device = MakeDevice(15);
  device.mpam_ids = {4};
  auto requests = kSocProfileCollector.plan(device, options);
  ASSERT_EQ(requests.size(), 1u);
  EXPECT_EQ(requests[0].effective_hz, 10'000);
  EXPECT_EQ(Words(requests[0]), (std::vector<uint32_t>{1, 20, 1, 100, 1, 20'000, 1, 20'000, 1, 10'000, 0,
                                                       0, 0,  0, 100, 1, 4,      0, 0,      0, 0}));
  // These take microseconds but no streams.
  EXPECT_EQ(kSocProfileCollector.plan(MakeDevice(17), options)[0].user_data.size(), 56u);
}

// On the 950 its records have them too, whether or not channel 133 is read.
TEST(SocProfileCollector, SampleJsonNamesTheStreamsOfChipsThatHaveThemHere) {
  DeviceInfo a2 = MakeDevice(5);
  DeviceInfo a5 = MakeDevice(15);
  for (DeviceInfo* device : {&a2, &a5}) device->mpam_names = {"0", "1", "2", "3", "4", "5", "6", "7", "8"};
  ChannelOptions options;
  options.values = {50, 0};
  EXPECT_EQ(kSocProfileCollector.sample(options, std::vector<const DeviceInfo*>{&a2}), SampleFields());
  const std::vector<const DeviceInfo*> devices = {&a5};
  EXPECT_EQ(kSocProfileCollector.sample(options, devices),
            (SampleFields{{"sysLp", "on"}, {"qosEvents", "0,1,2,3,4,5,6,7"}}));
  options.values = {0, 50};
  EXPECT_EQ(kSocProfileCollector.sample(options, devices), (SampleFields{{"sysLp", "on"}}));
}

}  // namespace
}  // namespace profd
