// libdcmi.so as the daemon meets it, and that it agrees with libascend_hal.so.
#include <fmt/format.h>

#include <set>
#include <thread>

#include "sim/test_support.h"

namespace profd::sim {
namespace {

TEST(Dcmi, EnumeratesSingleDieCards) {
  DcmiLib dcmi;
  ASSERT_EQ(dcmi.init(), 0);
  int count = 0, list[64];
  ASSERT_EQ(dcmi.card_list(&count, list, 64), 0);
  EXPECT_EQ(count, 8);
  int devices = 0, type = -1, logic = -1;
  ASSERT_EQ(dcmi.device_num_in_card(7, &devices), 0);
  EXPECT_EQ(devices, 1);
  EXPECT_EQ(dcmi.device_type.v1(0, 0, &type), 0);
  EXPECT_EQ(type, abi::kUnitNpu);
  EXPECT_EQ(dcmi.device_type.v1(0, 1, &type), 0);
  EXPECT_EQ(type, abi::kUnitMcu);
  EXPECT_EQ(dcmi.device_logic_id(&logic, 5, 0), 0);
  EXPECT_EQ(logic, 5);
  int count2 = 0;
  ASSERT_EQ(dcmi.v2_device_list(list, &count2, 64), 0);
  EXPECT_EQ(count2, 8);
}

TEST(Dcmi, EnumeratesTwoDiesPerCard) {
  DcmiLib dcmi("chip = \"A3\"");
  int count = 0, list[64], logic = -1;
  ASSERT_EQ(dcmi.card_list(&count, list, 64), 0);
  EXPECT_EQ(count, 8);
  ASSERT_EQ(dcmi.device_logic_id(&logic, 7, 1), 0);
  EXPECT_EQ(logic, 15);
  abi::DcmiSioCrcErrInfo sio;
  EXPECT_EQ(dcmi.Info(0, 1, abi::kCmdSio, 0, &sio, sizeof sio), 0);
  int topo = -1;
  EXPECT_EQ(dcmi.topology(0, 0, 0, 1, &topo), 0);
  EXPECT_EQ(topo, 6);
}

TEST(Dcmi, IdentityIsStableAndUnique) {
  DcmiLib a, b;
  std::set<std::string> dies, serials;
  for (int card = 0; card < 8; ++card) {
    abi::DcmiDieId one{}, other{};
    ASSERT_EQ(a.die.v1(card, 0, abi::kDieVdie, &one), 0);
    ASSERT_EQ(b.die.v1(card, 0, abi::kDieVdie, &other), 0);
    EXPECT_EQ(memcmp(&one, &other, sizeof one), 0);
    dies.insert(std::string(reinterpret_cast<const char*>(&one), sizeof one));
    abi::DcmiElabelInfo label;
    ASSERT_EQ(a.elabel(card, &label), 0);
    serials.insert(label.serial_number);
    EXPECT_EQ(a.die.v1(card, 0, abi::kDieNdie, &one), abi::kDcmiNotSupported);
  }
  EXPECT_EQ(dies.size(), 8u);
  EXPECT_EQ(serials.size(), 8u);
  abi::DcmiChipInfoV2 chip;
  ASSERT_EQ(a.chip_info.v1(0, 0, &chip), 0);
  EXPECT_STREQ(reinterpret_cast<const char*>(chip.chip_name), "910B2");
}

TEST(Dcmi, UnitsAndLimits) {
  DcmiLib dcmi;
  int temperature = 0, power = 0;
  unsigned voltage = 0, value = 0;
  ASSERT_EQ(dcmi.temperature.v1(2, 0, &temperature), 0);
  EXPECT_GT(temperature, 30);
  EXPECT_LT(temperature, 95);
  ASSERT_EQ(dcmi.power.v1(2, 0, &power), 0);
  EXPECT_GT(power, 800);  // 0.1 W
  EXPECT_LE(power, 4000);
  ASSERT_EQ(dcmi.voltage.v1(2, 0, &voltage), 0);
  EXPECT_GT(voltage, 60u);  // 0.01 V
  EXPECT_LT(voltage, 120u);
  abi::DcmiHbmInfo hbm;
  ASSERT_EQ(dcmi.hbm_info.v1(2, 0, &hbm), 0);
  EXPECT_EQ(hbm.memory_size, 65536u);
  EXPECT_LT(hbm.memory_usage, hbm.memory_size);
  EXPECT_GT(hbm.memory_usage, 30'000u);
  ASSERT_EQ(dcmi.frequency.v1(2, 0, abi::kFreqAicoreRated, &value), 0);
  EXPECT_EQ(value, 1800u);
  for (int type : {2, 3, 4, 6, 10, 12, 13}) {
    ASSERT_EQ(dcmi.utilization.v1(2, 0, type, &value), 0) << type;
    EXPECT_LE(value, 100u);
  }
  abi::DcmiLlcPerf llc;
  ASSERT_EQ(dcmi.llc_perf.v1(2, 0, &llc), 0);
  EXPECT_LE(llc.rd_hit_rate, 100u);
  abi::DcmiSensorInfo sensor;
  ASSERT_EQ(dcmi.sensor_info.v1(2, 0, abi::kSensorThermalThreshold, &sensor), 0);
  EXPECT_EQ(sensor.temp[0], 95);
  uint8_t cores[25];
  ASSERT_EQ(dcmi.Info(2, 0, abi::kCmdTs, 0, cores, sizeof cores), 0);
  abi::DcmiLpPowerInfo rated;
  ASSERT_EQ(dcmi.Info(2, 0, abi::kCmdLp, 10, &rated, sizeof rated), 0);
  EXPECT_EQ(rated.soc_rated_power, 400u);
  uint32_t percent = 200;
  ASSERT_EQ(dcmi.Info(2, 0, abi::kCmdDvpp, abi::kSubDvppVdec, &percent, 4), 0);
  EXPECT_LE(percent, 100u);
}

TEST(Dcmi, RefusesWhatTheChipCannot) {
  DcmiLib a2, old("chip = \"910\""), a3("chip = \"A3\"");
  unsigned value;
  abi::DcmiMemoryInfoV3 memory;
  EXPECT_EQ(a2.memory_info_v3(0, 0, &memory), abi::kDcmiNotSupported);
  EXPECT_EQ(old.memory_info_v3(0, 0, &memory), 0);
  abi::DcmiMultiUtilizationInfo multi;
  EXPECT_EQ(old.multi_utilization.v1(0, 0, &multi), abi::kDcmiNotSupported);
  EXPECT_EQ(a2.multi_utilization.v1(0, 0, &multi), 0);
  abi::DcmiPcieLinkBandwidthInfo pcie{};
  EXPECT_EQ(a2.pcie_bandwidth.v1(0, 0, &pcie), 0);
  EXPECT_EQ(a3.pcie_bandwidth.v1(0, 0, &pcie), abi::kDcmiNotSupported);
  abi::DcmiDvppRatio dvpp;
  EXPECT_EQ(a2.dvpp_ratio(0, 0, &dvpp), abi::kDcmiNotSupported);
  abi::DcmiHccsStatisticInfoU64 hccs;
  EXPECT_EQ(old.Info(0, 0, abi::kCmdHccs, 5, &hccs, sizeof hccs), abi::kDcmiNotSupported);
  abi::DcmiSioCrcErrInfo sio;
  EXPECT_EQ(a2.Info(0, 0, abi::kCmdSio, 0, &sio, sizeof sio), abi::kDcmiNotSupported);
  EXPECT_EQ(a2.utilization.v1(0, 0, abi::kUtilMemory, &value), abi::kDcmiNotSupported);
  abi::DcmiEccInfo info;
  EXPECT_EQ(a2.ecc_info.v1(0, 0, abi::kEccDdr, &info), abi::kDcmiNotSupported);
  EXPECT_EQ(a2.ecc_info.v1(0, 0, abi::kEccHbm, &info), 0);
  EXPECT_EQ(info.enable_flag, 1);
}

TEST(Dcmi, ArgumentAndDeviceErrors) {
  DcmiLib dcmi;
  int temperature;
  abi::DcmiNetworkPktStats stats;
  unsigned health;
  EXPECT_EQ(dcmi.temperature.v1(0, 0, nullptr), abi::kDcmiInvalidParameter);
  EXPECT_EQ(dcmi.temperature.v1(8, 0, &temperature), abi::kDcmiInvalidDevice);
  EXPECT_EQ(dcmi.temperature.v1(-1, 0, &temperature), abi::kDcmiInvalidDevice);
  EXPECT_EQ(dcmi.temperature.v1(0, 2, &temperature), abi::kDcmiInvalidDevice);
  EXPECT_EQ(dcmi.temperature.v1(0, 1, &temperature), abi::kDcmiNotSupported);
  EXPECT_EQ(dcmi.packet_statistics.v1(0, 0, 1, &stats), abi::kDcmiInvalidParameter);
  EXPECT_EQ(dcmi.health.v2(8, &health), abi::kDcmiInvalidDevice);
  abi::DcmiPcieLinkBandwidthInfo pcie{};
  pcie.profiling_time = 2001;
  EXPECT_EQ(dcmi.pcie_bandwidth.v1(0, 0, &pcie), abi::kDcmiInvalidParameter);
  abi::DcmiHccsBandwidthInfo hccs{};
  EXPECT_EQ(dcmi.hccs_bandwidth(0, 0, &hccs), abi::kDcmiInvalidParameter);
  char small[8];
  EXPECT_EQ(dcmi.Info(0, 0, abi::kCmdHccs, 5, small, sizeof small), abi::kDcmiInvalidParameter);
}

// The counters of both libraries are one truth: each HAL sample lies between the DCMI samples
// around it.
TEST(Dcmi, AgreesWithTheHalChannels) {
  const std::string scenario = "seed = 11\nstep_ms = 40";
  Hal hal(scenario);
  DcmiLib dcmi(scenario);
  const auto flit_bytes = [&] {
    abi::DcmiHccsStatisticInfoU64 info{};
    EXPECT_EQ(dcmi.Info(3, 0, abi::kCmdHccs, 5, &info, sizeof info), 0);
    uint64_t tx = 0;
    for (uint64_t flits : info.tx_cnt) tx += flits * abi::kHccsFlitBytes;
    return tx;
  };
  const auto octets = [&] {
    abi::DcmiNetworkPktStats stats{};
    EXPECT_EQ(dcmi.packet_statistics.v1(3, 0, 0, &stats), 0);
    return stats.mac_tx_total_oct_num;
  };
  // What the two libraries' idea of "now" may differ by: their epochs are each measured once.
  constexpr uint64_t kSlackNs = 20'000;
  constexpr uint64_t kHccsSlack = 7 * 28 * kSlackNs, kNetSlack = 25 * kSlackNs;
  const uint64_t hccs_before = flit_bytes(), net_before = octets();
  for (unsigned channel : {4u, 9u}) {
    StartPara para(channel, 1);
    ASSERT_EQ(hal.start(3, channel, para.get()), 0);
  }
  std::string hccs_text, nic_text;
  char buffer[4096];
  while (hccs_text.size() < 3000 || nic_text.size() < 3000) {
    abi::ProfPollInfo info[2];
    ASSERT_GT(hal.poll(info, 2, 600), 0);
    int n = hal.read(3, 9, buffer, sizeof buffer);
    if (n > 0) hccs_text.append(buffer, static_cast<size_t>(n));
    n = hal.read(3, 4, buffer, sizeof buffer);
    if (n > 0) nic_text.append(buffer, static_cast<size_t>(n));
  }
  // Where more than the buffer takes was there, the last line is cut.
  for (std::string* text : {&hccs_text, &nic_text}) text->resize(text->rfind('\n') + 1);
  const uint64_t hccs_after = flit_bytes(), net_after = octets();
  const std::vector<std::string> hccs = Lines(hccs_text);
  uint64_t last = 0;
  for (size_t i = 1; i < hccs.size(); ++i) {
    const uint64_t tx = std::stoull(Words(hccs[i])[1]);
    EXPECT_GE(tx, last);
    EXPECT_GE(tx + kHccsSlack, hccs_before);
    EXPECT_LE(tx, hccs_after + kHccsSlack + 7 * 20);
    last = tx;
  }
  EXPECT_GT(hccs_after, hccs_before);
  const std::vector<std::string> nic = Lines(nic_text);
  for (size_t i = 1; i < nic.size(); ++i) {
    const uint64_t tx = std::stoull(Words(nic[i])[11]);
    EXPECT_GE(tx + kNetSlack, net_before);
    EXPECT_LE(tx, net_after + kNetSlack);
  }
}

TEST(Dcmi, BandwidthCallsTakeTheirTimeAndAccumulate) {
  DcmiLib dcmi("step_ms = 20");
  abi::DcmiHccsBandwidthInfo hccs{};
  hccs.profiling_time = 50;
  const int64_t before = SystemClock().SteadyNs();
  ASSERT_EQ(dcmi.hccs_bandwidth(0, 0, &hccs), 0);
  EXPECT_GE(SystemClock().SteadyNs() - before, 49'000'000);
  double sum = 0;
  for (double link : hccs.tx_bandwidth) sum += link;
  EXPECT_DOUBLE_EQ(hccs.total_txbw, sum);
  EXPECT_GT(sum, 0);
  EXPECT_EQ(hccs.tx_bandwidth[0], 0);
  EXPECT_LT(hccs.tx_bandwidth[1], 28.0);
  const double first = hccs.total_txbw;
  ASSERT_EQ(dcmi.hccs_bandwidth(0, 0, &hccs), 0);
  EXPECT_GT(hccs.total_txbw, first);  // adds, as the driver does
  abi::DcmiRdmaBandwidthInfo rdma{};
  ASSERT_EQ(dcmi.rdma_bandwidth.v1(0, 0, 0, 100, &rdma), 0);
  EXPECT_GT(rdma.tx_bandwidth, 0u);
  EXPECT_LT(rdma.tx_bandwidth, 23'900u);
  EXPECT_EQ(dcmi.rdma_bandwidth.v1(0, 0, 0, 99, &rdma), abi::kDcmiInvalidParameter);
}

TEST(Dcmi, Processes) {
  TempDir dir;
  const std::string pids = dir.Write("pids", "101\n102\nnonsense\n103 1 77\n-4\n");
  DcmiLib dcmi(fmt::format(
      "processes_file = \"{}\"\n[[process]]\npid = 900\ndevice = 1\nmemory_mb = 5\n", pids));
  abi::DcmiProcMemInfo list[32];
  int count = 0;
  ASSERT_EQ(dcmi.processes.v1(1, 0, list, &count), 0);
  ASSERT_EQ(count, 3);
  EXPECT_EQ(list[0].proc_id, 900);
  EXPECT_EQ(list[0].proc_mem_usage, 5u << 20);
  EXPECT_EQ(list[1].proc_id, 102);
  EXPECT_EQ(list[2].proc_id, 103);
  EXPECT_EQ(list[2].proc_mem_usage, 77u << 20);
  dir.Write("pids", "");  // processes come and go
  ASSERT_EQ(dcmi.processes.v1(1, 0, list, &count), 0);
  EXPECT_EQ(count, 1);
}

TEST(Dcmi, BadScenario) {
  testing::internal::CaptureStderr();
  DcmiLib dcmi("devices = 99");
  EXPECT_NE(testing::internal::GetCapturedStderr().find("libdcmi.so"), std::string::npos);
  EXPECT_EQ(dcmi.init(), abi::kDcmiInternal);
  int temperature;
  EXPECT_EQ(dcmi.temperature.v1(0, 0, &temperature), abi::kDcmiInternal);
}

TEST(DcmiFaults, ThrottleShowsEverywhere) {
  DcmiLib dcmi("[[fault]]\nkind = \"throttle\"\ndevice = 3\nmhz = 900\ncause = 5");
  abi::DcmiAicoreInfo aicore;
  ASSERT_EQ(dcmi.aicore_info.v1(3, 0, &aicore), 0);
  EXPECT_EQ(aicore.freq, 1800u);
  EXPECT_EQ(aicore.cur_freq, 900u);
  uint32_t cause = 0;
  ASSERT_EQ(dcmi.Info(3, 0, abi::kCmdLp, 9, &cause, 4), 0);
  EXPECT_EQ(cause, 5u);
  ASSERT_EQ(dcmi.Info(2, 0, abi::kCmdLp, 9, &cause, 4), 0);
  EXPECT_EQ(cause, 0u);
  unsigned health = 0;
  ASSERT_EQ(dcmi.health.v1(3, 0, &health), 0);
  EXPECT_EQ(health, 1u);
}

TEST(DcmiFaults, EccRaisesHealthAndCodes) {
  DcmiLib dcmi("[[fault]]\nkind = \"ecc\"\ndevice = 1\nsingle = 7\ndouble = 2");
  abi::DcmiEccInfo ecc;
  ASSERT_EQ(dcmi.ecc_info.v1(1, 0, abi::kEccHbm, &ecc), 0);
  EXPECT_EQ(ecc.total_single_bit_error_cnt, 7u);
  EXPECT_EQ(ecc.total_double_bit_error_cnt, 2u);
  EXPECT_EQ(ecc.double_bit_isolated_pages_cnt, 2u);
  int count = 0;
  unsigned codes[128], health = 0;
  ASSERT_EQ(dcmi.error_codes.v1(1, 0, &count, codes, 128), 0);
  EXPECT_EQ(count, 1);
  ASSERT_EQ(dcmi.health.v1(1, 0, &health), 0);
  EXPECT_EQ(health, 2u);
  abi::DcmiEvent event[4];
  ASSERT_EQ(dcmi.current_faults.v1(1, 0, event, 4, &count), 0);
  ASSERT_EQ(count, 1);
  EXPECT_EQ(event[0].event.event_id, codes[0]);
  EXPECT_EQ(event[0].event.severity, 2);
  EXPECT_EQ(event[0].event.assertion, 1);
  ASSERT_EQ(dcmi.error_codes.v1(0, 0, &count, codes, 128), 0);
  EXPECT_EQ(count, 0);
}

TEST(DcmiFaults, RoceRetransmissionsAndSlowLink) {
  DcmiLib dcmi(
      "[[fault]]\nkind = \"roce_retrans\"\ndevice = 0\nrate = 1e6\n"
      "[[fault]]\nkind = \"slow_hccs\"\ndevice = 0\nlink = 3\nfactor = 0.1\n");
  abi::DcmiNetworkPktStats stats{}, clean{};
  ASSERT_EQ(dcmi.packet_statistics.v1(0, 0, 0, &stats), 0);
  ASSERT_EQ(dcmi.packet_statistics.v1(1, 0, 0, &clean), 0);
  EXPECT_GT(stats.roce_new_pkt_rty_num, 0u);
  EXPECT_GT(stats.roce_err_psn_num, 0u);
  EXPECT_EQ(clean.roce_new_pkt_rty_num, 0u);
  abi::DcmiHccsLanes lanes{};
  ASSERT_EQ(dcmi.Info(0, 0, abi::kCmdHccs, abi::kSubHccsLanes, &lanes, sizeof lanes), 0);
  EXPECT_EQ(lanes.port_bitmap, 0xFEu);
  EXPECT_EQ(lanes.lane_bitmap[3], 0x3u);
  EXPECT_EQ(lanes.lane_bitmap[4], 0xFu);
}

TEST(DcmiFaults, DropAndError) {
  DcmiLib dcmi(
      "[[fault]]\nkind = \"card_drop\"\ndevice = 1\n"
      "[[fault]]\nkind = \"dcmi_error\"\ndevice = 2\ncode = -8012\n");
  unsigned health;
  EXPECT_EQ(dcmi.health.v1(1, 0, &health), abi::kDcmiDeviceMissing);
  EXPECT_EQ(dcmi.health.v1(2, 0, &health), abi::kDcmiNotReady);
  EXPECT_EQ(dcmi.health.v1(0, 0, &health), 0);
}

TEST(DcmiFaults, HangBlocksOneCard) {
  const double end = ScenarioSeconds() + 0.4;
  DcmiLib dcmi(
      fmt::format("[[fault]]\nkind = \"card_drop\"\nmode = \"hang\"\ndevice = 1\nfor = {}", end));
  std::thread blocked([&] {
    unsigned health;
    EXPECT_EQ(dcmi.health.v1(1, 0, &health), 0);
    EXPECT_GE(ScenarioSeconds() + kEpochSlack, end);
  });
  unsigned other;
  EXPECT_EQ(dcmi.health.v1(0, 0, &other), 0);
  blocked.join();
}

TEST(DcmiFaults, AHangOfDcmiHoldsEnumerationToo) {
  const double end = ScenarioSeconds() + 0.4;
  DcmiLib dcmi(fmt::format(
      "[[fault]]\nkind = \"card_drop\"\nmode = \"dcmi_hang\"\ndevice = 1\nfor = {}", end));
  int count = 0;
  EXPECT_EQ(dcmi.device_num_in_card(0, &count), 0);
  EXPECT_EQ(dcmi.device_num_in_card(1, &count), 0);
  EXPECT_GE(ScenarioSeconds() + kEpochSlack, end);
}

}  // namespace
}  // namespace profd::sim
