#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <thread>

#include "base/testing/temp_dir.h"
#include "collectors/collector_list.h"
#include "collectors/npu_state/npu_state_test_support.h"

namespace profd {
namespace {

using testing::FakeDcmi;
using testing::FakeDcmiDevice;
using testing::FakeRegistry;
using testing::FakeTree;
using ::testing::Contains;
using ::testing::HasSubstr;
using testing::Lines;
using ::testing::Not;
using testing::NpuStateTest;
using testing::NullSink;

// A 910B with values whose base units are easy to work out by hand.
void FillDevice(FakeDcmiDevice& d) {
  d.health = 2;
  d.error_codes = {0x80E18005, 0x81078603};
  abi::DcmiFaultEvent fault{};
  fault.event_id = 0x80E18005;
  fault.severity = 2;
  fault.assertion = 1;
  std::strncpy(fault.event_name, "HBM multi-bit\tECC error", sizeof fault.event_name - 1);
  d.faults = {fault};
  d.frequency = {{abi::kFreqCtrlCpu, 2000}, {abi::kFreqVectorCurrent, 1700}};
  d.utilization = {{abi::kUtilAicpu, 7},
                   {abi::kUtilCtrlCpu, 101},
                   {abi::kUtilHbm, 50},
                   {abi::kUtilHbmBandwidth, 12}};
  d.multi = {40, 30, 60, 55, {}};
  d.ecc = {1, 2, 3, 4, 5, 6, 7, 8, 9};
  d.pcie_errors = {1, 2, 3, 4, 5, {}};
  d.pcie_counts.symbol_unlock_counter = 6;
  d.pcie_counts.pcs_rx_err_cnt = 7;
  d.pcie_counts.phy_lane_err_counter = 8;
  d.pcie_counts.dl_dcrc_err_num = 9;
  d.hccs.tx_cnt[1] = 5'000'000'000;
  d.hccs.crc_err_cnt[7] = 11;
  d.hccs_lanes.port_bitmap = 0b110;
  d.hccs_lanes.lane_bitmap[1] = 0xF;
  d.sio = {100, 200, {}};
  d.cores = {1, 2, 3};
  d.throttle = 0b100;
  auto* word = reinterpret_cast<uint64_t*>(&d.packets);
  for (uint64_t i = 0; i < 48; ++i) word[i] = 1000 + i;  // field i of the vendor's list
  for (uint32_t i = 0; i < 8; ++i) {
    d.hccs_credits.credit_num[i] = 10 * i;
    d.traffic_classes.tc_tx[i] = 100 + i;
    d.traffic_classes.tc_rx[i] = 200 + i;
    d.pfc_duration.tx[i] = 300 + i;
    d.pfc_duration.rx[i] = 400 + i;
  }
  d.extra.cw_total_cnt = 1'000'000;
  d.extra.cw_correct_cnt = 17;
  d.extra.cw_uncorrect_cnt = 3;
  d.extra.cw_bad_cnt = 4;
  d.extra.cw_total_correct_bit = 23;
  d.extra.correcting_bit_rate = 0.25;
  abi::DcmiComputingResource& vdev = d.vdevs[100];
  vdev.vdev_aicore_utilization = 40;
  vdev.vdev_memory_total = 1000;
  vdev.vdev_memory_free = 400;
  d.dvpp = {{abi::kSubDvppVdec, 10}, {abi::kSubDvppVpc, 20}};
  d.processes = {{4242, 3ull << 30}, {77, 1}};
  d.sensors[abi::kSensorSocTemp].int_value = -5;
  d.sensors[abi::kSensorNtc].ntc_temp[0] = 40;
  d.sensors[abi::kSensorNtc].ntc_temp[1] = 41;
  d.sensors[abi::kSensorNtc].ntc_temp[2] = 42;
  d.sensors[abi::kSensorNtc].ntc_temp[3] = 0x7FFD;
  d.sensors[abi::kSensorThermalThreshold].temp[0] = 95;
  d.sensors[abi::kSensorThermalThreshold].temp[1] = 105;
}

TEST_F(NpuStateTest, FirstTickReadsEverythingInBaseUnits) {
  tree.Write("bus/pci/devices/0000:c1:00.0/numa_node", "3\n");
  fake.emplace(1);
  FillDevice(fake->devices[0]);
  fake->codes["dvpp_ratio"] = abi::kDcmiNotSupported;
  fake->codes["memory_info_v3"] = abi::kDcmiNotSupported;
  fake->codes["ecc_info/0"] = abi::kDcmiNotSupported;
  Start(1);
  std::vector<std::string> lines = Lines(PollAt(0), "atlas_");
  EXPECT_TRUE(last.ok());
  const std::string expected = ReadText("collectors/npu_state/testdata/910b.expected");
  ASSERT_FALSE(expected.empty());
  EXPECT_EQ(lines, Lines(expected));
}

// Vendors' drivers have an entry for each wired link, with the mode of the lanes beside them.
TEST_F(NpuStateTest, LanesMayBePackedAndHaveAMode) {
  fake.emplace(1);
  abi::DcmiHccsLanes& lanes = fake->devices[0].hccs_lanes;
  lanes.port_bitmap = 0b11111110;
  for (size_t i = 0; i < 7; ++i) lanes.lane_bitmap[i] = 0x41F;  // on, 4 lanes, mode 2
  lanes.lane_bitmap[6] = 0x407;
  Start(1);
  const std::string text = PollAt(0);
  EXPECT_THAT(text, HasSubstr("atlas_npu_hccs_lanes_up{npu=\"0\",link=\"1\"} 4\n"));
  EXPECT_THAT(text, HasSubstr("atlas_npu_hccs_lanes_up{npu=\"0\",link=\"7\"} 2\n"));
}

TEST_F(NpuStateTest, LinksOfTheAtlas9000A3BeginAtTwo) {
  fake.emplace(1);
  fake->devices[0].mainboard_id = 0x1C;
  Start(1);
  const std::string text = PollAt(0);
  EXPECT_THAT(text, HasSubstr("atlas_npu_hccs_crc_errors_total{npu=\"0\",link=\"2\"} 0\n"));
  EXPECT_THAT(text, Not(HasSubstr("atlas_npu_hccs_crc_errors_total{npu=\"0\",link=\"1\"}")));
}

TEST_F(NpuStateTest, CountersAreThereFromTheFirstTickAtZero) {
  Start(1);
  const std::string text = PollAt(0);
  for (const char* line :
       {"atlas_npu_energy_joules_total{npu=\"0\"} 0\n",
        "atlas_npu_ecc_errors_total{npu=\"0\",memory=\"hbm\",type=\"double\"} 0\n",
        "atlas_npu_hccs_crc_errors_total{npu=\"0\",link=\"7\"} 0\n",
        "atlas_npu_sio_crc_errors_total{npu=\"0\",direction=\"rx\"} 0\n",
        "atlas_npu_network_bytes_total{npu=\"0\",direction=\"tx\",layer=\"mac\"} 0\n",
        "atlas_npu_roce_retransmits_total{npu=\"0\"} 0\n",
        "atlas_npu_fault_events_total{npu=\"0\",severity=\"critical\",assertion=\"raised\"} 0\n",
        "atlas_npu_network_tc_packets_total{npu=\"0\",direction=\"rx\",tc=\"7\"} 0\n",
        "atlas_npu_network_pfc_duration_total{npu=\"0\",direction=\"tx\",priority=\"0\"} 0\n",
        "atlas_npu_network_fec_codewords_total{npu=\"0\",state=\"uncorrected\"} 0\n",
        "atlas_npu_network_fec_corrections_total{npu=\"0\"} 0\n",
        "atlas_npu_pcie_errors_total{npu=\"0\",type=\"ecrc\"} 0\n"}) {
    EXPECT_THAT(text, HasSubstr(line));
  }
}

TEST_F(NpuStateTest, GroupsAreReadAtTheirOwnPace) {
  Start(1);
  PollAt(0);
  for (int second = 1; second <= 60; ++second) PollAt(second);
  EXPECT_EQ(fake->asked["0:power"], 61);
  EXPECT_EQ(fake->asked["0:temperature"], 7);
  EXPECT_EQ(fake->asked["0:boot_status"], 2);
}

TEST_F(NpuStateTest, SteadyStateMakesNoNewSeries) {
  Start(2);
  PollAt(0);
  PollAt(10);
  const size_t series = registry.total();
  for (int second = 11; second <= 130; ++second) PollAt(second);
  EXPECT_EQ(registry.total(), series);
  EXPECT_EQ(registry.live(), series);
}

TEST_F(NpuStateTest, EnergyAddsUp) {
  Start(1);
  PollAt(0);
  fake->devices[0].power = 3095;
  EXPECT_THAT(PollAt(2), HasSubstr("atlas_npu_energy_joules_total{npu=\"0\"} 620\n"));
}

TEST_F(NpuStateTest, AValueThatFailsIsAbsentAndItsSeriesIsReleased) {
  Start(1);
  PollAt(0);
  const size_t live = registry.live();
  fake->codes["power"] = abi::kDcmiInternal;
  const std::string text = PollAt(1);
  EXPECT_THAT(text, Not(HasSubstr("atlas_npu_power_watts")));
  EXPECT_THAT(text, HasSubstr("atlas_npu_up{npu=\"0\"} 1"));
  EXPECT_EQ(registry.live(), live - 2);  // power and energy
  fake->codes.clear();
  EXPECT_THAT(PollAt(2), HasSubstr("atlas_npu_power_watts"));
  EXPECT_EQ(registry.live(), live);
}

TEST_F(NpuStateTest, NothingIsEverMinusOneOrNotFinite) {
  Start(2);
  for (const DcmiErrorInfo& error : DcmiErrors()) {
    for (const char* call : {"health", "power", "hbm_info", "temperature", "multi_utilization",
                             "ecc_info/2", "llc_perf", "packet_statistics"}) {
      fake->codes["0:" + std::string(call)] = error.code == 0 ? -4711 : error.code;
    }
    collector.reset();
    dcmi.emplace(fake->V1(), clock);
    ASSERT_TRUE(dcmi->Start().ok());
    collector = MakeNpuState(*host, {}, registry);
    PollAt(0);
    for (const Sample& sample : batch.samples()) {
      EXPECT_TRUE(std::isfinite(sample.value)) << registry.Name(sample.series);
      EXPECT_GE(sample.value, 0) << registry.Name(sample.series);
    }
  }
}

TEST_F(NpuStateTest, ADroppedCardKeepsUpAndLosesTheRest) {
  Start(2);
  PollAt(0);
  const size_t live = registry.live();
  for (const char* call : {"1:multi_utilization", "1:health", "1:power"}) {
    fake->codes[call] = abi::kDcmiDeviceMissing;
  }
  std::string text = PollAt(1);
  EXPECT_TRUE(last.ok());
  EXPECT_EQ(Lines(text, "atlas_npu_up"),
            (std::vector<std::string>{"atlas_npu_up{npu=\"0\"} 1", "atlas_npu_up{npu=\"1\"} 0"}));
  EXPECT_EQ(Lines(text, "atlas_npus"),
            (std::vector<std::string>{
                "atlas_npus{state=\"healthy\"} 1", "atlas_npus{state=\"present\"} 2",
                "atlas_npus{state=\"unhealthy\"} 0", "atlas_npus{state=\"unknown\"} 1"}));
  EXPECT_THAT(text, HasSubstr("atlas_npu_power_watts{npu=\"0\",scope=\"chip\"}"));
  EXPECT_THAT(text, Not(HasSubstr("atlas_npu_power_watts{npu=\"1\"")));
  EXPECT_LT(registry.live(), live);

  // Asked ever less often: after 1, 2, 4 and 8 s, then every 10 s.
  const int asked = fake->asked["1:health"];
  for (int second = 2; second <= 36; ++second) PollAt(second);
  EXPECT_EQ(fake->asked["1:health"] - asked, 6);  // at 2, 4, 8, 16, 26, 36

  fake->codes.clear();
  for (int second = 37; second <= 46; ++second) text = PollAt(second);
  EXPECT_THAT(text, HasSubstr("atlas_npu_up{npu=\"1\"} 1"));
  EXPECT_THAT(text, HasSubstr("atlas_npu_hccs_crc_errors_total{npu=\"1\",link=\"1\"}"));
  EXPECT_EQ(Lines(text, "atlas_npus{state=\"healthy\"}"),
            std::vector<std::string>{"atlas_npus{state=\"healthy\"} 2"});
}

// The store withdraws a series after three and a half of its intervals: slow values that are read again a moment after
// the card came back would be absent for most of the next minute.
TEST_F(NpuStateTest, ThePeriodsOfACardThatIsBackBeginThen) {
  Start(1);
  PollAt(0);
  for (const char* call : {"0:multi_utilization", "0:health", "0:power"}) fake->codes[call] = abi::kDcmiDeviceMissing;
  for (int second = 1; second <= 52; ++second) PollAt(second);
  fake->codes.clear();
  int back = 53;
  while (back < 63 && fake->asked["0:boot_status"] < 2) PollAt(back++);
  EXPECT_EQ(fake->asked["0:boot_status"], 2);
  for (int second = back; second < back + 59; ++second) PollAt(second);
  EXPECT_EQ(fake->asked["0:boot_status"], 2);
  PollAt(back + 59);
  EXPECT_EQ(fake->asked["0:boot_status"], 3);
}

TEST_F(NpuStateTest, ValuesThatAreNotNumbersAreAbsent) {
  fake.emplace(1);
  FillDevice(fake->devices[0]);
  fake->devices[0].extra.correcting_bit_rate = std::nan("");
  fake->devices[0].hccs_bandwidth.total_txbw = std::nan("");
  fake->devices[0].hccs_bandwidth.rx_bandwidth[1] = HUGE_VAL;
  Start(1, {.hccs_bandwidth_ms = 1});
  PollAt(0);
  EXPECT_FALSE(batch.samples().empty());
  for (const Sample& sample : batch.samples()) {
    EXPECT_TRUE(std::isfinite(sample.value)) << registry.Name(sample.series);
  }
}

// The id of a released series may be another NPU's a moment later.
TEST_F(NpuStateTest, WithdrawsValuesOfACardThatDropped) {
  Start(2);
  PollAt(0);
  for (const char* call : {"0:ecc_info/2", "0:health"}) {
    fake->codes[call] = abi::kDcmiDeviceMissing;
  }
  const std::string text = PollAt(60);
  EXPECT_THAT(text, HasSubstr("atlas_npu_up{npu=\"0\"} 0"));
  EXPECT_THAT(text, HasSubstr("atlas_npu_power_watts{npu=\"1\""));
  for (const Sample& sample : batch.samples()) {
    EXPECT_TRUE(registry.IsLive(sample.series)) << registry.Name(sample.series);
  }
}

TEST_F(NpuStateTest, ATimeoutOfOneCallDoesNotTakeTheNpuDown) {
  Start(1);
  fake->codes["network_health"] = abi::kDcmiTimeout;
  const std::string text = PollAt(0);
  EXPECT_THAT(text, HasSubstr("atlas_npu_up{npu=\"0\"} 1"));
  EXPECT_THAT(text, Not(HasSubstr("atlas_npu_network_health")));
  EXPECT_THAT(text, HasSubstr("atlas_npu_network_bytes_total"));
}

TEST_F(NpuStateTest, AllNpusGoneIsAnError) {
  Start(1);
  fake->codes["health"] = abi::kDcmiNotReady;
  fake->codes["power"] = abi::kDcmiNotReady;
  EXPECT_THAT(PollAt(0), HasSubstr("atlas_npu_up{npu=\"0\"} 0"));
  EXPECT_EQ(last.code(), StatusCode::kUnavailable);
}

TEST_F(NpuStateTest, FaultsComeAndGo) {
  Start(1);
  EXPECT_THAT(PollAt(0), Not(HasSubstr("atlas_npu_fault_active")));
  const size_t live = registry.live();
  fake->devices[0].error_codes = {0x80E18005};
  EXPECT_THAT(PollAt(10), HasSubstr("atlas_npu_fault_active{npu=\"0\",code=\"0x80E18005\","
                                    "severity=\"unknown\",name=\"\"} 1"));
  EXPECT_EQ(registry.live(), live + 3);  // also its two counts
  fake->devices[0].error_codes.clear();
  EXPECT_THAT(PollAt(20), Not(HasSubstr("atlas_npu_fault_active")));
  EXPECT_EQ(registry.live(), live + 2);  // its events stay: raised, recovered
}

TEST_F(NpuStateTest, AFaultKeepsItsSeverityWhileItsCodeIsReported) {
  fake.emplace(1);
  FillDevice(fake->devices[0]);
  Start(1);
  const std::vector<std::string> before = Lines(PollAt(0), "atlas_npu_fault");
  fake->devices[0].faults.clear();
  EXPECT_EQ(Lines(PollAt(10), "atlas_npu_fault"), before);
}

TEST_F(NpuStateTest, AFaultKeepsItsSeverityWhileItsEventsCannotBeRead) {
  fake.emplace(1);
  FillDevice(fake->devices[0]);
  Start(1);
  const std::vector<std::string> before = Lines(PollAt(0), "atlas_npu_fault_active");
  ASSERT_THAT(before, Contains(HasSubstr("code=\"0x80E18005\",severity=\"major\"")));
  fake->codes["current_faults"] = abi::kDcmiInternal;
  EXPECT_EQ(Lines(PollAt(10), "atlas_npu_fault_active"), before);
  fake->devices[0].error_codes = {0x81078603};
  EXPECT_THAT(PollAt(20), Not(HasSubstr("0x80E18005")));
}

TEST_F(NpuStateTest, ProcessesAreBoundedAndReleasedWhenGone) {
  Start(1);
  PollAt(0);
  const size_t live = registry.live();
  for (int pid = 1; pid <= 500; ++pid) fake->devices[0].processes.push_back({pid, 4096});
  EXPECT_EQ(Lines(PollAt(10), "atlas_npu_process_memory_bytes").size(), 32u);
  EXPECT_EQ(registry.live(), live + 32);
  fake->devices[0].processes = {{9000, 1}, {9000, 2}, {-3, 1}};
  EXPECT_EQ(Lines(PollAt(20), "atlas_npu_process_memory_bytes"),
            std::vector<std::string>{"atlas_npu_process_memory_bytes{npu=\"0\",pid=\"9000\","
                                     "job=\"\",container=\"\"} 1"});
  EXPECT_EQ(registry.live(), live + 1);
}

TEST_F(NpuStateTest, AThrottleReasonSeenOnceFallsToZero) {
  Start(1);
  fake->devices[0].throttle = 1u << 5;
  EXPECT_THAT(PollAt(0), HasSubstr("atlas_npu_throttle_reason{npu=\"0\",reason=\"bit5\"} 1"));
  fake->devices[0].throttle = 0;
  EXPECT_THAT(PollAt(10), HasSubstr("atlas_npu_throttle_reason{npu=\"0\",reason=\"bit5\"} 0"));
}

TEST_F(NpuStateTest, ProfilingIsSeenInTheCores) {
  Start(1);
  fake->devices[0].cores = {0, abi::kCoreUtilProfilingOn, 0};
  EXPECT_THAT(PollAt(0), HasSubstr("atlas_npu_profiling_active{npu=\"0\"} 1"));
  fake->devices[0].cores = {5, 6, 7};
  EXPECT_THAT(PollAt(10), HasSubstr("atlas_npu_profiling_active{npu=\"0\"} 0"));
}

TEST_F(NpuStateTest, BlockingAndWideMetricsAreOffUnlessConfigured) {
  Start(1);
  fake->devices[0].cores = {50, 101};
  const std::string text = PollAt(0);
  for (const char* call :
       {"0:pcie_bandwidth", "0:hccs_bandwidth", "0:rdma_bandwidth", "0:serdes_quality/0"}) {
    EXPECT_EQ(fake->asked[call], 0) << call;
  }
  EXPECT_THAT(text, Not(HasSubstr("atlas_npu_core_utilization_ratio")));
}

TEST_F(NpuStateTest, BlockingReadingsInBaseUnits) {
  fake.emplace(1);
  FakeDcmiDevice& d = fake->devices[0];
  d.cores = {50, 101};
  d.pcie_bandwidth.tx_np_bw[1] = 3;
  d.pcie_bandwidth.tx_np_lantency[2] = 800;
  d.hccs_bandwidth.total_rxbw = 2;
  d.hccs_bandwidth.tx_bandwidth[4] = 0.5;
  Start(1, {.pcie_bandwidth_ms = 20,
            .hccs_bandwidth_ms = 30,
            .rdma_bandwidth_ms = 200,
            .core_utilization = true});
  const std::string text = PollAt(0);
  for (const char* line :
       {"atlas_npu_pcie_bandwidth_bytes_per_second{npu=\"0\",direction=\"tx\","
        "type=\"nonposted\",stat=\"max\"} 3145728000\n",
        "atlas_npu_pcie_read_latency_seconds{npu=\"0\",stat=\"avg\"} 8e-07\n",
        "atlas_npu_hccs_bandwidth_bytes_per_second{npu=\"0\",link=\"all\","
        "direction=\"rx\"} 2147483648\n",
        "atlas_npu_hccs_bandwidth_bytes_per_second{npu=\"0\",link=\"4\","
        "direction=\"tx\"} 536870912\n",
        "atlas_npu_rdma_bandwidth_bytes_per_second{npu=\"0\",direction=\"rx\"} 200000000\n",
        "atlas_npu_core_utilization_ratio{npu=\"0\",core=\"0\",kind=\"aicore\"} 0.5\n"}) {
    EXPECT_THAT(text, HasSubstr(line));
  }
  EXPECT_THAT(text, Not(HasSubstr("core=\"1\"")));
}

TEST_F(NpuStateTest, BucketsOfCallsArePresentWhenConfigured) {
  Start(1, {.call_buckets = true});
  PollAt(0);
  const std::string text = PollAt(10);
  const std::string name = "profd_dcmi_call_duration_seconds{call=\"dcmi_get_device_temperature\",";
  EXPECT_EQ(Lines(text, name).size(), 8u);
  EXPECT_THAT(text, HasSubstr(name + "le=\"0.0001\"} 2"));
  EXPECT_THAT(text, HasSubstr(name + "le=\"+Inf\"} 2"));
}

TEST_F(NpuStateTest, CallsErrorsAndRefusalsAreMetricsToo) {
  Start(1);
  fake->codes["voltage"] = abi::kDcmiNotSupported;
  PollAt(0);
  const std::string text = PollAt(10);
  EXPECT_THAT(text, HasSubstr("profd_dcmi_calls_total{call=\"dcmi_get_device_temperature\"} 2"));
  EXPECT_THAT(text, HasSubstr("profd_dcmi_calls_total{call=\"dcmi_get_device_voltage\"} 1"));
  // Without buckets: the number of calls, and their sum. All selectors of a function together; what
  // the library does not have is not a call.
  EXPECT_THAT(text,
              HasSubstr("profd_dcmi_call_duration_seconds{call=\"dcmi_get_device_temperature\","
                        "le=\"+Inf\"} 2"));
  EXPECT_EQ(Lines(text, "profd_dcmi_call_duration_seconds{call=\"dcmi_get_device_frequency").size(),
            2u);
  EXPECT_EQ(Lines(text, "profd_dcmi_call_duration_seconds{call=\"dcmi_get_device_dvpp").size(), 0u);
  EXPECT_THAT(text, HasSubstr("profd_dcmi_call_errors_total{call=\"dcmi_get_device_voltage\","
                              "code=\"-8255\"} 1"));
  EXPECT_THAT(text,
              HasSubstr("profd_dcmi_unsupported{npu=\"0\",call=\"dcmi_get_device_voltage\"} 1"));
}

TEST_F(NpuStateTest, AHungCallCostsItsNpuAndTheThreadButNothingElse) {
  Start(2);
  PollAt(0);
  fake->Close("1:power");
  Status late;
  std::thread hung([&] {
    SampleBatch own;
    NullSink nowhere;
    PollOutput out{own, nowhere};
    late = collector->Poll({kStart + kNsPerSecond, kStart + kNsPerSecond, 0}, out);
  });
  fake->AwaitHanging();
  EXPECT_TRUE(dcmi->CheckStuck(clock.steady_ns + 5 * kNsPerSecond, 5 * kNsPerSecond));

  // What the daemon does: a new instance on a new thread, while the old one hangs.
  std::unique_ptr<PolledCollector> second = MakeNpuState(*host, {}, registry);
  SampleBatch own;
  PollOutput out{own, sink};
  EXPECT_TRUE(second->Poll({kStart + 6 * kNsPerSecond, kStart, 0}, out).ok());
  std::string text = registry.PrintValues(own);
  EXPECT_THAT(text, HasSubstr("atlas_npu_up{npu=\"0\"} 1"));
  EXPECT_THAT(text, HasSubstr("atlas_npu_power_watts{npu=\"0\""));
  EXPECT_THAT(text, HasSubstr("atlas_npu_up{npu=\"1\"} 0"));
  EXPECT_THAT(text, Not(HasSubstr("atlas_npu_power_watts{npu=\"1\"")));

  fake->Open();
  hung.join();
  EXPECT_EQ(late.code(), StatusCode::kUnavailable);
  collector.reset();
  own.Clear();
  clock.raw_ns += kNsPerSecond;  // its first retry
  EXPECT_TRUE(second->Poll({kStart + 7 * kNsPerSecond, kStart, 0}, out).ok());
  EXPECT_THAT(registry.PrintValues(own), HasSubstr("atlas_npu_up{npu=\"1\"} 1"));
}

TEST_F(NpuStateTest, EverySeriesIsReleasedAtTheEnd) {
  fake.emplace(1);
  FillDevice(fake->devices[0]);
  Start(1);
  PollAt(0);
  EXPECT_GT(registry.live(), 100u);
  collector.reset();
  EXPECT_EQ(registry.live(), 0u);
}

TEST_F(NpuStateTest, ProbeReportsWhatIsMissing) {
  Host without{clock, *sys, *sys, nullptr, {}, 0};
  Status status = kNpuStateCollector.probe_host(without);
  EXPECT_EQ(status.code(), StatusCode::kUnimplemented);
  EXPECT_THAT(status.message(), HasSubstr("libdcmi.so"));
  EXPECT_FALSE(kNpuStateCollector.make_poller(without, {}, registry).ok());
  Start(1);
  EXPECT_TRUE(kNpuStateCollector.probe_host(*host).ok());
  EXPECT_TRUE(kNpuStateCollector.make_poller(*host, {}, registry).ok());
}

}  // namespace
}  // namespace profd
