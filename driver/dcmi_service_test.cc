#include "driver/dcmi_service.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <chrono>
#include <optional>
#include <set>
#include <thread>

#include "driver/testing/fake_dcmi.h"

namespace profd {
namespace {

using testing::FakeDcmi;
using ::testing::HasSubstr;

class DcmiServiceTest : public ::testing::Test {
 protected:
  DcmiService& Start(int cards = 2) {
    fake.emplace(cards);
    service.emplace(fake->V1(), clock);
    EXPECT_TRUE(service->Start().ok());
    return *service;
  }
  const DcmiDevice& device(size_t i) { return service->devices()[i]; }

  ManualClock clock;
  std::optional<FakeDcmi> fake;
  std::optional<DcmiService> service;
};

// ---- errors ----

TEST(DcmiErrors, EveryClassHasItsStatus) {
  const std::pair<int, StatusCode> expected[] = {
      {abi::kDcmiNotSupported, StatusCode::kUnimplemented},
      {abi::kDcmiNotInContainer, StatusCode::kUnimplemented},
      {kDcmiSymbolMissing, StatusCode::kUnimplemented},
      {abi::kDcmiNotPermitted, StatusCode::kPermissionDenied},
      {abi::kDcmiTimeout, StatusCode::kUnavailable},
      {abi::kDcmiDeviceMissing, StatusCode::kUnavailable},
      {abi::kDcmiNotReady, StatusCode::kUnavailable},
      {abi::kDcmiInternal, StatusCode::kUnavailable},
      {abi::kDcmiOccupied, StatusCode::kResourceExhausted},
      {abi::kDcmiInvalidParameter, StatusCode::kInternal},
      {-12345, StatusCode::kInternal},
  };
  for (auto [code, status] : expected) EXPECT_EQ(DcmiStatus(code, "x").code(), status) << code;
  EXPECT_TRUE(DcmiStatus(0, "x").ok());
  EXPECT_EQ(DcmiStatus(-8008, "dcmi_get_device_health").message(),
            "dcmi_get_device_health: device missing (-8008)");
}

TEST(DcmiErrors, LabelsAreDistinctAndFitTheStatistics) {
  std::set<std::string_view> labels;
  for (const DcmiErrorInfo& error : DcmiErrors()) labels.insert(error.label);
  EXPECT_EQ(labels.size(), DcmiErrors().size());
  EXPECT_LE(DcmiErrors().size(), DcmiCallStatistics{}.errors.size());
  EXPECT_EQ(DcmiErrors()[DcmiErrorIndex(-1)].label, "other");
  std::set<std::string_view> names(kDcmiCallNames.begin(), kDcmiCallNames.end());
  EXPECT_EQ(names.size(), kDcmiCallCount);
}

// ---- start ----

TEST_F(DcmiServiceTest, FindsNpusAndLeavesOutTheirMcus) {
  fake.emplace(2);
  fake->devices[1].physical_id = 5;
  service.emplace(fake->V1(), clock);
  ASSERT_TRUE(service->Start().ok());
  EXPECT_EQ(service->api_name(), "v1");
  EXPECT_EQ(service->dcmi_version(), "24.1.0");
  EXPECT_EQ(service->driver_version(), "24.1.rc3");
  ASSERT_EQ(service->devices().size(), 2u);
  const DcmiDevice& d = device(1);
  EXPECT_EQ(d.index, 1);
  EXPECT_EQ(d.card, 1);
  EXPECT_EQ(d.logical_id, 1);
  EXPECT_EQ(d.physical_id, 5);
  EXPECT_EQ(d.uuid, "0A1B2C3D-00000011-00000022-00000033-00000001");
  EXPECT_EQ(d.chip_type + d.chip_name, "Ascend910B3");
  EXPECT_EQ(d.aicore_count, 20u);
  EXPECT_EQ(d.pci_bus_id, "0000:c2:00.0");
  EXPECT_EQ(d.board_id, "0x34");
  EXPECT_EQ(d.model, "Atlas 800T A2");
  EXPECT_EQ(d.serial, "SN0042");
  EXPECT_EQ(service->FindByLogicalId(1), &d);
  EXPECT_EQ(service->FindByLogicalId(7), nullptr);
}

TEST_F(DcmiServiceTest, FallsBackToTheSecondGeneration) {
  fake.emplace(1);
  service.emplace(fake->V2(), clock);
  ASSERT_TRUE(service->Start().ok());
  EXPECT_EQ(service->api_name(), "v2");
  EXPECT_EQ(device(0).uuid, "00000001-00000002-00000003-00000004-00000005");  // DDIE
  EXPECT_EQ(device(0).board_id, "0x61");
  EXPECT_EQ(service->Ask(device(0), dcmi::kPower).value, 3105);
  EXPECT_EQ(service->Ask(device(0), dcmi::kTemperature).code, kDcmiSymbolMissing);
}

// -1 would be the host.
TEST_F(DcmiServiceTest, LeavesOutNumbersWithoutADevice) {
  fake.emplace(2);
  DcmiLibrary library = fake->V2();
  library.functions.v2_device_list = [](int* ids, int* count, int) {
    for (int id : {1, -1, 0, 1}) ids[(*count)++] = id;
    return 0;
  };
  library.functions.v2_chip_phy_id = [](unsigned, unsigned* physical_id) {
    *physical_id = 0xFFFFFFFF;
    return 0;
  };
  service.emplace(std::move(library), clock);
  ASSERT_TRUE(service->Start().ok());
  ASSERT_EQ(service->devices().size(), 2U);
  for (int id : {0, 1}) {
    EXPECT_EQ(device(static_cast<size_t>(id)).logical_id, id);
    EXPECT_EQ(device(static_cast<size_t>(id)).physical_id, id);
  }
}

TEST_F(DcmiServiceTest, StartCanBeTriedAgain) {
  fake.emplace(1);
  fake->codes["init"] = abi::kDcmiInternal;
  service.emplace(fake->V1(), clock);
  Status status = service->Start();
  EXPECT_EQ(status.code(), StatusCode::kUnavailable);
  EXPECT_THAT(status.message(), HasSubstr("dcmi_init"));
  EXPECT_TRUE(service->devices().empty());
  fake->codes["init"] = abi::kDcmiNotSupported;
  EXPECT_FALSE(service->Start().ok());
  fake->codes.clear();
  EXPECT_TRUE(service->Start().ok());
  EXPECT_EQ(service->devices().size(), 1u);
}

TEST_F(DcmiServiceTest, WhatNeverWillWorkIsNotPending) {
  fake.emplace(1);
  fake->codes["init"] = abi::kDcmiNotSupported;
  service.emplace(fake->V1(), clock);
  EXPECT_FALSE(service->Start().ok());
  EXPECT_FALSE(service->IsPending());
  EXPECT_FALSE(service->HasSilentCards());
}

TEST_F(DcmiServiceTest, OtherLibrariesHaveOtherNamesForChipAndBoard) {
  fake.emplace(1);
  DcmiLibrary old = fake->V1();
  old.functions.old_chip_info = old.functions.chip_info.v1;
  old.functions.chip_info.v1 = nullptr;
  service.emplace(std::move(old), clock);
  ASSERT_TRUE(service->Start().ok());
  EXPECT_EQ(device(0).chip_name, "910B3");

  DcmiLibrary v2 = fake->V2();
  v2.functions.v2_board_id = nullptr;
  v2.functions.v2_board_info = [](int, abi::DcmiBoardInfo* out) {
    out->board_id = 0x62;
    return 0;
  };
  service.emplace(std::move(v2), clock);
  ASSERT_TRUE(service->Start().ok());
  EXPECT_EQ(device(0).board_id, "0x62");
}

// ---- cards that hang from the beginning ----

class SilentCardTest : public DcmiServiceTest {
 protected:
  static constexpr std::chrono::milliseconds kShort{50};
  static constexpr DcmiService::Options kQuick{.start = {kShort, kShort, kShort}};

