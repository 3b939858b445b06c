#include "driver/dcmi_service.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <set>
#include <thread>

#include "driver/testing/dcmi_service_fixture.h"

namespace profd {
namespace {

using ::testing::HasSubstr;

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

TEST_F(DcmiServiceTest, WhatIsDeniedIsNewsOnce) {
  Start();
  EXPECT_TRUE(service->TakeDenials().empty());
  fake->codes["power"] = abi::kDcmiNotPermitted;
  fake->codes["voltage"] = abi::kDcmiNotSupported;
  for (size_t i : {1, 0, 1}) {
    service->Ask(device(i), dcmi::kPower);
    service->Ask(device(i), dcmi::kVoltage);
  }
  const std::vector<DcmiDenial> denials = service->TakeDenials();
  ASSERT_EQ(denials.size(), 1u);
  EXPECT_EQ(denials[0].call, DcmiCall::kPower);
  EXPECT_EQ(denials[0].physical_id, 1);
  EXPECT_TRUE(service->TakeDenials().empty());
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
  StartOver(library);
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
  StartOver(library);
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

TEST_F(DcmiServiceTest, EnergyLeavesOutPowerThatIsNotKnown) {
  Start();
  for (int power : {1000, -1, 0x7FFFFFFF, 1000}) {
    fake->devices[0].power = power;
    service->Ask(device(0), dcmi::kPower);
    clock.Advance(kNsPerSecond);
  }
  EXPECT_DOUBLE_EQ(service->EnergyJoules(device(0)), 300);  // 3 s at 100 W
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

TEST_F(DcmiServiceTest, AnNpuThatWasLostHasNewBasesOfItsSioCounters) {
  Start();
  auto read = [&](uint16_t tx) {
    fake->devices[0].sio = {tx, 0, {}};
    return service->SioErrors(device(0)).value.tx;
  };
  EXPECT_EQ(read(65530), 0u);
  EXPECT_EQ(read(65535), 5u);
  // Nothing but its health was asked meanwhile.
  fake->codes["0:health"] = abi::kDcmiDeviceMissing;
  EXPECT_FALSE(service->Health(device(0)).ok());
  fake->codes.clear();
  EXPECT_TRUE(service->Health(device(0)).ok());
  EXPECT_EQ(read(0), 5u);
  EXPECT_EQ(read(9), 14u);
  fake->devices[0].health = abi::kDcmiHealthAbsent;
  EXPECT_FALSE(service->Health(device(0)).ok());
  fake->devices[0].health = 0;
  EXPECT_EQ(read(1), 14u);
  // This says nothing about the NPU.
  fake->codes["0:health"] = abi::kDcmiInternal;
  EXPECT_FALSE(service->Health(device(0)).ok());
  fake->codes.clear();
  EXPECT_EQ(read(0), 14u + 65535u);
  EXPECT_EQ(read(3), 14u + 65538u);
  fake->Close("0:temperature");
  std::thread hung([&] { service->Ask(device(0), dcmi::kTemperature); });
  fake->AwaitHanging();
  EXPECT_TRUE(service->CheckStuck(clock.SteadyNs() + 5 * kNsPerSecond, 5 * kNsPerSecond));
  fake->Open();
  hung.join();
  EXPECT_EQ(read(0), 14u + 65538u);
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

}  // namespace
}  // namespace profd
