// The HAL half of driver/ against the simulator's libascend_hal.so, loaded as the vendor's would
// be. PROFD_SIM_HAL is the library's path.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdlib>
#include <future>
#include <map>
#include <memory>
#include <vector>

#include "base/clock.h"
#include "base/testing/eventually.h"
#include "driver/channel_pump.h"
#include "driver/chips.h"
#include "driver/device_control.h"
#include "driver/hal_library.h"
#include "driver/inventory.h"
#include "driver/testing/recording_sink.h"

namespace profd {
namespace {

using ::testing::Contains;
using ::testing::ElementsAre;
using ::testing::IsEmpty;

// The parameters that the channels need (driver-abi 3.2, 3.3).
template <class T>
std::vector<std::byte> BytesOf(const T& config) {
  const auto* begin = reinterpret_cast<const std::byte*>(&config);
  return {begin, begin + sizeof config};
}

std::vector<ChannelStart> Starts() {
  abi::SocProfileCfg soc{};
  soc.inter_die = {abi::kSwitchEnable, 10};
  soc.inter_chip = {abi::kSwitchEnable, 10};
  abi::MemEventCfg hbm{10, abi::kAllMasters, 2, {abi::kMemEventRead, abi::kMemEventWrite}};
  return {
      {abi::kChannelHbm, abi::kProfPeripheralType, 10, BytesOf(hbm)},
      {abi::kChannelPcie, abi::kProfPeripheralType, 10, {}},
      {abi::kChannelLlc, abi::kProfPeripheralType, 10,
       BytesOf(abi::LlcCfg{10, abi::kLlcSampleRead})},
      {abi::kChannelHccs, abi::kProfPeripheralType, 10, {}},
      {abi::kChannelRoce, abi::kProfPeripheralType, 10, {}},
      {abi::kChannelDvpp, abi::kProfPeripheralType, 10, {}},
      {abi::kChannelStarsSocProfile, abi::kProfPeripheralType, 0, BytesOf(soc)},
      {abi::kChannelNpuMem, abi::kProfPeripheralType, 10,
       BytesOf(abi::MemCfg{10, 0, abi::kMemCfgEventDevice, 0})},
  };
}

class SimIntegrationTest : public ::testing::Test {
 protected:
  static void SetUpTestSuite() {
    ::unsetenv("PROFD_SIM_SCENARIO");  // the default node: 8 x 910B, no faults
  }
  void SetUp() override {
    // A build directory is not safe.
    Result<std::unique_ptr<HalLibrary>> hal = HalLibrary::Load(PROFD_SIM_HAL, true);
    ASSERT_TRUE(hal.ok()) << hal.status().message();
    hal_ = std::move(hal).value();
  }

  SystemClock clock_;
  std::shared_ptr<const HalLibrary> hal_;
};

TEST_F(SimIntegrationTest, EverySymbolIsThere) {
  EXPECT_THAT(hal_->missing_symbols(), IsEmpty());
  EXPECT_GE(hal_->ApiVersion(), abi::kApiOscFreq);
}

TEST_F(SimIntegrationTest, TheInventoryIsComplete) {
  HalInventory inventory = DiscoverDevices(hal_);
  ASSERT_TRUE(inventory.status.ok()) << inventory.status.message();
  ASSERT_EQ(inventory.devices.size(), 8u);
  for (const HalDevice& device : inventory.devices) {
    EXPECT_TRUE(device.usable.ok()) << device.usable.message();
    EXPECT_EQ(device.chip_name, "Ascend910B");
    EXPECT_GT(device.counter_hz, 0);
    EXPECT_GT(device.aicore_mhz, 0);
    EXPECT_GT(device.ai_core_num, 0);
    for (const ChannelStart& start : Starts()) {
      EXPECT_THAT(device.channels, Contains(start.channel));
    }
  }
  EXPECT_THAT(inventory.devices[0].qos_streams, ElementsAre(12, 13, 14, 15));
  EXPECT_THAT(inventory.devices[0].qos_names, ElementsAre("st_mpamid_12", "st_mpamid_13",
                                                          "st_mpamid_14", "st_mpamid_15"));
}

TEST_F(SimIntegrationTest, TheDeviceClockRunsLikeOurs) {
  Result<ClockPair> first = CorrelateDeviceClock(*hal_, 0, clock_);
  Result<ClockPair> second = CorrelateDeviceClock(*hal_, 0, clock_);
  ASSERT_TRUE(first.ok()) << first.status().message();
  ASSERT_TRUE(second.ok());
  EXPECT_GT(second->host_ns, first->host_ns);
  EXPECT_GE(second->device_ns, first->device_ns);
  EXPECT_GE(second->device_count, first->device_count);
}

TEST_F(SimIntegrationTest, ChannelsOfTwoDevicesRunAndStopWithoutALoss) {
  BlockPool pool(64 << 20);
  testing::RecordingSink sink;
  ChannelPump pump(hal_, clock_, pool, sink);
  std::map<uint32_t, std::unique_ptr<DeviceControl>> controls;
  for (uint32_t device : {0u, 5u}) {
    controls[device] = std::make_unique<DeviceControl>(device, hal_, pump, clock_);
    for (const ChannelStart& start : Starts()) {
      std::promise<Status> started;
      controls[device]->StartChannel(
          start, 1, [&](const Status& status, int64_t) { started.set_value(status); });
      Status status = started.get_future().get();
      ASSERT_TRUE(status.ok()) << status.message();
    }
  }
  sink.WaitForRecords(2000);
  for (const auto& [device, control] : controls) {
    for (const ChannelStart& start : Starts()) {
      EXPECT_TRUE(Eventually([&, of = device] { return pump.Counters(of, start.channel).records > 0; })) << start.channel;
    }
  }
  for (auto& [device, control] : controls) {
    for (const ChannelStart& start : Starts()) {
      std::promise<StopOutcome> stopped;
      control->StopChannel(start.channel,
                           [&](const StopOutcome& outcome) { stopped.set_value(outcome); });
      Status status = stopped.get_future().get().status;
      EXPECT_TRUE(status.ok()) << status.message();
      ChannelCounters counters = pump.Counters(device, start.channel);
      EXPECT_EQ(counters.garbage_bytes, 0u) << start.channel;
      EXPECT_EQ(counters.dropped_bytes, 0u) << start.channel;
      EXPECT_EQ(counters.read_errors, 0u) << start.channel;
    }
  }
  EXPECT_THAT(pump.PollErrors(), IsEmpty());
  std::map<std::pair<uint32_t, uint32_t>, uint64_t> seq;
  for (const BlockInfo& info : sink.infos()) {
    uint64_t& last = seq[{info.device, info.channel}];
    EXPECT_EQ(info.seq, last + 1);
    last = info.seq;
    EXPECT_GT(info.records, 0u);
  }
}

}  // namespace
}  // namespace profd
