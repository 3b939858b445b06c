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
using testing::PolledRig;

constexpr char kDiskstats[] =
    "   7       0 loop0 9 9 9 9 9 9 9 9 9 9 9 0 0 0 0 0 0\n"
    " 259       0 nvme0n1 100 5 2000 70 40 6 800 30 0 1500 100 0 0 0 0 4 5\n"
    " 259       1 nvme0n1p1 90 5 1900 60 40 6 800 30 0 1400 90 0 0 0 0 0 0\n"
    " 104       0 cciss/c0d0 1 0 8 1 2 0 16 1 0 250 3\n";

TEST(HostDisk, ReportsDisksWithoutPartitions) {
  FakeHost fake;
  fake.proc.Write("diskstats", kDiskstats);
  for (const char* name : {"loop0", "nvme0n1", "cciss!c0d0"}) {
    fake.sys.MakeFolder(std::string("block/") + name);
  }
  PolledRig rig(kHostDiskCollector, fake);
  EXPECT_TRUE(rig.PollAt(0).ok());
  EXPECT_EQ(rig.Samples(),
            "atlas_host_disk_bytes_total{device=\"nvme0n1\",direction=\"read\"} 1024000\n"
            "atlas_host_disk_bytes_total{device=\"nvme0n1\",direction=\"write\"} 409600\n"
            "atlas_host_disk_ios_total{device=\"nvme0n1\",direction=\"read\"} 100\n"
            "atlas_host_disk_ios_total{device=\"nvme0n1\",direction=\"write\"} 40\n"
            "atlas_host_disk_io_time_seconds_total{device=\"nvme0n1\"} 1.5\n"
            "atlas_host_disk_bytes_total{device=\"cciss/c0d0\",direction=\"read\"} 4096\n"
            "atlas_host_disk_bytes_total{device=\"cciss/c0d0\",direction=\"write\"} 8192\n"
            "atlas_host_disk_ios_total{device=\"cciss/c0d0\",direction=\"read\"} 1\n"
            "atlas_host_disk_ios_total{device=\"cciss/c0d0\",direction=\"write\"} 2\n"
            "atlas_host_disk_io_time_seconds_total{device=\"cciss/c0d0\"} 0.25\n");
}

TEST(HostDisk, FollowsDisksThatComeAndGo) {
  FakeHost fake;
  fake.proc.Write("diskstats", kDiskstats);
  fake.sys.MakeFolder("block/nvme0n1");
  PolledRig rig(kHostDiskCollector, fake);
  EXPECT_TRUE(rig.PollAt(0).ok());
  EXPECT_EQ(rig.registry.live(), 5u);
  fake.sys.MakeFolder("block/cciss!c0d0");
  EXPECT_TRUE(rig.PollAt(9'000).ok());
  EXPECT_EQ(rig.registry.live(), 5u);
  EXPECT_TRUE(rig.PollAt(10'000).ok());
  EXPECT_EQ(rig.registry.live(), 10u);
  fake.proc.Write("diskstats", "");
  EXPECT_TRUE(rig.PollAt(11'000).ok());
  EXPECT_EQ(rig.registry.live(), 0u);
}

TEST(HostDisk, SkipsGarbageAndStaysBounded) {
  FakeHost fake;
  std::string text = "\n\xff\xff\n1 2\n8 0 sda\n8 0 sda x\n8 0 sda 1 2 3 4 5 6 7 8 9 10\n" +
                     std::string(100000, 'q') + "\n8 0 sdb 1 2 3 4 5 6 -7 8 9 10 11\n";
  for (int i = 0; i < 300; ++i) {
    text += fmt::format("8 {0} d{0} 1 2 3 4 5 6 7 8 9 10 11\n", i);
    fake.sys.MakeFolder(fmt::format("block/d{}", i));
  }
  fake.sys.MakeFolder("block/sda");
  fake.sys.MakeFolder("block/sdb");
  fake.proc.Write("diskstats", text);
  PolledRig rig(kHostDiskCollector, fake);
  Status status = rig.PollAt(0);
  EXPECT_EQ(status.code(), StatusCode::kResourceExhausted);
  EXPECT_THAT(status.message(), HasSubstr("44 disks"));
  EXPECT_EQ(rig.registry.live(), 256u * 5);
  EXPECT_TRUE(rig.PollAt(1000).ok());
}

TEST(HostDisk, ProbeReportsWhyNot) {
  FakeHost fake;
  EXPECT_EQ(kHostDiskCollector.probe_host(fake.host()).message(), "/proc/diskstats is missing");
  fake.proc.Write("diskstats", kDiskstats);
  EXPECT_EQ(kHostDiskCollector.probe_host(fake.host()).code(), StatusCode::kUnimplemented);
  fake.sys.MakeFolder("block");
  EXPECT_TRUE(kHostDiskCollector.probe_host(fake.host()).ok());
}

TEST(HostDisk, AllocatesNothingPerPoll) {
  FakeHost fake;
  fake.proc.Write("diskstats", kDiskstats);
  fake.sys.MakeFolder("block/nvme0n1");
  PolledRig rig(kHostDiskCollector, fake);
  EXPECT_EQ(rig.AllocationsOf(100), 0u);
}

}  // namespace
}  // namespace profd
