// What only some chips report, and what is read only when configured.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <array>
#include <cstring>
#include <thread>

#include "collectors/collector_list.h"
#include "collectors/metric_table.h"
#include "collectors/npu_state/npu_state_test_support.h"
#include "collectors/npu_state/row_readings.h"

namespace profd {
namespace {

using ::testing::ElementsAre;
using testing::FakeDcmiDevice;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using testing::Lines;
using ::testing::Not;
using testing::NpuStateTest;

TEST(NpuStateOptions, NamesAndMilliseconds) {
  std::vector<std::string> problems;
  const std::vector<std::string> items =
      {"serdes", "core_utilization", "call_buckets", "pcie_bandwidth=20", "hccs_bandwidth"};
  const NpuStateOptions options = ParseNpuStateOptions(items, &problems);
  EXPECT_THAT(problems, IsEmpty());
  EXPECT_TRUE(options.serdes);
  EXPECT_TRUE(options.core_utilization);
  EXPECT_TRUE(options.call_buckets);
  EXPECT_EQ(options.pcie_bandwidth_ms, 20);
  EXPECT_EQ(options.hccs_bandwidth_ms, 100);
  EXPECT_EQ(options.rdma_bandwidth_ms, 0);
}

TEST_F(NpuStateTest, TheCardsPowerWhereTheChipDoesNotKnowItsOwn) {
  fake.emplace(1);
  fake->Set("board_power", 4105);
  Start(1);
  EXPECT_THAT(PollAt(0), Not(HasSubstr("scope=\"board\"")));
  EXPECT_EQ(fake->asked["0:board_power"], 0);
  collector.reset();
  fake->codes["power"] = abi::kDcmiNotSupported;
  Start(1);
  const std::string text = PollAt(0);
  EXPECT_THAT(text, HasSubstr("atlas_npu_power_watts{npu=\"0\",scope=\"board\"} 410.5\n"));
  EXPECT_THAT(text, Not(HasSubstr("scope=\"chip\"")));
}

// A peer of another board is not supported, those behind it are.
TEST_F(NpuStateTest, OneUnsupportedPeerHidesNoOther) {
  fake.emplace(3);
  fake->codes["0:topology/1"] = abi::kDcmiNotSupported;
  Start(3);
  for (const int second : {0, 61}) {
    EXPECT_THAT(Lines(PollAt(second), "atlas_npu_topology_info{npu=\"0\""),
                ElementsAre(HasSubstr("peer_npu=\"2\"")));
  }
  EXPECT_EQ(fake->asked["0:topology/1"], 1) << "it stays so";
}

// Everything that CONTRIBUTING.md lists for a reading, but for the simulator and the documents.
struct ToyAnswer {
  uint32_t percent;
  uint32_t decivolts;
};
constexpr DcmiQuery<ToyAnswer> kToy{
    {DcmiCall::kRatedPower, sizeof(ToyAnswer),
     [](const DcmiFunctions& f, const DcmiAddress& at, void* out) {
       return at.Info(f, abi::kCmdTemp, abi::kSubVdevTotal, static_cast<ToyAnswer*>(out));
     }}};
constexpr auto kToyRows = std::to_array<ReadingRow>({
    {ReadingPace::kSlow, "atlas_npu_voltage_volts", {"toy"},
     {reading::From(kToy, [](auto& v) { return v.decivolts * 0.1; })}},
    {ReadingPace::kSlow, "atlas_npu_utilization_ratio", {"toy"},
     {reading::From(kToy, [](auto& v) { return reading::kPercent(v.percent); }),
      reading::From(dcmi::kUtilNpu, reading::kPercent)}},
});
constexpr std::array<MetricId, 2> kToyMetrics = {MetricByName("atlas_npu_voltage_volts"),
                                                 MetricByName("atlas_npu_utilization_ratio")};

TEST_F(NpuStateTest, AMetricIsARowOfTheTables) {
  fake.emplace(1);
  fake->Set("device_info/50/1", ToyAnswer{101, 12});
  fake->devices[0].utilization[abi::kUtilNpu] = 30;
  Start(1);
  SlotOwner owner(registry, 0);
  RowReadings rows(kToyRows, kToyMetrics);
  auto read = [&] {
    SampleBatch samples;
    DevicePass pass(*dcmi, dcmi->devices()[0], owner, samples, 1);
    rows.BeginPass();
    rows.Read(pass, ReadingPace::kMedium);
    EXPECT_TRUE(samples.samples().empty());  // another row's pace
    rows.Read(pass, ReadingPace::kSlow);
    return Lines(registry.PrintValues(samples));
  };
  // 101 %: the driver does not know; that is an answer, so the second source is not asked.
  EXPECT_THAT(read(), ElementsAre("atlas_npu_voltage_volts{npu=\"0\",rail=\"toy\"} 1.2"));
  EXPECT_EQ(fake->asked["0:device_info/50/1"], 1);  // by both rows
  EXPECT_EQ(fake->asked["0:utilization/13"], 0);
  fake->codes["device_info/50/1"] = abi::kDcmiTimeout;
  EXPECT_THAT(read(), ElementsAre("atlas_npu_utilization_ratio{npu=\"0\",unit=\"toy\"} 0.3"));
}

TEST_F(NpuStateTest, FaultEventsAreCountedAcrossATimeWithoutAnswers) {
  Start(1);
  PollAt(0);
  abi::DcmiFaultEvent fault{};
  fault.event_id = 0x80E18005;
  fault.severity = 3;
  fault.assertion = 1;
  fake->devices[0].faults = {fault};
  EXPECT_THAT(PollAt(10), HasSubstr("atlas_npu_fault_events_total{npu=\"0\",severity=\"critical\","
                                    "assertion=\"raised\"} 1\n"));
  fake->codes["health"] = fake->codes["power"] = abi::kDcmiDeviceMissing;
  EXPECT_THAT(PollAt(20), Not(HasSubstr("atlas_npu_fault_events_total")));
  fake->codes.clear();
  fake->devices[0].faults.clear();
  const std::string text = PollAt(30);
  EXPECT_THAT(text, HasSubstr("severity=\"critical\",assertion=\"raised\"} 1\n"));
  EXPECT_THAT(text, HasSubstr("severity=\"critical\",assertion=\"recovered\"} 1\n"));
  EXPECT_THAT(text, Not(HasSubstr("severity=\"unknown\"")));
}

TEST_F(NpuStateTest, CodesThatAreNotAmongTheFaultsCount) {
  const std::string raised =
      "atlas_npu_fault_events_total{npu=\"0\",severity=\"unknown\",assertion=\"raised\"} ";
  const std::string active = "atlas_npu_faults_active{npu=\"0\",severity=\"unknown\"} ";
  Start(1);
  EXPECT_THAT(PollAt(0), Not(HasSubstr("severity=\"unknown\"")));
  fake->devices[0].error_codes = {0x80E18005, 0x81078603};
  std::string text = PollAt(10);
  EXPECT_THAT(text, HasSubstr(raised + "2\n"));
  EXPECT_THAT(text, HasSubstr(active + "2\n"));
  // A driver that has no other list: the lines are there, also without a fault.
  fake->codes["current_faults"] = abi::kDcmiNotSupported;
  fake->devices[0].error_codes.clear();
  text = PollAt(20);
  EXPECT_THAT(text, HasSubstr(raised + "2\n"));
  EXPECT_THAT(text, HasSubstr(active + "0\n"));
  EXPECT_THAT(text, HasSubstr("severity=\"unknown\",assertion=\"recovered\"} 2\n"));
  EXPECT_THAT(text, Not(HasSubstr("severity=\"critical\"")));
}

TEST_F(NpuStateTest, NonsenseOfTheNetworkPortIsAbsent) {
  fake.emplace(1);
  FakeDcmiDevice& d = fake->devices[0];
  std::memset(static_cast<void*>(&d.extra), 0xFF, sizeof d.extra);  // a ratio that is not a number
  std::memset(static_cast<void*>(&d.traffic_classes), 0xFF, sizeof d.traffic_classes);
  std::memset(static_cast<void*>(&d.pfc_duration), 0xFF, sizeof d.pfc_duration);
  std::memset(static_cast<void*>(&d.hccs_credits), 0xFF, sizeof d.hccs_credits);
  Start(1);
  std::string text = PollAt(0);
  for (const char* metric : {"atlas_npu_network_fec", "atlas_npu_network_tc",
                             "atlas_npu_network_pfc_duration", "atlas_npu_hccs_credits"}) {
    EXPECT_EQ(Lines(text, metric).size(), 0u) << metric;
  }
  d.extra.correcting_bit_rate = 1.5;
  EXPECT_THAT(PollAt(10), Not(HasSubstr("_fec_")));
  d.extra.correcting_bit_rate = 1e-12;
  EXPECT_THAT(PollAt(20), HasSubstr("atlas_npu_network_fec_bit_error_ratio{npu=\"0\"} 1e-12\n"));
}

TEST_F(NpuStateTest, VirtualNpusComeAndGo) {
  Start(1);
  EXPECT_THAT(PollAt(0), Not(HasSubstr("_vnpu_")));
  const size_t live = registry.live();
  abi::DcmiComputingResource& vdev = fake->devices[0].vdevs[1];
  vdev.vdev_aicore_utilization = 101;  // does not know
  vdev.vdev_memory_total = 8;
  vdev.vdev_memory_free = 3;
  fake->devices[0].vdevs[2].vdev_memory_free = 9;  // more than there is
  EXPECT_EQ(Lines(PollAt(10), "atlas_npu_vnpu_"),
            (std::vector<std::string>{
                "atlas_npu_vnpu_memory_bytes{npu=\"0\",vnpu=\"1\",kind=\"total\"} 8192",
                "atlas_npu_vnpu_memory_bytes{npu=\"0\",vnpu=\"1\",kind=\"used\"} 5120",
                "atlas_npu_vnpu_utilization_ratio{npu=\"0\",vnpu=\"2\"} 0"}));
  EXPECT_EQ(registry.live(), live + 3 + 1);  // and the count of the call
  fake->devices[0].vdevs.clear();
  EXPECT_THAT(PollAt(20), Not(HasSubstr("_vnpu_")));
  EXPECT_EQ(registry.live(), live + 1);
}

TEST_F(NpuStateTest, SerdesIsReadWhereThereIsALink) {
  fake.emplace(1);
  FakeDcmiDevice& d = fake->devices[0];
  d.serdes[0].lane[1] = {28, 60, 0, 0, 0, 0};
  d.serdes[9].lane[7] = {0, 0, -30, 25, -8, 8};
  fake->codes["serdes_quality/3"] = abi::kDcmiInvalidParameter;  // there is no macro 3
  fake->codes["serdes_quality/5"] = abi::kDcmiNotSupported;
  for (unsigned macro = 1; macro < 18; ++macro) d.serdes[macro];
  Start(1, {.serdes = true});
  EXPECT_EQ(
      Lines(PollAt(0), "atlas_npu_serdes_"),
      (std::vector<std::string>{"atlas_npu_serdes_eye_height{npu=\"0\",macro=\"0\",lane=\"1\"} 60",
                                "atlas_npu_serdes_eye_height{npu=\"0\",macro=\"9\",lane=\"7\"} 55",
                                "atlas_npu_serdes_snr{npu=\"0\",macro=\"0\",lane=\"1\"} 28"}));
  d.serdes[0].lane[1] = {};  // the link is gone
  std::string text;
  for (int second = 1; second <= 60; ++second) text += PollAt(second);
  EXPECT_EQ(Lines(text, "atlas_npu_serdes_").size(), 1u);
  EXPECT_EQ(fake->asked["0:serdes_quality/3"], 1);
  EXPECT_EQ(fake->asked["0:serdes_quality/5"], 1);
  EXPECT_EQ(fake->asked["0:serdes_quality/4"], 2);
}

TEST_F(NpuStateTest, ImpossibleValuesAreAbsent) {
  fake.emplace(1);
  FakeDcmiDevice& d = fake->devices[0];
  d.power = 0x7FFFFFFF;
  d.voltage = 0xFFFFFFFF;
  d.aicore = {0xFFFFFFFF, 0xFFFFFFFF};
  d.frequency = {{abi::kFreqVectorCurrent, 0x7FFFFFFF}};
  d.rated_power = 0xFFFFFFFF;
  d.network_health = 0xFF;
  Start(1);
  std::string text = PollAt(0);
  for (const char* metric :
       {"atlas_npu_power_watts", "atlas_npu_power_rated_watts", "atlas_npu_energy_joules_total",
        "atlas_npu_voltage_volts", "atlas_npu_frequency_hertz{npu=\"0\",domain=\"aicore\"}",
        "atlas_npu_frequency_hertz{npu=\"0\",domain=\"vector\"}",
        "atlas_npu_frequency_rated_hertz{npu=\"0\",domain=\"aicore\"}", "atlas_npu_network_health"}) {
    EXPECT_THAT(text, Not(HasSubstr(metric)));
  }
  d.power = 3105;
  d.voltage = 57;
  d.network_health = 8;
  text = PollAt(10);
  for (const char* line :
       {"atlas_npu_power_watts{npu=\"0\",scope=\"chip\"} 310.5\n", "atlas_npu_energy_joules_total{npu=\"0\"} 0\n",
        "atlas_npu_voltage_volts{npu=\"0\",rail=\"chip\"} 0.57\n", "atlas_npu_network_health{npu=\"0\"} 0\n",
        "atlas_npu_network_health_code{npu=\"0\"} 8\n"}) {
    EXPECT_THAT(text, HasSubstr(line));
  }
}

TEST_F(NpuStateTest, A310PIsCalledByItsProductAndHasOneLink) {
  fake.emplace(1);
  DcmiLibrary library = fake->V1();
  library.functions.product_type = [](int, int, char* out, int size) {
    std::strncpy(out, "Atlas 300I Pro", static_cast<size_t>(size));
    return 0;
  };
  library.functions.chip_info.v1 = [](int, int, abi::DcmiChipInfoV2* out) {
    std::memcpy(out->chip_name, "310P3", 6);
    return 0;
  };
  dcmi.emplace(std::move(library), clock);
  ASSERT_TRUE(dcmi->Start().ok());
  host.emplace(Host{clock, *sys, *sys, &*dcmi, {}, 0});
  collector = MakeNpuState(*host, {}, registry);
  const std::string text = PollAt(0);
  EXPECT_THAT(text, HasSubstr("model=\"Atlas 300I Pro\",chip_name=\"310P3\""));
  EXPECT_THAT(Lines(text, "atlas_npu_hccs_retries_total"),
              ElementsAre("atlas_npu_hccs_retries_total{npu=\"0\",link=\"1\"} 0")) << "it has one link";
}

TEST_F(NpuStateTest, TheReasonIsSaidWhereThereIsNoLibrary) {
  Host none{clock, *sys, *sys, nullptr, {}, 0};
  none.dcmi_error = "no libdcmi.so on this machine";
  EXPECT_EQ(kNpuStateCollector.probe_host(none).message(),
            "libdcmi.so cannot be used on this node: no libdcmi.so on this machine");
}

TEST_F(NpuStateTest, AnNpuIsNeitherUpNorDownBeforeTheLibraryAnswers) {
  fake.emplace(1);
  fake->SetCode("init", abi::kDcmiInternal);
  dcmi.emplace(fake->V1(), clock);
  ASSERT_FALSE(dcmi->Start().ok());
  std::vector<DeviceInfo> devices(1);
  host.emplace(Host{clock, *sys, *sys, &*dcmi, devices, 0});
  collector = MakeNpuState(*host, {}, registry);
  EXPECT_THAT(PollAt(0), Not(HasSubstr("atlas_npu_up")));
  EXPECT_EQ(last.code(), StatusCode::kUnavailable);
  fake->SetCode("init", abi::kDcmiOk);
  while (dcmi->devices().empty()) {
    (void)dcmi->CheckCards(clock.SteadyNs());
    std::this_thread::yield();
  }
  EXPECT_THAT(PollAt(1), HasSubstr("atlas_npu_up{npu=\"0\"} 1"));
  EXPECT_TRUE(last.ok());
  collector.reset();  // before its devices
}

}  // namespace
}  // namespace profd
