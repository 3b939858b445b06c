#include "collectors/npu_state/ub_readings.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>
#include <optional>

#include "collectors/testing/fake_registry.h"
#include "driver/testing/fake_dcmi.h"

namespace profd {
namespace {

using testing::FakeDcmi;
using testing::FakeRegistry;
using ::testing::HasSubstr;
using ::testing::Not;

class UbReadingsTest : public ::testing::Test {
 protected:
  UbReadingsTest() {
    dcmi.emplace(fake.V2(), clock);
    EXPECT_TRUE(dcmi->Start().ok());
    owner.emplace(registry, 0);
    readings.emplace(*owner);
  }
  std::string Read() {
    SampleBatch batch;
    DevicePass pass(*dcmi, dcmi->devices()[0], *owner, batch, 1);
    readings->Slow(pass);
    return registry.PrintValues(batch);
  }
  static size_t CountLines(const std::string& text) {
    return static_cast<size_t>(std::count(text.begin(), text.end(), '\n'));
  }
  void TwoPorts() {
    abi::DcmiUbPortList& list = fake.devices[0].ub_ports;
    list.die_nums = 2;
    list.die[0].port_nums = 1;
    list.die[0].port[0] = {4, abi::kUbModeUb};
    list.die[1].die_index = 1;
    list.die[1].port_nums = 1;
    list.die[1].port[0] = {8, abi::kUbModeUboe};
  }

  ManualClock clock;
  FakeDcmi fake{1};
  std::optional<DcmiService> dcmi;
  FakeRegistry registry;
  std::optional<SlotOwner> owner;
  std::optional<UbReadings> readings;
};

TEST_F(UbReadingsTest, EveryCounterOfThePortHasItsName) {
  TwoPorts();
  for (uint64_t i = 0; i < abi::kUbCounters; ++i) fake.devices[0].ub[1][8].pkt_num[i] = 1000 + i;
  const std::string text = Read();
  // The places of the vendor's list, first and last of each group.
  for (const char* line :
       {"packets_total{npu=\"0\",udie=\"1\",port=\"8\",direction=\"rx\",kind=\"ub_ipv4\"} 1000\n",
        "packets_total{npu=\"0\",udie=\"1\",port=\"8\",direction=\"rx\",kind=\"unknown\"} 1008\n",
        "errors_total{npu=\"0\",udie=\"1\",port=\"8\",direction=\"rx\",type=\"drop\"} 1009\n",
        "forwarded_packets_total{npu=\"0\",udie=\"1\",port=\"8\",target=\"host\"} 1011\n",
        "forwarded_packets_total{npu=\"0\",udie=\"1\",port=\"8\",target=\"noc\"} 1015\n",
        "errors_total{npu=\"0\",udie=\"1\",port=\"8\",direction=\"rx\",type=\"route\"} 1016\n",
        "errors_total{npu=\"0\",udie=\"1\",port=\"8\",direction=\"rx\",type=\"length\"} 1018\n",
        "flits_total{npu=\"0\",udie=\"1\",port=\"8\",direction=\"rx\",kind=\"ack\"} 1020\n",
        "packets_total{npu=\"0\",udie=\"1\",port=\"8\",direction=\"tx\",kind=\"ub_ipv4\"} 1021\n",
        "loopback_packets_total{npu=\"0\",udie=\"1\",port=\"8\"} 1032\n",
        "flits_total{npu=\"0\",udie=\"1\",port=\"8\",direction=\"tx\",kind=\"ack\"} 1036\n",
        "retries_total{npu=\"0\",udie=\"1\",port=\"8\",kind=\"request\"} 1037\n",
        "crc_errors_total{npu=\"0\",udie=\"1\",port=\"8\"} 1039\n",
        "ethernet_pause_frames_total{npu=\"0\",udie=\"1\",port=\"8\",direction=\"rx\"} 1040\n",
        "ethernet_bad_bytes_total{npu=\"0\",udie=\"1\",port=\"8\",direction=\"tx\"} 1047\n"}) {
    EXPECT_THAT(text, HasSubstr("atlas_npu_ub_" + std::string(line)));
  }
  EXPECT_EQ(CountLines(text), 48u + 40u);  // the other port is not in Ethernet mode
  EXPECT_THAT(text,
              HasSubstr("atlas_npu_ub_crc_errors_total{npu=\"0\",udie=\"0\",port=\"4\"} 0\n"));
}

TEST_F(UbReadingsTest, LinksOfPortsTheChipHas) {
  fake.devices[0].ub_links.ub_port_status[4] = abi::kUbPortFull;
  fake.devices[0].ub_links.ub_port_status[5] = abi::kUbPortPartial;
  fake.devices[0].ub_links.ub_port_status[6] = abi::kUbPortDown;
  fake.devices[0].ub_links.ub_port_status[7] = 77;
  fake.devices[0].ub_links.ub_port_status[8] = -1;
  EXPECT_EQ(Read(),
            "atlas_npu_ub_link_up{npu=\"0\",udie=\"\",port=\"4\"} 1\n"
            "atlas_npu_ub_link_up{npu=\"0\",udie=\"\",port=\"5\"} 1\n"
            "atlas_npu_ub_link_up{npu=\"0\",udie=\"\",port=\"6\"} 0\n");
}

TEST_F(UbReadingsTest, APortThatDoesNotAnswerIsAbsentUntilItAnswers) {
  TwoPorts();
  Read();
  EXPECT_EQ(registry.live(), 88u);
  fake.codes["ub_port_statistics"] = abi::kDcmiTimeout;
  EXPECT_EQ(Read(), "");
  EXPECT_EQ(registry.live(), 0u);
  fake.codes.clear();
  EXPECT_EQ(CountLines(Read()), 88u);
}

TEST_F(UbReadingsTest, CountersTheDriverLacksAreAbsent) {
  TwoPorts();
  std::memset(fake.devices[0].ub[0][4].pkt_num, 0xFF, sizeof fake.devices[0].ub[0][4].pkt_num);
  EXPECT_THAT(Read(), Not(HasSubstr("udie=\"0\"")));
}

TEST_F(UbReadingsTest, OtherChipsAreQueriedOnce) {
  fake.codes["ub_port_list"] = fake.codes["ub_link_status"] = abi::kDcmiNotSupported;
  for (int i = 0; i < 3; ++i) EXPECT_EQ(Read(), "");
  EXPECT_EQ(fake.asked["0:ub_port_list"], 1);
  EXPECT_EQ(fake.asked["0:ub_link_status"], 1);
}

}  // namespace
}  // namespace profd
