#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>

#include "collectors/collector_list.h"
#include "collectors/proc/testing/host_fixture.h"

namespace profd {
namespace {

using testing::FakeHost;
using ::testing::HasSubstr;
using ::testing::Not;
using testing::PolledRig;

constexpr char kHeader[] =
    "Inter-|   Receive                                                |  Transmit\n"
    " face |bytes    packets errs drop fifo frame compressed multicast|bytes    packets errs drop "
    "fifo colls carrier compressed\n";
constexpr char kLo[] =
    "    lo:    3267      29    0    0    0     0          0         0     3267"
    "      29    0    0    0     0       0          0\n";
constexpr char kEth[] = "  eth0:1000 10 1 2 0 0 0 0 2000 20 3 4 0 0 0 0\n";

void WriteDev(FakeHost& fake, std::string_view lines) {
  fake.proc.Write("net/dev", std::string(kHeader) + std::string(lines));
}

TEST(HostNet, GivesCountersSpeedAndCarrier) {
  FakeHost fake;
  WriteDev(fake, kEth);
  fake.sys.Write("devices/pci0/net/eth0/speed", "200000\n");
  fake.sys.Write("devices/pci0/net/eth0/carrier", "1\n");
  fake.sys.Link("class/net/eth0", "../../devices/pci0/net/eth0");
  PolledRig rig(kHostNetCollector, fake);
  EXPECT_TRUE(rig.PollAt(0).ok());
  EXPECT_EQ(rig.Samples(),
            "atlas_host_network_bytes_total{device=\"eth0\",direction=\"rx\"} 1000\n"
            "atlas_host_network_bytes_total{device=\"eth0\",direction=\"tx\"} 2000\n"
            "atlas_host_network_packets_total{device=\"eth0\",direction=\"rx\"} 10\n"
            "atlas_host_network_packets_total{device=\"eth0\",direction=\"tx\"} 20\n"
            "atlas_host_network_errors_total{device=\"eth0\",direction=\"rx\"} 1\n"
            "atlas_host_network_errors_total{device=\"eth0\",direction=\"tx\"} 3\n"
            "atlas_host_network_drops_total{device=\"eth0\",direction=\"rx\"} 2\n"
            "atlas_host_network_drops_total{device=\"eth0\",direction=\"tx\"} 4\n"
            "atlas_host_network_speed_bytes_per_second{device=\"eth0\"} 25000000000\n"
            "atlas_host_network_link_up{device=\"eth0\"} 1\n");
}

TEST(HostNet, WritesTheVendorsFile) {
  FakeHost fake;
  WriteDev(fake, std::string(kLo) + kEth);
  PolledRig rig(kHostNetCollector, fake);
  EXPECT_TRUE(rig.PollAt(20).ok());
  ASSERT_EQ(rig.sink.files.size(), 1u);
  EXPECT_EQ(rig.sink.files["host_network.data"], std::string("time 1020000000\n") + kLo + kEth);
}

TEST(HostNet, ReadsTheLinkSeldomAndForgetsItWhenItIsDown) {
  FakeHost fake;
  WriteDev(fake, kEth);
  fake.sys.Write("class/net/eth0/speed", "1000\n");
  fake.sys.Write("class/net/eth0/carrier", "1\n");
  PolledRig rig(kHostNetCollector, fake);
  EXPECT_TRUE(rig.PollAt(0).ok());
  fake.sys.Write("class/net/eth0/speed", "-1\n");
  fake.sys.Write("class/net/eth0/carrier", "0\n");
  EXPECT_TRUE(rig.PollAt(9'000).ok());
  EXPECT_THAT(rig.Samples(), HasSubstr("link_up{device=\"eth0\"} 1\n"));
  EXPECT_TRUE(rig.PollAt(10'000).ok());
  EXPECT_THAT(rig.Samples(), HasSubstr("link_up{device=\"eth0\"} 0\n"));
  EXPECT_THAT(rig.Samples(), Not(HasSubstr("speed")));
  EXPECT_EQ(rig.registry.live(), 9u);
}

TEST(HostNet, FollowsDevicesThatComeAndGo) {
  FakeHost fake;
  WriteDev(fake, kEth);
  PolledRig rig(kHostNetCollector, fake);
  EXPECT_TRUE(rig.PollAt(0).ok());
  EXPECT_EQ(rig.registry.live(), 8u);
  WriteDev(fake, kLo);
  EXPECT_TRUE(rig.PollAt(1000).ok());
  EXPECT_EQ(rig.registry.live(), 8u);
  EXPECT_THAT(rig.Samples(), Not(HasSubstr("eth0")));
  WriteDev(fake, "");
  EXPECT_EQ(rig.PollAt(2000).code(), StatusCode::kInternal);
  EXPECT_EQ(rig.registry.live(), 0u);
}

TEST(HostNet, SurvivesGarbageAndHostileNames) {
  FakeHost fake;
  WriteDev(fake, std::string(kLo) + ":1 2 3\n::::\neth1: 1 2 3\n" +
                     "x: a b c d e f g h i j k l m n o p\n" +
                     "../../etc: 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16\n" +
                     "\x1b[2J\xff: 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16\n" +
                     std::string(200000, 'z') + ":\n");
  PolledRig rig(kHostNetCollector, fake);
  EXPECT_TRUE(rig.PollAt(0).ok());
  EXPECT_THAT(rig.Samples(), HasSubstr("device=\"?[2J?\""));
  EXPECT_THAT(rig.sink.files["host_network.data"], HasSubstr("\n?[2J?: 1 2"));
  EXPECT_EQ(rig.registry.live(), 24u);
}

TEST(HostNet, StaysBounded) {
  FakeHost fake;
  std::string lines;
  for (int i = 0; i < 400; ++i) {
    lines += fmt::format("veth{}: 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16\n", i);
  }
  WriteDev(fake, lines);
  PolledRig rig(kHostNetCollector, fake);
  Status status = rig.PollAt(0);
  EXPECT_EQ(status.code(), StatusCode::kResourceExhausted);
  EXPECT_THAT(status.message(), HasSubstr("144 network devices"));
  EXPECT_EQ(rig.registry.live(), 256u * 8);
  EXPECT_TRUE(rig.PollAt(1000).ok());
  EXPECT_EQ(rig.batch.samples().size(), 256u * 8);
}

TEST(HostNet, ProbeReportsWhyNot) {
  FakeHost fake;
  Status status = kHostNetCollector.probe_host(fake.host());
  EXPECT_EQ(status.code(), StatusCode::kUnimplemented);
  EXPECT_EQ(status.message(), "/proc/net/dev is missing");
}

TEST(HostNet, AllocatesNothingPerPoll) {
  FakeHost fake;
  WriteDev(fake, std::string(kLo) + kEth);
  PolledRig rig(kHostNetCollector, fake);
  EXPECT_EQ(rig.AllocationsOf(100), 0u);
}

}  // namespace
}  // namespace profd
