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

constexpr char kPort[] = "devices/pci0/infiniband/mlx5_0/ports/1/";

void WritePort(FakeHost& fake) {
  const std::string port = kPort;
  fake.sys.Link("class/infiniband/mlx5_0", "../../devices/pci0/infiniband/mlx5_0");
  fake.sys.Write(port + "state", "4: ACTIVE\n");
  fake.sys.Write(port + "phys_state", "5: LinkUp\n");
  fake.sys.Write(port + "rate", "2.5 Gb/sec (1X SDR)\n");
  fake.sys.Write(port + "counters/port_rcv_data", "1000\n");
  fake.sys.Write(port + "counters/port_xmit_data", "18446744073709551615\n");
  fake.sys.Write(port + "counters/port_rcv_packets", "7\n");
  fake.sys.Write(port + "counters/symbol_error", "3\n");
  fake.sys.Write(port + "counters/link_downed", "2\n");
  fake.sys.Write(port + "counters/port_xmit_wait", "N/A (no PMA)\n");
  fake.sys.Write(port + "counters/something_new", "5\n");
  fake.sys.Write(port + "hw_counters/lifespan", "10\n");
  fake.sys.Write(port + "hw_counters/np_cnp_sent", "42\n");
  fake.sys.Write(port + "hw_counters/out_of_sequence", "1\n");
}

TEST(Rdma, GivesStatesCountersAndVendorCounters) {
  FakeHost fake;
  WritePort(fake);
  PolledRig rig(kRdmaCollector, fake);
  EXPECT_TRUE(rig.PollAt(0).ok());
  const std::string at = "{device=\"mlx5_0\",port=\"1\"";
  EXPECT_EQ(rig.Samples(),
            "atlas_host_rdma_state_id" + at + "} 4\n" + "atlas_host_rdma_physical_state_id" + at +
                "} 5\n" + "atlas_host_rdma_rate_bytes_per_second" + at + "} 312500000\n" +
                "atlas_host_rdma_link_downed_total" + at + "} 2\n" +
                "atlas_host_rdma_port_data_bytes_total" + at + ",direction=\"rx\"} 4000\n" +
                "atlas_host_rdma_port_packets_total" + at + ",direction=\"rx\"} 7\n" +
                "atlas_host_rdma_port_data_bytes_total" + at +
                ",direction=\"tx\"} 7.37869762948382e+19\n" + "atlas_host_rdma_port_errors_total" +
                at + ",type=\"symbol\"} 3\n" + "atlas_host_rdma_hw_events_total" + at +
                ",counter=\"np_cnp_sent\"} 42\n" + "atlas_host_rdma_hw_events_total" + at +
                ",counter=\"out_of_sequence\"} 1\n");
}

TEST(Rdma, SkipsValuesThatAreNotNumbers) {
  FakeHost fake;
  WritePort(fake);
  const std::string port = kPort;
  fake.sys.Write(port + "state", "");
  fake.sys.Write(port + "rate", "inf Gb/sec\n");
  fake.sys.Write(port + "phys_state", "nan\n");
  fake.sys.Write(port + "counters/port_rcv_data", "-1\n");
  fake.sys.Write(port + "hw_counters/np_cnp_sent", std::string(100000, '\xff'));
  PolledRig rig(kRdmaCollector, fake);
  EXPECT_TRUE(rig.PollAt(0).ok());
  EXPECT_EQ(rig.batch.samples().size(), 5u);
}

TEST(Rdma, FollowsDevicesThatComeAndGo) {
  FakeHost fake;
  fake.sys.MakeFolder("class/infiniband");
  PolledRig rig(kRdmaCollector, fake);
  EXPECT_TRUE(rig.PollAt(0).ok());
  WritePort(fake);
  EXPECT_TRUE(rig.PollAt(10'000).ok());
  EXPECT_EQ(rig.batch.samples().size(), 10u);
  fake.sys.Remove("class/infiniband/mlx5_0");
  fake.sys.Remove("devices");
  EXPECT_TRUE(rig.PollAt(20'000).ok());
  EXPECT_EQ(rig.registry.live(), 0u);
}

TEST(Rdma, APortThatNoLongerAnswersIsAnError) {
  FakeHost fake;
  const std::string port = "class/infiniband/hns_0/ports/1/";
  fake.sys.Write(port + "state", "4: ACTIVE\n");
  PolledRig rig(kRdmaCollector, fake);
  EXPECT_TRUE(rig.PollAt(0).ok());
  fake.sys.Write(port + "state", "");
  EXPECT_EQ(rig.PollAt(1000).code(), StatusCode::kUnavailable);
}

TEST(Rdma, StaysBounded) {
  FakeHost fake;
  for (int i = 0; i < 70; ++i) {
    fake.sys.Write(fmt::format("class/infiniband/d{:02}/ports/1/state", i), "1: DOWN\n");
  }
  for (int i = 0; i < 100; ++i) {
    fake.sys.Write(fmt::format("class/infiniband/d00/ports/1/hw_counters/c{:03}", i), "1\n");
  }
  PolledRig rig(kRdmaCollector, fake);
  Status status = rig.PollAt(0);
  EXPECT_EQ(status.code(), StatusCode::kResourceExhausted);
  EXPECT_THAT(status.message(), HasSubstr("6 RDMA ports"));
  EXPECT_EQ(rig.batch.samples().size(), 64u + 64u);
  EXPECT_THAT(rig.Samples(), Not(HasSubstr("d64")));
  EXPECT_TRUE(rig.PollAt(1000).ok());
}

TEST(Rdma, ProbeReportsWhyNot) {
  FakeHost fake;
  Status status = kRdmaCollector.probe_host(fake.host());
  EXPECT_EQ(status.code(), StatusCode::kUnimplemented);
  EXPECT_THAT(status.message(), HasSubstr("no RDMA device"));
  fake.sys.MakeFolder("class/infiniband");
  EXPECT_EQ(kRdmaCollector.probe_host(fake.host()).code(), StatusCode::kUnimplemented);
  WritePort(fake);
  EXPECT_TRUE(kRdmaCollector.probe_host(fake.host()).ok());
}

TEST(Rdma, AllocatesNothingPerPoll) {
  FakeHost fake;
  WritePort(fake);
  PolledRig rig(kRdmaCollector, fake);
  EXPECT_EQ(rig.AllocationsOf(100), 0u);
}

}  // namespace
}  // namespace profd
