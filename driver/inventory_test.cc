#include "driver/inventory.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstring>
#include <future>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <thread>
#include <tuple>

#include "driver/chips.h"
#include "driver/device_clock.h"

namespace profd {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

// The node the C functions below describe; a test changes what it is about.
struct FakeNode {
  int count_code = 0;
  uint32_t count = 2;
  std::vector<uint32_t> ids = {0, 1};
  int api_version = abi::kApiCurrent;
  int device_status = abi::kDrvStatusWork;
  std::optional<std::shared_future<void>> hangs;  // device 1, until it is fulfilled
  uint32_t channel_num = 3;
  int channels_code = 0;
  std::vector<uint32_t> channels = {9, 1, 3};
  bool stream_num_is_count = false;  // of QoS streams whose name is asked for; else an index
  std::map<std::tuple<int, int>, int64_t> infos = {
      {{abi::kModuleSystem, abi::kInfoVersion}, int64_t{abi::kChip910B} << 8},
      {{abi::kModuleSystem, abi::kInfoDevOscFreque}, 50000},
      {{abi::kModuleSystem, abi::kInfoHostOscFreque}, 100000},
      {{abi::kModuleAicore, abi::kInfoFreque}, 1800},
      {{abi::kModuleAicore, abi::kInfoCoreNum}, 25},
      {{abi::kModuleVectorCore, abi::kInfoCoreNum}, 50},
      {{abi::kModuleCcpu, abi::kInfoCoreNum}, 1},
      {{abi::kModuleAicpu, abi::kInfoCoreNum}, 6},
      {{abi::kModuleAicpu, abi::kInfoOccupy}, 0xFC},
  };
};
FakeNode* g_node = nullptr;

HalSymbols NodeSymbols() {
  HalSymbols s;
  s.drv_get_dev_num = [](uint32_t* count) {
    *count = g_node->count;
    return g_node->count_code;
  };
  s.drv_get_dev_ids = [](uint32_t* ids, uint32_t length) {
    for (uint32_t i = 0; i < length; ++i) ids[i] = g_node->ids[i];
    return 0;
  };
  s.drv_device_status = [](uint32_t device, int* status) {
    if (device == 1 && g_node->hangs.has_value()) g_node->hangs->wait();
    *status = g_node->device_status;
    return 0;
  };
  s.hal_get_api_version = [](int* version) {
    *version = g_node->api_version;
    return 0;
  };
  s.drv_device_get_phy_id_by_index = [](uint32_t index, uint32_t* id) {
    *id = index + 8;
    return 0;
  };
  s.hal_get_device_info = [](uint32_t, int32_t module, int32_t info, int64_t* value) {
    auto found = g_node->infos.find({module, info});
    if (found == g_node->infos.end()) return abi::kDrvErrorNotSupport;
    *value = found->second;
    return 0;
  };
  s.prof_drv_get_channels = [](unsigned, abi::ChannelList* list) {
    list->channel_num = g_node->channel_num;
    for (size_t i = 0; i < g_node->channels.size(); ++i) {
      list->channel[i].channel_id = g_node->channels[i];
    }
    return g_node->channels_code;
  };
  s.hal_get_device_info_by_buff = [](uint32_t, int32_t, int32_t, void* buffer, int32_t*) {
    auto* info = static_cast<abi::QosProfileInfo*>(buffer);
    if (info->mode == abi::kQosModeIdToName) {
      if (info->stream_num >= abi::kMaxMpamIds) return abi::kDrvErrorInvalidDevice;
      if (g_node->stream_num_is_count && info->stream_num == 0) return 0;  // no ids, no names
      const uint8_t id = info->mpam_id[g_node->stream_num_is_count ? 0 : info->stream_num];
      if (id == 0 || id == 14) return abi::kDrvErrorNotSupport;
      // Id 12 has a name without an end, 13 one that would break a list.
      std::memset(info->stream_name, 'n', sizeof info->stream_name);
      if (id == 13) std::strcpy(info->stream_name, "a,b");
      if (id == 15) std::strcpy(info->stream_name, "SDMA");
      return 0;
    }
    info->stream_num = 999;  // more than fit
    for (uint8_t i = 0; i < abi::kMaxMpamIds; ++i) info->mpam_id[i] = static_cast<uint8_t>(12 + i);
    return 0;
  };
  return s;
}

class InventoryTest : public ::testing::Test {
 protected:
  InventoryTest() { g_node = &node_; }
  ~InventoryTest() override { g_node = nullptr; }
  HalInventory Discover() {
    return DiscoverDevices(std::make_shared<HalLibrary>(NodeSymbols()));
  }
  FakeNode node_;
};

TEST_F(InventoryTest, ReadsTheFactsOfEveryDevice) {
  HalInventory inventory = Discover();
  EXPECT_TRUE(inventory.status.ok());
  EXPECT_EQ(inventory.api_version, abi::kApiCurrent);
  EXPECT_EQ(inventory.host_osc_khz, 100000);
  ASSERT_EQ(inventory.devices.size(), 2u);
  const HalDevice& d = inventory.devices[1];
  EXPECT_EQ(d.id, 1u);
  EXPECT_EQ(d.physical_id, 9u);
  EXPECT_EQ(d.chip_name, "Ascend910B");
  EXPECT_THAT(d.channels, ElementsAre(1, 3, 9));
  EXPECT_EQ(d.counter_hz, 50e6);
  EXPECT_EQ(d.aicore_mhz, 1800);
  EXPECT_EQ(d.ai_core_num, 25);
  EXPECT_EQ(d.aiv_num, 50);
  EXPECT_THAT(d.ctrl_cpus, ElementsAre(0));
  EXPECT_THAT(d.ai_cpus, ElementsAre(2, 3, 4, 5, 6, 7));
  EXPECT_TRUE(d.usable.ok());
}

TEST_F(InventoryTest, TheCounterOfSomeChipsRunsAsTheyAreBuilt) {
  node_.infos[{abi::kModuleSystem, abi::kInfoVersion}] = int64_t{abi::kChip950} << 8;
  const HalInventory inventory = Discover();
  EXPECT_EQ(inventory.devices[0].counter_hz, 1e9);  // the driver says 50 MHz
}

TEST_F(InventoryTest, OldLibrariesAndSilentDriversGetTheChipsDefaults) {
  node_.api_version = abi::kApiOscFreq - 1;
  node_.infos.erase({abi::kModuleAicore, abi::kInfoFreque});
  HalInventory inventory = Discover();
  EXPECT_EQ(inventory.host_osc_khz, 0);
  const HalDevice& d = inventory.devices[0];
  EXPECT_EQ(d.counter_hz, 50e6);
  EXPECT_EQ(d.aicore_mhz, 800);
}

TEST_F(InventoryTest, ChipsWithoutVectorCoresAreNotQueried) {
  node_.infos[{abi::kModuleSystem, abi::kInfoVersion}] = int64_t{abi::kChip910} << 8;
  EXPECT_EQ(Discover().devices[0].aiv_num, 0);
}

// dcmi-and-metrics 2.1: network and optics are of the training series (910A), A2 and A3; A5 has its own form (1.8).
TEST(Chips, WhichHaveNetworkPortsThatTheToolKnows) {
  for (const ChipFacts& chip : kChips) {
    const bool expected = chip.id == 1 || chip.id == 5 || chip.id == 15 || chip.id == 16;
    EXPECT_EQ(chip.Has(kChipHccnTool), expected) << chip.name;
  }
}

// driver-abi 3.2: the 910B's records of channel 132 carry voltages too, and its file has another name.
TEST(Chips, NameTheLowPowerFile) {
  const abi::ChannelFormat& low_power = *abi::FindChannelFormat(132);
  EXPECT_EQ(FileOf(low_power, 5), "lpmInfoConv.data");
  EXPECT_EQ(FileOf(low_power, 1), "lpmFreqConv.data");
  EXPECT_EQ(FileOf(low_power, UINT32_MAX), "lpmFreqConv.data");
  EXPECT_EQ(FileOf(*abi::FindChannelFormat(133), 5), "qos.data");
}

// dcmi-and-metrics 1.2: of the A2, boards 0x28 and 0x29 (300I A2) are none of training.
TEST(Chips, WhichBoardsHaveNoNetworkPorts) {
  for (const char* board : {"0x28", "0x29"}) {
    EXPECT_FALSE(HasHccnPorts(*FindChip(5), board)) << board;
    EXPECT_TRUE(HasHccnPorts(*FindChip(1), board)) << board;
    EXPECT_TRUE(HasHccnPorts(*FindChip(15), board)) << board;
  }
  EXPECT_TRUE(HasHccnPorts(*FindChip(5), "0x34"));
  EXPECT_TRUE(HasHccnPorts(*FindChip(5), ""));
  EXPECT_FALSE(HasHccnPorts(*FindChip(4), "0x34"));
}

TEST_F(InventoryTest, AnUnknownChipIsStillADevice) {
  node_.infos[{abi::kModuleSystem, abi::kInfoVersion}] = 77 << 8;
  const HalDevice d = Discover().devices[0];
  EXPECT_EQ(d.chip_name, "chip 77");
  EXPECT_TRUE(d.usable.ok());
}

TEST_F(InventoryTest, AChipThatIsNotReportedIsUnknown) {
  node_.infos.erase({abi::kModuleSystem, abi::kInfoVersion});
  const HalDevice d = Discover().devices[0];
  EXPECT_EQ(d.chip_id, -1);
  EXPECT_EQ(d.chip_name, "unknown");
  EXPECT_THAT(d.channels, ElementsAre(1, 3, 9));
  EXPECT_TRUE(d.usable.ok()) << d.usable.message();
}

TEST_F(InventoryTest, WithoutIdsDevicesAreNumberedFromZero) {
  HalSymbols symbols = NodeSymbols();
  symbols.drv_get_dev_ids = nullptr;
  const HalInventory inventory = DiscoverDevices(std::make_shared<HalLibrary>(symbols));
  ASSERT_EQ(inventory.devices.size(), 2u);
  EXPECT_EQ(inventory.devices[0].id, 0u);
  EXPECT_EQ(inventory.devices[1].id, 1u);
  EXPECT_TRUE(inventory.devices[1].usable.ok());
}

TEST_F(InventoryTest, ALostDeviceIsNotQueriedFurther) {
  node_.device_status = abi::kDrvStatusCommunicationLost;
  const HalDevice d = Discover().devices[0];
  EXPECT_EQ(d.usable.code(), StatusCode::kUnavailable);
  EXPECT_THAT(d.channels, IsEmpty());
  EXPECT_EQ(d.chip_id, -1);  // 0 is a chip
}

TEST_F(InventoryTest, OddChannelListsAreCutDown) {
  node_.channels = {0, 160, 500, 3, 3, 159};
  node_.channel_num = 6;
  EXPECT_THAT(Discover().devices[0].channels, ElementsAre(3, 159));
  node_.channels = {0, 0};
  node_.channel_num = 2;
  EXPECT_EQ(Discover().devices[0].usable.code(), StatusCode::kUnimplemented);
  node_.channel_num = 161;
  EXPECT_EQ(Discover().devices[0].usable.code(), StatusCode::kInternal);
  node_.channels_code = -1;
  EXPECT_EQ(Discover().devices[0].usable.code(), StatusCode::kUnavailable);
}

TEST_F(InventoryTest, OddDeviceListsAreCutDown) {
  node_.ids = {5, 5, 64};
  node_.count = 3;
  HalInventory inventory = Discover();
  ASSERT_EQ(inventory.devices.size(), 1u);
  EXPECT_EQ(inventory.devices[0].id, 5u);
  node_.count = 65;
  EXPECT_EQ(Discover().status.code(), StatusCode::kInternal);
  node_.count = 0;
  EXPECT_TRUE(Discover().status.ok());
  node_.count_code = 3;
  EXPECT_EQ(Discover().status.code(), StatusCode::kUnavailable);
  node_.count_code = abi::kDrvErrorNotSupport;  // a stub library
  EXPECT_TRUE(Discover().status.ok());
}

TEST_F(InventoryTest, AnEmptyTableMeansNoDevices) {
  HalInventory inventory = DiscoverDevices(std::make_shared<HalLibrary>(HalSymbols{}));
  EXPECT_TRUE(inventory.status.ok());
  EXPECT_THAT(inventory.devices, IsEmpty());
}

TEST_F(InventoryTest, ADeviceThatHangsDoesNotHideTheOthers) {
  std::promise<void> back;
  node_.hangs = back.get_future().share();
  auto hal = std::make_shared<HalLibrary>(NodeSymbols());
  const std::weak_ptr<HalLibrary> used = hal;
  constexpr std::chrono::milliseconds kSoon{100};
  HalInventory inventory = DiscoverDevices(hal, {.handover = kSoon, .handovers = kSoon, .patience = kSoon});
  EXPECT_TRUE(inventory.threads_left);
  EXPECT_EQ(inventory.host_osc_khz, 100000);
  ASSERT_EQ(inventory.devices.size(), 2u);
  EXPECT_TRUE(inventory.devices[0].usable.ok());
  EXPECT_EQ(inventory.devices[1].id, 1u);
  EXPECT_THAT(inventory.devices[1].channels, IsEmpty());
  EXPECT_THAT(inventory.devices[1].usable.message(), HasSubstr("device 1 did not answer"));
  back.set_value();
  hal.reset();
  while (!used.expired()) std::this_thread::yield();  // the thread that was left behind
}

TEST_F(InventoryTest, QosStreamsAreBounded) {
  node_.channels = {133};
  node_.channel_num = 1;
  // As many as a record has space for.
  EXPECT_THAT(Discover().devices[0].qos_streams, ElementsAre(12, 13, 14, 15, 16, 17, 18, 19, 20, 21));
}

TEST_F(InventoryTest, QosStreamsAreAlsoThoseOfChannel52) {
  EXPECT_THAT(Discover().devices[0].qos_streams, IsEmpty());
  node_.infos[{abi::kModuleSystem, abi::kInfoVersion}] = int64_t{abi::kChip950} << 8;
  EXPECT_EQ(Discover().devices[0].qos_streams.size(), 10u);
}

TEST_F(InventoryTest, AQosStreamIsNamedHoweverItsNumberIsRead) {
  node_.channels = {133};
  node_.channel_num = 1;
  node_.stream_num_is_count = true;
  EXPECT_EQ(Discover().devices[0].qos_names[3], "SDMA");
}

TEST_F(InventoryTest, QosStreamsHaveNamesThatFitAList) {
  node_.channels = {133};
  node_.channel_num = 1;
  const std::vector<std::string> names = Discover().devices[0].qos_names;
  ASSERT_EQ(names.size(), 10u);
  EXPECT_EQ(names[0], std::string(256, 'n'));
  EXPECT_EQ(names[1], "mpam_13");
  EXPECT_EQ(names[2], "mpam_14");
  EXPECT_EQ(names[3], "SDMA");
}

TEST(HalLibraryTest, DegradesAsTheVendorsWrapperDoes) {
  HalLibrary hal{HalSymbols{}};
  abi::ChannelList list{};
  abi::ProfStartPara para{};
  abi::ProfPollInfo info{};
  char buffer[8];
  uint32_t number = 7;
  int value = 7;
  int64_t wide = 7;
  EXPECT_EQ(hal.ProfGetChannels(0, &list), abi::kProfError);
  EXPECT_EQ(hal.ProfStart(0, 1, &para), abi::kProfError);
  EXPECT_EQ(hal.ProfStop(0, 1), abi::kProfError);
  EXPECT_EQ(hal.ProfRead(0, 1, buffer, 8), abi::kProfError);
  EXPECT_EQ(hal.ProfPoll(&info, 1, 1), abi::kProfError);
  EXPECT_EQ(hal.ProfDataFlush(0, 1, &number), abi::kDrvErrorNotSupport);
  EXPECT_EQ(number, 0u);
  EXPECT_EQ(hal.GetDeviceNum(&number), abi::kDrvErrorNotSupport);
  EXPECT_EQ(hal.GetDeviceIds(&number, 1), abi::kDrvErrorNotSupport);
  EXPECT_EQ(hal.GetDeviceStatus(0, &value), abi::kDrvErrorNotSupport);
  EXPECT_EQ(hal.GetDeviceInfo(0, abi::kModuleSystem, abi::kInfoVersion, &wide),
            abi::kDrvErrorNotSupport);
  EXPECT_EQ(hal.GetPhysicalId(0, &number), abi::kDrvErrorNotSupport);
  EXPECT_EQ(hal.ApiVersion(), 0);
  EXPECT_EQ(hal.SplitMode(0), 0u);
  EXPECT_EQ(hal.missing_symbols().size(), 14u);
}

TEST(HalLibraryTest, EveryStartCodeHasAReason) {
  EXPECT_TRUE(StatusOfStartCode(0, 0, "hbm").ok());
  const std::map<int, StatusCode> expected = {{-1, StatusCode::kUnavailable},
                                              {-2, StatusCode::kUnavailable},
                                              {-3, StatusCode::kResourceExhausted},
                                              {-4, StatusCode::kUnavailable},
                                              {-5, StatusCode::kUnavailable},
                                              {-6, StatusCode::kUnavailable},
                                              {-7, StatusCode::kUnimplemented},
                                              {-8, StatusCode::kResourceExhausted},
                                              {-9, StatusCode::kResourceExhausted},
                                              {-10, StatusCode::kResourceExhausted},
                                              {-11, StatusCode::kResourceExhausted},
                                              {-12, StatusCode::kPermissionDenied},
                                              {-13, StatusCode::kPermissionDenied},
                                              {-14, StatusCode::kUnavailable},
                                              {115, StatusCode::kFailedPrecondition},
                                              {0xfffe, StatusCode::kUnimplemented},
                                              {1, StatusCode::kNotFound},
                                              {2, StatusCode::kNotFound},
                                              {-99, StatusCode::kUnavailable}};
  for (auto [code, status] : expected) {
    Status got = StatusOfStartCode(code, 3, "hbm");
    EXPECT_EQ(got.code(), status) << code;
    EXPECT_THAT(got.message(), HasSubstr("device 3: channel hbm: ")) << code;
    EXPECT_THAT(got.message(), HasSubstr(std::to_string(code))) << code;
  }
}

TEST(HalLibraryTest, StopAndDrvCodes) {
  EXPECT_TRUE(StatusOfStopCode(0, 0, "x").ok());
  EXPECT_TRUE(StatusOfStopCode(-4, 0, "x").ok());
  EXPECT_TRUE(StatusOfStopCode(0x916, 0, "x").ok());
  EXPECT_EQ(StatusOfStopCode(-1, 0, "x").code(), StatusCode::kUnavailable);
  EXPECT_TRUE(StatusOfDrvCode(0, "x").ok());
  EXPECT_EQ(StatusOfDrvCode(1, "x").code(), StatusCode::kNotFound);
  EXPECT_EQ(StatusOfDrvCode(0xfffe, "x").code(), StatusCode::kUnimplemented);
  EXPECT_EQ(StatusOfDrvCode(42, "x").code(), StatusCode::kUnavailable);
}

// Device clock 1 us ahead; each device read takes as long as the test says.
ManualClock* g_clock = nullptr;
std::vector<int64_t> g_delays;
size_t g_reads = 0;

HalSymbols ClockSymbols() {
  HalSymbols s;
  s.hal_get_device_info = [](uint32_t, int32_t, int32_t info, int64_t* value) {
    if (info == abi::kInfoMonotonicRaw) {
      int64_t delay = g_delays[g_reads++ % g_delays.size()];
      g_clock->Advance(delay / 2);
      *value = g_clock->raw_ns + 1000;
      g_clock->Advance(delay - delay / 2);
      return 0;
    }
    *value = 4242;
    return 0;
  };
  return s;
}

TEST(DeviceClockTest, TheTightestRoundWins) {
  ManualClock clock;
  g_clock = &clock;
  g_reads = 0;
  // Five to warm up, which do not count, then the rounds; the fourth is best.
  g_delays = {10, 10, 10, 10, 10, 9000, 8000, 5000, 200, 7000};
  Result<ClockPair> pair = CorrelateDeviceClock(HalLibrary(ClockSymbols()), 0, clock);
  ASSERT_TRUE(pair.ok());
  EXPECT_EQ(g_reads, 10u);
  EXPECT_EQ(pair->device_ns - pair->host_ns, 1000);
  EXPECT_EQ(pair->uncertainty_ns, 100);
  EXPECT_EQ(pair->device_count, 4242u);
  EXPECT_EQ(pair->host_count, clock.counter - 700 - 10);
}

TEST(DeviceClockTest, WithoutADeviceClockThereIsNoClockPair) {
  ManualClock clock;
  EXPECT_EQ(CorrelateDeviceClock(HalLibrary(HalSymbols{}), 0, clock).status().code(),
            StatusCode::kUnimplemented);
}

TEST(DeviceClockTest, ACounterCountsWithoutADeviceClock) {
  ManualClock clock;
  HalSymbols s;
  s.hal_get_device_info = [](uint32_t, int32_t, int32_t info, int64_t* value) {
    if (info != abi::kInfoSysCount) return abi::kDrvErrorNotSupport;
    *value = 4242;
    return 0;
  };
  Result<ClockPair> pair = CorrelateDeviceClock(HalLibrary(s), 0, clock);
  ASSERT_TRUE(pair.ok());
  EXPECT_EQ(pair->device_count, 4242u);
  EXPECT_EQ(pair->device_ns, pair->host_ns);
}

TEST(DeviceClockTest, AStartMovesByTheDriftSinceThen) {
  // In 100,000 s the device, whose clock is 5000 s ahead, loses 3 s.
  const ClockPair late{.host_ns = 101'000 * kNsPerSecond, .device_ns = 105'997 * kNsPerSecond};
  const int64_t start_ns = 1000 * kNsPerSecond;
  EXPECT_EQ(DriftedStart(start_ns, {.host_ns = start_ns, .device_ns = 6000 * kNsPerSecond}, late), 1003 * kNsPerSecond);
  // It has lost 27 ms more since the clocks were read 900 s before the start.
  EXPECT_EQ(DriftedStart(start_ns, {.host_ns = 100 * kNsPerSecond, .device_ns = 5'100'027 * kNsPerMs}, late), 1003 * kNsPerSecond);
  // A clock that began anew.
  EXPECT_EQ(DriftedStart(start_ns, late, {.host_ns = 101'010 * kNsPerSecond, .device_ns = 2 * kNsPerSecond}), start_ns);
  // Read before the start, or in the wrong order.
  EXPECT_EQ(DriftedStart(late.host_ns, {.host_ns = start_ns, .device_ns = 6000 * kNsPerSecond}, late), late.host_ns);
  EXPECT_EQ(DriftedStart(start_ns, late, {.host_ns = start_ns, .device_ns = 6000 * kNsPerSecond}), start_ns);
}

TEST(DeviceClockTest, TheHostAlone) {
  ManualClock clock;
  ClockPair pair = CorrelateHostClock(clock);
  EXPECT_EQ(pair.host_ns, clock.raw_ns);
  EXPECT_EQ(pair.host_count, clock.counter);
  EXPECT_EQ(pair.device_ns, 0);
}

}  // namespace
}  // namespace profd
