// Flow control, error correction, lanes and virtual NPUs of libdcmi.so.
#include <cstring>
#include <thread>

#include "sim/scenario.h"
#include "sim/test_support.h"

namespace profd::sim {
namespace {

// Virtual NPUs of a card.
template <class T>
int Vdev(const DcmiLib& dcmi, int card, unsigned sub, T* buf, unsigned size = sizeof(T)) {
  return dcmi.Info(card, 0, abi::kCmdVdevMng, sub, buf, size);
}

TEST(DcmiPorts, EveryChipHasThePortsOfTheTable) {
  DcmiLib old("chip = \"910\""), a2, a3("chip = \"A3\"");
  abi::DcmiHccsCreditInfo credits;
  EXPECT_EQ(old.hccs_credits(0, 0, &credits), abi::kDcmiNotSupported);
  EXPECT_EQ(a2.hccs_credits(0, 0, &credits), abi::kDcmiNotSupported);
  ASSERT_EQ(a3.hccs_credits(0, 0, &credits), 0);
  EXPECT_EQ(credits.credit_num[0], 0u);  // never wired
  EXPECT_GT(credits.credit_num[1], 0u);
  abi::DcmiTcStatData classes;
  EXPECT_EQ(old.traffic_classes(0, 0, &classes), abi::kDcmiNotSupported);
  EXPECT_EQ(a2.traffic_classes(0, 0, &classes), 0);
  abi::DcmiExtraStatistics extra;
  EXPECT_EQ(a2.extra_statistics(0, 0, 0, &extra), 0);
  EXPECT_EQ(a2.extra_statistics(0, 0, 1, &extra), abi::kDcmiInvalidParameter);
  EXPECT_EQ(a3.extra_statistics(0, 0, 0, &extra), abi::kDcmiNotSupported);
  abi::DcmiSocTotalResource total;
  EXPECT_EQ(Vdev(a2, 0, abi::kSubVdevTotal, &total), abi::kDcmiNotSupported);
  EXPECT_EQ(Vdev(old, 0, abi::kSubVdevTotal, &total), 0);
  EXPECT_EQ(total.vdev_num, 0u);
}

// The structs end where they should: bytes behind them stay as they were.
TEST(DcmiPorts, NothingIsWrittenBehindTheStructs) {
  DcmiLib a2, a3("chip = \"A3\"");
  const auto check = [](auto* bytes, size_t size, auto ask) {
    std::memset(bytes, 0xA5, 2 * size);
    ASSERT_EQ(ask(), 0);
    for (size_t i = size; i < 2 * size; ++i) ASSERT_EQ(bytes[i], 0xA5) << i;
  };
  alignas(8) unsigned char bytes[2 * 512];
  check(bytes, 320, [&] { return a3.hccs_credits(0, 0, reinterpret_cast<abi::DcmiHccsCreditInfo*>(bytes)); });
  check(bytes, 192, [&] { return a2.traffic_classes(0, 0, reinterpret_cast<abi::DcmiTcStatData*>(bytes)); });
  check(bytes, 128, [&] { return a2.pfc_duration(0, 0, reinterpret_cast<abi::DcmiPfcDurationInfo*>(bytes)); });
  check(bytes, 96, [&] { return a2.extra_statistics(0, 0, 0, reinterpret_cast<abi::DcmiExtraStatistics*>(bytes)); });
  check(bytes, 456, [&] { return a2.serdes_quality.v1(0, 0, 0, reinterpret_cast<abi::DcmiSerdesQuality*>(bytes)); });
}

TEST(DcmiPorts, TrafficClassesAddUpToThePackets) {
  DcmiLib dcmi("step_ms = 20");
  abi::DcmiTcStatData before, after;
  abi::DcmiNetworkPktStats packets;
  ASSERT_EQ(dcmi.traffic_classes(0, 0, &before), 0);
  ASSERT_EQ(dcmi.packet_statistics.v1(0, 0, 0, &packets), 0);
  ASSERT_EQ(dcmi.traffic_classes(0, 0, &after), 0);
  uint64_t low = 0, high = 0;
  for (int i = 0; i < 8; ++i) {
    low += before.tc_tx[i];
    high += after.tc_tx[i];
  }
  EXPECT_LE(low, packets.mac_tx_total_pkt_num);
  EXPECT_GE(high, packets.mac_tx_total_pkt_num);
}

TEST(DcmiPorts, FaultsShowInFlowControlAndErrorCorrection) {
  DcmiLib dcmi(
      "[[fault]]\nkind = \"roce_retrans\"\ndevice = 0\nrate = 1e6\n"
      "[[fault]]\nkind = \"optical\"\nmode = \"low_power\"\ndevice = 0\n");
  DcmiLib a3("chip = \"A3\"\n[[fault]]\nkind = \"slow_hccs\"\ndevice = 0\nlink = 3\n");
  abi::DcmiPfcDurationInfo hit, clean;
  ASSERT_EQ(dcmi.pfc_duration(0, 0, &hit), 0);
  ASSERT_EQ(dcmi.pfc_duration(1, 0, &clean), 0);
  EXPECT_GT(hit.rx[4], clean.rx[4]);
  abi::DcmiExtraStatistics weak, strong;
  ASSERT_EQ(dcmi.extra_statistics(0, 0, 0, &weak), 0);
  ASSERT_EQ(dcmi.extra_statistics(1, 0, 0, &strong), 0);
  EXPECT_GT(weak.correcting_bit_rate, 1000 * strong.correcting_bit_rate);
  EXPECT_GT(weak.cw_uncorrect_cnt, 0u);
  EXPECT_EQ(strong.cw_uncorrect_cnt, 0u);
  abi::DcmiHccsCreditInfo credits;
  ASSERT_EQ(a3.hccs_credits(0, 0, &credits), 0);
  EXPECT_LT(credits.credit_num[3], credits.credit_num[4]);
}

TEST(DcmiPorts, LanesOfTheMacrosThereAre) {
  DcmiLib a2, a3("chip = \"A3\""), old("chip = \"910\"");
  abi::DcmiSerdesQuality quality;
  ASSERT_EQ(a2.serdes_quality.v1(0, 0, 0, &quality), 0);
  EXPECT_GT(quality.lane[7].snr, 0u);
  EXPECT_EQ(quality.lane[7].top, 0);
  ASSERT_EQ(a2.serdes_quality.v1(0, 0, 12, &quality), 0);
  EXPECT_EQ(quality.lane[0].snr, 0u);
  EXPECT_GT(quality.lane[0].top, quality.lane[0].bottom);
  EXPECT_EQ(a2.serdes_quality.v1(0, 0, 8, &quality), abi::kDcmiInvalidParameter);
  EXPECT_EQ(a2.serdes_quality.v1(0, 0, 13, &quality), abi::kDcmiInvalidParameter);
  EXPECT_EQ(a3.serdes_quality.v1(0, 0, 9, &quality), abi::kDcmiInvalidParameter);
  EXPECT_EQ(old.serdes_quality.v1(0, 0, 0, &quality), abi::kDcmiNotSupported);
}

int UbPort(const DcmiLib& dcmi, int device, int die, int port, abi::DcmiPortPktStats* out) {
  abi::DcmiUbPortInfo where{die, port};
  return dcmi.v2_ub_port_statistics(device, &where, out);
}

TEST(DcmiUnifiedBus, TheNewestChipHasTheSecondGenerationOnly) {
  DcmiLib a5("chip = \"950\""), a2("chip = \"910B\"");
  EXPECT_EQ(a5.init(), abi::kDcmiNotSupported);
  EXPECT_EQ(a5.v2_init(), 0);
  unsigned health = 9;
  EXPECT_EQ(a5.health.v1(0, 0, &health), abi::kDcmiNotSupported);
  EXPECT_EQ(a5.health.v2(7, &health), 0);
  abi::DcmiDieId die;
  EXPECT_EQ(a5.die.v2(0, abi::kDieVdie, &die), abi::kDcmiNotSupported);
  EXPECT_EQ(a5.die.v2(0, abi::kDieDdie, &die), 0);
  abi::DcmiUbPortList ports;
  EXPECT_EQ(a2.v2_ub_port_list(0, &ports), abi::kDcmiNotSupported);
}

TEST(DcmiUnifiedBus, PortsCountWhatTheirLinksCarry) {
  DcmiLib dcmi(
      "chip = \"950\"\nstep_ms = 20\n[[fault]]\nkind = \"slow_hccs\"\ndevice = 0\nlink = 3\n");
  abi::DcmiUbPortList ports;
  ASSERT_EQ(dcmi.v2_ub_port_list(0, &ports), 0);
  EXPECT_EQ(ports.die_nums, 2);
  EXPECT_EQ(ports.die[1].port_nums, 9);
  EXPECT_EQ(ports.die[1].port[8].mode, abi::kUbModeUboe);
  abi::DcmiPortPktStats before, after;
  ASSERT_EQ(UbPort(dcmi, 0, 0, 2, &before), 0);
  const double until = ScenarioSeconds() + 0.1;  // more than a step: traffic has gone by
  while (ScenarioSeconds() < until) std::this_thread::yield();
  ASSERT_EQ(UbPort(dcmi, 0, 0, 2, &after), 0);
  EXPECT_GT(after.pkt_num[35], before.pkt_num[35]);
  EXPECT_GT(after.pkt_num[37], 0u);  // link 3 is slow
  abi::DcmiPortPktStats other;
  ASSERT_EQ(UbPort(dcmi, 0, 0, 3, &other), 0);
  EXPECT_EQ(other.pkt_num[37], 0u);
  EXPECT_EQ(UbPort(dcmi, 0, 2, 0, &other), abi::kDcmiInvalidParameter);
  EXPECT_EQ(UbPort(dcmi, 0, 0, 9, &other), abi::kDcmiInvalidParameter);
  abi::DcmiUbPortLinkStatus links;
  ASSERT_EQ(dcmi.v2_ub_link_status(0, &links), 0);
  EXPECT_EQ(links.ub_port_status[2], abi::kUbPortPartial);
  EXPECT_EQ(links.ub_port_status[3], abi::kUbPortFull);
  EXPECT_EQ(links.ub_port_status[35], abi::kUbPortNone);
}

TEST(DcmiPorts, VirtualNpus) {
  DcmiLib dcmi(
      "chip = \"910\"\n[[vnpu]]\nid = 100\ndevice = 1\nmemory_mb = 16\n"
      "[[vnpu]]\nid = 101\ndevice = 1\n");
  abi::DcmiSocTotalResource total;
  ASSERT_EQ(Vdev(dcmi, 1, abi::kSubVdevTotal, &total), 0);
  ASSERT_EQ(total.vdev_num, 2u);
  EXPECT_EQ(total.vdev_id[1], 101u);
  abi::DcmiVdevQuery query{};
  query.vdev_id = 100;
  ASSERT_EQ(Vdev(dcmi, 1, abi::kSubVdevActivity, &query), 0);
  EXPECT_EQ(query.computing.vdev_memory_total, 16u * 1024);
  EXPECT_LT(query.computing.vdev_memory_free, query.computing.vdev_memory_total);
  EXPECT_LE(query.computing.vdev_aicore_utilization, 100u);
  EXPECT_EQ(Vdev(dcmi, 0, abi::kSubVdevActivity, &query), abi::kDcmiInvalidParameter);
  EXPECT_EQ(Vdev(dcmi, 1, abi::kSubVdevActivity, &query, 8), abi::kDcmiInvalidParameter);
  EXPECT_FALSE(ParseScenario("[[vnpu]]\nid = 100").ok());  // 910B
  EXPECT_FALSE(ParseScenario("chip = \"910\"\n[[vnpu]]\nshare = 0.5").ok());
}

}  // namespace
}  // namespace profd::sim