  // Card 1 of three hangs in `call`.
  void StartWithout(const std::string& call) {
    fake.emplace(3);
    fake->Close("1:" + call);
    service.emplace(fake->V1(), clock, kQuick);
    ASSERT_TRUE(service->Start().ok());
    AwaitDevices(2);
  }
  // More may come, each by the thread that searches for it.
  void AwaitDevices(size_t count) {
    while (service->devices().size() < count) {
      (void)service->CheckCards(clock.SteadyNs());
      std::this_thread::yield();
    }
    EXPECT_EQ(service->devices().size(), count);
  }
  void AwaitQuiet() {
    while (service->HasCallInFlight()) {
      (void)service->CheckCards(clock.SteadyNs());
      std::this_thread::yield();
    }
  }
};

TEST_F(SilentCardTest, CostsOnlyItselfAndIsFoundWhenItAnswers) {
  for (const char* call : {"device_num_in_card", "device_logic_id", "chip_info", "elabel"}) {
    SCOPED_TRACE(call);
    StartWithout(call);
    EXPECT_EQ(device(0).card, 0);
    EXPECT_EQ(device(1).card, 2);
    EXPECT_EQ(device(1).serial, "SN0042");
    EXPECT_TRUE(service->HasSilentCards());
    EXPECT_TRUE(service->HasCallInFlight());
    EXPECT_EQ(service->SilenceOf(1, 5), "npu 5 does not answer DCMI calls; retried every 30 s");
    EXPECT_EQ(service->SilenceOf(0, 0), "");
    // Those that answer are asked as if nothing were.
    EXPECT_EQ(service->Ask(device(1), dcmi::kTemperature).value, 45);
    EXPECT_FALSE(service->CheckStuck(clock.SteadyNs() + 60 * kNsPerSecond, kNsPerSecond));

    const DcmiDevice* first = &device(0);
    fake->Open();
    AwaitDevices(3);
    EXPECT_EQ(&device(0), first);
    EXPECT_EQ(device(2).card, 1);
    EXPECT_EQ(device(2).index, 2);
    EXPECT_EQ(device(2).serial, "SN0042");
    EXPECT_EQ(service->SilenceOf(1, 5), "");
    EXPECT_EQ(service->Ask(device(2), dcmi::kTemperature).value, 45);
    AwaitQuiet();
    EXPECT_FALSE(service->HasSilentCards());
  }
}

TEST_F(SilentCardTest, IsTriedAgainOnAnotherThreadAFewTimes) {
  StartWithout("device_num_in_card");
  auto asked = [&] { return fake->Asked("1:device_num_in_card"); };
  while (asked() < 1) std::this_thread::yield();
  clock.Advance(29 * kNsPerSecond);
  (void)service->CheckCards(clock.SteadyNs());
  EXPECT_EQ(asked(), 1);
  for (int tries = 2; tries <= 4; ++tries) {
    clock.Advance(30 * kNsPerSecond);
    (void)service->CheckCards(clock.SteadyNs());
    while (asked() < tries) std::this_thread::yield();
  }
  EXPECT_THAT(service->SilenceOf(1, 1), HasSubstr("4 of them have not returned"));
  clock.Advance(30 * kNsPerSecond);
  (void)service->CheckCards(clock.SteadyNs());
  fake->Open();
  AwaitDevices(3);
  AwaitQuiet();
  EXPECT_EQ(asked(), 4);
  EXPECT_EQ(service->devices().size(), 3u);  // what all four found is one NPU
}

TEST_F(SilentCardTest, StartIsTriedAgainEveryTenSeconds) {
  fake.emplace(2);
  fake->SetCode("init", abi::kDcmiInternal);
  service.emplace(fake->V1(), clock, kQuick);
  ASSERT_FALSE(service->Start().ok());
  EXPECT_TRUE(service->IsPending());
  EXPECT_TRUE(service->HasSilentCards());
  EXPECT_EQ(service->SilenceOf(0, 0), "dcmi_init: internal error of the driver (-8005); tried again every 10 s");
  clock.Advance(9 * kNsPerSecond);
  (void)service->CheckCards(clock.SteadyNs());
  EXPECT_EQ(fake->Asked("init"), 1);
  clock.Advance(kNsPerSecond);
  (void)service->CheckCards(clock.SteadyNs());
  while (fake->Asked("init") < 2) std::this_thread::yield();
  fake->SetCode("init", abi::kDcmiOk);
  clock.Advance(10 * kNsPerSecond);
  while (service->IsPending()) {
    (void)service->CheckCards(clock.SteadyNs());
    clock.Advance(kNsPerSecond);
    std::this_thread::yield();
  }
  AwaitDevices(2);
  AwaitQuiet();
  EXPECT_FALSE(service->HasSilentCards());
  EXPECT_EQ(service->SilenceOf(0, 0), "");
  EXPECT_EQ(service->api(), DcmiApi::kV1);
  EXPECT_FALSE(service->dcmi_version().empty());
}

TEST_F(SilentCardTest, OneThatIsGoneIsLookedForAgainAndHidesNoOther) {
  fake.emplace(3);
  fake->SetCode("1:device_logic_id", abi::kDcmiDeviceMissing);
  service.emplace(fake->V1(), clock, kQuick);
  ASSERT_TRUE(service->Start().ok());
  AwaitDevices(2);
  EXPECT_EQ(device(1).card, 2);
  AwaitQuiet();
  EXPECT_TRUE(service->HasSilentCards());
  EXPECT_EQ(service->SilenceOf(1, 1), "npu 1 does not answer DCMI calls; retried every 30 s");
  fake->SetCode("1:device_logic_id", abi::kDcmiOk);
  clock.Advance(30 * kNsPerSecond);
  AwaitDevices(3);
  EXPECT_EQ(device(2).card, 1);
  EXPECT_FALSE(service->HasSilentCards());
}

// The vendor's library may let one caller in at a time.
TEST_F(SilentCardTest, CallsOfAProcessMayWaitForEachOther) {
  fake.emplace(2);
  fake->Close("0:device_num_in_card", "1:device_num_in_card");
  service.emplace(fake->V1(), clock, kQuick);
  ASSERT_TRUE(service->Start().ok());
  EXPECT_TRUE(service->devices().empty());
  EXPECT_THAT(service->SilenceOf(0, 0), HasSubstr("npu 0 does not answer"));
  EXPECT_THAT(service->SilenceOf(1, 1), HasSubstr("npu 1 does not answer"));
  fake->Open();
  AwaitDevices(2);
  AwaitQuiet();
}

// ---- queries ----

TEST_F(DcmiServiceTest, UnsupportedAndDeniedAreNeverCalledAgain) {
  Start();
  fake->codes["0:voltage"] = abi::kDcmiNotSupported;
  fake->codes["power"] = abi::kDcmiNotPermitted;
  for (int i = 0; i < 3; ++i) {
    EXPECT_EQ(service->Ask(device(0), dcmi::kVoltage).code, abi::kDcmiNotSupported);
    EXPECT_EQ(service->Ask(device(0), dcmi::kPower).code, abi::kDcmiNotPermitted);
    EXPECT_EQ(service->Ask(device(1), dcmi::kVoltage).value, 81u);
  }
  EXPECT_EQ(fake->asked["0:voltage"], 1);
  EXPECT_EQ(fake->asked["1:voltage"], 3);
  EXPECT_EQ(fake->asked["0:power"], 1);
  std::vector<std::string> refused;
  service->VisitRefused([&](const DcmiDevice& d, DcmiCall call, int code) {
    refused.push_back(std::to_string(d.physical_id) + " " + std::string(NameOf(call)) + " " +
                      std::to_string(code));
  });
  EXPECT_THAT(refused, ::testing::ElementsAre("0 dcmi_get_device_power_info -8002",
                                              "0 dcmi_get_device_voltage -8255"));
}

TEST_F(DcmiServiceTest, SelectorsAreRememberedOneByOne) {
  Start();
  fake->devices[0].utilization[abi::kUtilAicore] = 97;
  EXPECT_EQ(service->Ask(device(0), dcmi::kUtilCube).code, abi::kDcmiNotSupported);
  EXPECT_EQ(service->Ask(device(0), dcmi::kUtilAicore).value, 97u);
}

TEST_F(DcmiServiceTest, CallsAgainAfterTransientErrors) {
  Start();
  for (int code : {abi::kDcmiTimeout, abi::kDcmiDeviceMissing, abi::kDcmiNotReady,
                   abi::kDcmiInternal, abi::kDcmiInvalidParameter, -4711}) {
    fake->codes["temperature"] = code;
    EXPECT_EQ(service->Ask(device(0), dcmi::kTemperature).code, code);
    fake->codes.clear();
    EXPECT_EQ(service->Ask(device(0), dcmi::kTemperature).value, 45) << code;
  }
}

TEST_F(DcmiServiceTest, CallsAndErrorsAreCounted) {
  Start();
  (void)service->Ask(device(0), dcmi::kTemperature);
  fake->codes["temperature"] = abi::kDcmiTimeout;
  (void)service->Ask(device(0), dcmi::kTemperature);
  fake->codes["temperature"] = -4711;
  service->Ask(device(1), dcmi::kTemperature);
  const auto all = service->Statistics();
  const DcmiCallStatistics& s = all[static_cast<size_t>(DcmiCall::kTemperature)];
  EXPECT_EQ(s.calls, 3u);
  EXPECT_EQ(s.errors[DcmiErrorIndex(abi::kDcmiTimeout)], 1u);
  EXPECT_EQ(s.errors[DcmiErrorIndex(-4711)], 1u);
  EXPECT_EQ(s.errors[DcmiErrorIndex(-8255)], 0u);
}

TEST_F(DcmiServiceTest, AnOlderDriversShorterEccStructIsRecognised) {
  Start();
  fake->devices[0].ecc = {1, 2, 3, 4, 5, 6, 7, 8, 9};
  auto full = service->Ecc(device(0), DcmiCall::kEccHbm);
  ASSERT_TRUE(full.ok());
  EXPECT_TRUE(full.value.has_next_isolated);
  EXPECT_EQ(full.value.info.double_bit_next_isolated_pages_cnt, 9u);
  fake->devices[0].ecc_bytes = 28;
  auto old = service->Ecc(device(0), DcmiCall::kEccHbm);
  ASSERT_TRUE(old.ok());
  EXPECT_FALSE(old.value.has_next_isolated);
  EXPECT_EQ(old.value.info.double_bit_isolated_pages_cnt, 7u);
}

TEST_F(DcmiServiceTest, AStructLongerThanOursDoesNotHurt) {
  fake.emplace(1);
  DcmiLibrary library = fake->V1();
  library.functions.llc_perf.v1 = [](int, int, abi::DcmiLlcPerf* out) {
    std::memset(static_cast<void*>(out), 7, sizeof *out + 200);
    return 0;
  };
  service.emplace(library, clock);
  ASSERT_TRUE(service->Start().ok());
  EXPECT_EQ(service->Ask(device(0), dcmi::kLlcPerf).value.throughput, 0x07070707u);
}

TEST_F(DcmiServiceTest, CountsFromTheDriverAreClamped) {
  fake.emplace(1);
  DcmiLibrary library = fake->V1();
  library.functions.processes.v1 = [](int, int, abi::DcmiProcMemInfo*, int* count) {
    *count = 1'000'000;
    return 0;
  };
  library.functions.error_codes.v1 = [](int, int, int* count, unsigned*, unsigned) {
    *count = -5;
    return 0;
  };
  library.functions.current_faults.v1 = [](int, int, abi::DcmiEvent*, int, int* count) {
    *count = 1'000'000;
    return 0;
  };
  service.emplace(library, clock);
  ASSERT_TRUE(service->Start().ok());
  EXPECT_EQ(service->Processes(device(0)).value.count, 32u);
  EXPECT_EQ(service->ErrorCodes(device(0)).value.count, 0u);
  EXPECT_EQ(service->CurrentFaults(device(0)).value.count, 64u);
}

TEST_F(DcmiServiceTest, HccsTotalsStartAtZeroEachTime) {
  Start();
  fake->devices[0].hccs_bandwidth.total_txbw = 12.5;
  EXPECT_DOUBLE_EQ(service->HccsBandwidth(device(0), 10).value.total_txbw, 12.5);
  EXPECT_DOUBLE_EQ(service->HccsBandwidth(device(0), 10).value.total_txbw, 12.5);
  EXPECT_EQ(service->RdmaBandwidth(device(0), 1).value.tx_bandwidth, 100u);  // ms, clamped
}

TEST_F(DcmiServiceTest, AbsentHealthIsADeviceThatIsMissing) {
  Start();
  fake->devices[0].health = abi::kDcmiHealthAbsent;
  EXPECT_EQ(service->Health(device(0)).code, abi::kDcmiDeviceMissing);
  EXPECT_THAT(service->ProblemOf(device(0), clock.SteadyNs()), HasSubstr("NPU 0 does not answer"));
}

TEST_F(DcmiServiceTest, ADeviceThatIsGoneHasAProblemUntilItAnswersAgain) {
  Start();
  EXPECT_EQ(service->ProblemOf(device(1), 0), "");
  fake->codes["1:health"] = abi::kDcmiDeviceMissing;
  (void)service->Health(device(1));
  EXPECT_THAT(service->ProblemOf(device(1), 0),
              HasSubstr("NPU 1 does not answer (dcmi_get_device_health: device missing (-8008))"));
  EXPECT_EQ(service->ProblemOf(device(0), 0), "");
  fake->codes["1:health"] = abi::kDcmiNotSupported;  // says nothing about its presence
  (void)service->Health(device(1));
  EXPECT_EQ(service->ProblemOf(device(1), 0), "");
}

TEST_F(DcmiServiceTest, WhenADeviceLastAnswered) {
  Start();
  clock.Advance(7 * kNsPerSecond);
  (void)service->Ask(device(0), dcmi::kPower);
  const int64_t then = clock.MonotonicRawNs();
  clock.Advance(kNsPerSecond);
  fake->codes["power"] = abi::kDcmiTimeout;
  (void)service->Ask(device(0), dcmi::kPower);
  EXPECT_EQ(service->LastAnswerNs(device(0)), then);
  EXPECT_LT(service->LastAnswerNs(device(1)), then);
}

TEST_F(DcmiServiceTest, DurationsAreCountedBySize) {
  Start();
  (void)service->Ask(device(0), dcmi::kTemperature);
  const DcmiCallStatistics s = service->Statistics()[static_cast<size_t>(DcmiCall::kTemperature)];
  EXPECT_EQ(s.durations.counts[0], 1u);
  const DcmiCallStatistics none = service->Statistics()[static_cast<size_t>(DcmiCall::kMemoryInfo)];
  EXPECT_EQ(none.durations.counts[0], 0u);
}

// ---- accumulators ----

TEST_F(DcmiServiceTest, EnergyIsTheIntegralOfPower) {
  Start();
  fake->devices[0].power = 1000;  // 100 W
  service->Ask(device(0), dcmi::kPower);
  EXPECT_DOUBLE_EQ(service->EnergyJoules(device(0)), 0);
  clock.Advance(2 * kNsPerSecond);
  fake->devices[0].power = 2000;
  service->Ask(device(0), dcmi::kPower);  // 2 s at 150 W on average
  EXPECT_DOUBLE_EQ(service->EnergyJoules(device(0)), 300);
  clock.Advance(DcmiService::kMaxEnergyGapNs + 1);
  service->Ask(device(0), dcmi::kPower);  // what happened meanwhile is unknown
  EXPECT_DOUBLE_EQ(service->EnergyJoules(device(0)), 300);
  clock.Advance(kNsPerSecond);
  service->Ask(device(0), dcmi::kPower);
  EXPECT_DOUBLE_EQ(service->EnergyJoules(device(0)), 500);
  EXPECT_DOUBLE_EQ(service->EnergyJoules(device(1)), 0);
}

TEST_F(DcmiServiceTest, SioCountersOfSixteenBitsAreUnwrapped) {
  Start();
  fake->devices[0].sio = {65530, 10, {}};
  EXPECT_EQ(service->SioErrors(device(0)).value.tx, 0u);
  fake->devices[0].sio = {4, 13, {}};
  EXPECT_EQ(service->SioErrors(device(0)).value.tx, 10u);
  EXPECT_EQ(service->SioErrors(device(0)).value.rx, 3u);
  // A device that was away comes back with its counters at zero: that is not a wrap.
  fake->codes["device_info/56/0"] = abi::kDcmiDeviceMissing;
  EXPECT_FALSE(service->SioErrors(device(0)).ok());
  fake->codes.clear();
  fake->devices[0].sio = {0, 0, {}};
  EXPECT_EQ(service->SioErrors(device(0)).value.tx, 10u);
  fake->devices[0].sio = {1, 0, {}};
  EXPECT_EQ(service->SioErrors(device(0)).value.tx, 11u);
}

// ---- calls that hang ----

TEST_F(DcmiServiceTest, AHungCallMarksItsDeviceOnlyAndIsForgivenWhenItReturns) {
  Start();
  fake->Close("1:health");
  int late_code = 0;
  int after_code = 1;
  std::thread hung([&] {
    late_code = service->Health(device(1)).code;
    after_code = service->Health(device(1)).code;
  });
  fake->AwaitHanging();
  const int64_t begin = clock.SteadyNs();
  EXPECT_FALSE(service->CheckStuck(begin + 4 * kNsPerSecond, 5 * kNsPerSecond));
  EXPECT_TRUE(service->CheckStuck(begin + 5 * kNsPerSecond, 5 * kNsPerSecond));
  auto found = service->StuckCalls(begin + 5 * kNsPerSecond);
  ASSERT_EQ(found.size(), 1u);
  EXPECT_EQ(found[0].text, "dcmi_get_device_health for NPU 1 has not returned for 5 s");
  EXPECT_EQ(found[0].physical_id, 1);
  EXPECT_THAT(service->ProblemOf(device(1), begin + 5 * kNsPerSecond),
              HasSubstr("has not returned for 5 s: the card hangs"));
  EXPECT_FALSE(service->CheckStuck(begin + 6 * kNsPerSecond, 5 * kNsPerSecond));
  EXPECT_EQ(service->StuckCalls(begin + 7 * kNsPerSecond).size(), 1u);
  EXPECT_TRUE(service->HasCallInFlight());

  EXPECT_EQ(service->Ask(device(1), dcmi::kTemperature).code, kDcmiStuck);
  EXPECT_EQ(fake->asked["1:temperature"], 0);
  EXPECT_EQ(service->Ask(device(0), dcmi::kTemperature).value, 45);

  fake->Open();
  hung.join();
  EXPECT_EQ(late_code, kDcmiAbandoned);
  EXPECT_EQ(after_code, 0);
  EXPECT_FALSE(service->HasCallInFlight());
  EXPECT_TRUE(service->StuckCalls(begin).empty());
  EXPECT_EQ(service->Ask(device(1), dcmi::kTemperature).value, 45);
}

TEST_F(DcmiServiceTest, AHungStartCanBeRepeatedOnAnotherThread) {
  fake.emplace(1);
  fake->Close("-1:init");
  service.emplace(fake->V1(), clock);
  Status late;
  std::thread hung([&] { late = service->Start(); });
  fake->AwaitHanging();
  const int64_t now = clock.SteadyNs() + 9 * kNsPerSecond;
  EXPECT_TRUE(service->CheckStuck(now, 5 * kNsPerSecond));
  auto found = service->StuckCalls(now);
  ASSERT_EQ(found.size(), 1u);
  EXPECT_EQ(found[0].text, "dcmi_init has not returned for 9 s");
  EXPECT_EQ(service->Start().code(), StatusCode::kUnavailable);
  fake->Open();
  hung.join();
  EXPECT_EQ(late.code(), StatusCode::kUnavailable);
  EXPECT_TRUE(service->devices().empty());
  EXPECT_TRUE(service->Start().ok());
  EXPECT_EQ(service->devices().size(), 1u);
}

}  // namespace
}  // namespace profd
