#include <fmt/format.h>
#include <gtest/gtest.h>

#include <string>

#include "export/decode/text_test_support.h"

namespace profd::exporting {
namespace {

constexpr auto kHost = Place::Kind::kHost;
constexpr auto kDevice = Place::Kind::kDevice;

std::string Block(int64_t ns, const std::string& body, int64_t length = -1) {
  return fmt::format("TimeStamp:{}\nIndex:1\nDataLen:{}\n{}\n\n", ns,
                     length < 0 ? static_cast<int64_t>(body.size()) : length, body);
}

TEST(SysCpu, EveryCpuAndTheTotal) {
  std::string body = "cpu  1 2 3 4 5 6 7 8 9 10\ncpu3 10 20 30 40 50 60 70 80 90 100\n";
  DecodeRun run("host_sys_cpu.data", kHost);
  run.Feed({Block(7, body)});
  ASSERT_EQ(run.Since(DecodeRun::kWall), (Numbers{{7, -1, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10},
                                                  {7, 3, 10, 20, 30, 40, 50, 60, 70, 80, 90, 100}}));
  EXPECT_EQ(run.rows[0].device, -1);
}

TEST(SysCpu, OfADeviceIsOnItsClock) {
  DecodeRun run("SystemCpuUsage.data", kDevice);
  run.Feed({Block(7, "cpu0 1 2 3 4 5 6 7 8 9 10")});
  ASSERT_EQ(run.rows.size(), 1u);
  EXPECT_EQ(run.rows[0].t_ns, DecodeRun::kDeviceWall + 7);
  EXPECT_EQ(run.rows[0].device, 3);
}

TEST(SysCpu, DamageCostsOneBlock) {
  std::string body = "cpu0 1 2 3 4 5 6 7 8 9 10\n";
  DecodeRun run("host_sys_cpu.data", kHost);
  run.Feed({Block(1, body, 99999) + "TimeStamp:x\nIndex:2\n" + body + "\n" +
            Block(3, "cpu0 1 2 3 4 5 6 7 8 9\n" + body) + "TimeStamp:4\n" + body +
            "TimeStamp:5\nIndex:5\n" + body});
  ASSERT_EQ(run.rows.size(), 4u);
  EXPECT_EQ(run.rows[0].t_ns, DecodeRun::kWall + 1);
  EXPECT_EQ(run.rows[1].t_ns, DecodeRun::kWall + 3);
  EXPECT_EQ(run.rows[3].t_ns, DecodeRun::kWall + 5);
  EXPECT_EQ(run.stats.bad_records, 3u);  // the timestamp, its line, the short line
}

TEST(SysMem, NineOfManyLines) {
  std::string body =
      "MemTotal:       64000 kB\nMemFree:  1 kB\nMemAvailable: 77 kB\nBuffers: 2 kB\n"
      "Cached: 3 kB\nSwapCached: 78 kB\nShmem: 4 kB\nCommitLimit: 5 kB\nCommitted_AS: 6 kB\n"
      "HugePages_Total:       7\nHugePages_Free:        8\n";
  DecodeRun run("host_sys_mem.data", kHost);
  run.Feed({Block(1, body) + Block(2, "MemFree: 5 kB\n"), Block(3, body)});
  EXPECT_EQ(run.Since(DecodeRun::kWall),
            (Numbers{{1, 64000, 1, 2, 3, 4, 5, 6, 7, 8}, {3, 64000, 1, 2, 3, 4, 5, 6, 7, 8}}));
  EXPECT_EQ(run.stats.bad_records, 1u);  // the block without its total
}

TEST(ProcCpu, JiffiesOfProcessAndMachine) {
  std::string stat =
      "4242 (my (odd) name) S 1 4242 4242 0 -1 4194560 1 2 3 4 100 20 7 8 20 0 1 0 5 6 7\n";
  DecodeRun run("4242-CpuUsage.data", kHost);
  run.Feed({Block(1, stat + "ProcessName: python3\ncpu  1 2 3 4 5 6 7 8 9 10\n") +
            Block(2, "ProcessName:x\ncpu  1 2\n")});
  ASSERT_EQ(run.rows.size(), 1u);
  EXPECT_EQ(run.rows[0].Int(0), 4242);
  EXPECT_EQ(run.strings.Text(run.rows[0].Int(1)), "python3");
  EXPECT_EQ(run.rows[0].Int(2), 135);
  EXPECT_EQ(run.rows[0].Int(3), 55);
  EXPECT_EQ(run.stats.bad_records, 2u);  // the line and its block
}

// The kernel keeps 15 bytes of a name, and may cut it within a character.
TEST(ProcMem, ANameThatIsCutIsValidText) {
  DecodeRun run("77-Memory.data", kDevice);
  run.Feed({Block(1, "50 20 30 4 5 6 7\nProcessName:ab\xe4\xb8\n") + Block(2, "50 20 30 4 5 6 7\nProcessName:ab\xe4\xb8\n")});
  ASSERT_EQ(run.rows.size(), 2u);
  EXPECT_EQ(run.strings.Text(run.rows[0].Int(1)), "ab\xEF\xBF\xBD\xEF\xBF\xBD");
  EXPECT_EQ(run.rows[1].Int(1), run.rows[0].Int(1));
}

TEST(ProcMem, PagesOfThePidInTheName) {
  DecodeRun run("77-Memory.data", kDevice);
  run.Feed({Block(1, "50 20 30 4 5 6 7\nProcessName:a b\n") + Block(2, "50 20\n")});
  ASSERT_EQ(run.rows.size(), 1u);
  EXPECT_EQ(run.rows[0].Int(0), 77);
  EXPECT_EQ(run.strings.Text(run.rows[0].Int(1)), "a b");
  EXPECT_EQ(run.rows[0].Int(2), 50);
  EXPECT_EQ(run.rows[0].Int(3), 20);
  EXPECT_EQ(run.rows[0].Int(4), 30);
  EXPECT_EQ(run.stats.bad_records, 2u);
}

// A line of /proc/<pid>/task/<tid>/stat.
std::string Thread(int tid, int utime, int stime, int cpu) {
  return fmt::format(
      "{} (a b) S 1 1 1 0 -1 0 0 0 0 0 {} {} 0 0 20 0 1 0 5 6 7 8 9 10 11 12 13 14 15 16 17 18 19 "
      "20 17 {} 0 0\n",
      tid, utime, stime, cpu);
}

TEST(HostCpu, UsagePerCpuAndOnAverage) {
  DecodeRun run("host_cpu.data", kHost);
  run.Feed({"time 1000\n100.00 5.0\n" + Thread(1, 10, 5, 2) + Thread(2, 0, 0, 0) +
            "time 2000\n100.08 5.0\n" + Thread(1, 12, 6, 2) + Thread(2, 1, 0, 2) +
            "time 3000\n100.10 5.0\n" + Thread(2, 1, 1, 3) + Thread(9, 50, 1, 1)});
  // 8 jiffies passed: CPU 2 ran 4 of them, then 2 jiffies: CPU 3 ran 1; thread 9 is new.
  EXPECT_EQ(run.Since(DecodeRun::kWall), (Numbers{{1000, 2, 50}, {1000, -1, 12.5}, {2000, 3, 50}, {2000, -1, 12.5}}));
  EXPECT_EQ(run.stats.records, 3u);
  EXPECT_EQ(run.stats.bad_records, 0u);
}

TEST(HostCpu, MoreThanAllIsLeftOutAndAThreadIsCut) {
  DecodeRun run("host_cpu.data", kHost);
  run.Feed({"time 1\n1.00 0\n" + Thread(1, 0, 0, 0) + Thread(2, 0, 0, 0) + "time 2\n1.02 0\n" +
            Thread(1, 5, 0, 0) + Thread(2, 1, 0, 0) + "time 3\n1.05 0\n" + Thread(1, 6, 0, 0) +
            Thread(2, 0, 0, 1)});
  // First 2 (cut) + 1 of 2 jiffies on CPU 0: 150 %. Then 1 of 3, and thread 2 is another one.
  EXPECT_EQ(run.Since(DecodeRun::kWall), (Numbers{{1, -1, 37.5}, {2, 0, 33.333333}, {2, 1, 0}, {2, -1, 8.333333}}));
}

TEST(HostCpu, NoTimeNoRowsAndGarbage) {
  DecodeRun run("host_cpu.data", kHost);
  run.Feed({"rubbish\ntime 1\n1.00 0\n" + Thread(1, 0, 0, 0) + "time 2\n1.00 0\n" +
            Thread(1, 5, 0, 0) + "1 (x) S 1\n"});
  EXPECT_TRUE(run.rows.empty());
  EXPECT_EQ(run.stats.bad_records, 2u);

  DecodeRun one("host_cpu.data", kHost);
  one.Feed({"time 1\n1.00 0\n" + Thread(1, 0, 0, 0)});
  EXPECT_TRUE(one.rows.empty());
}

TEST(HostMem, UsageOfTheNextAtTheTimestampBefore) {
  DecodeRun run("host_mem.data", kHost);
  run.Feed({"100 9 1000 1 1 1 1 1\n200 9 2000 1 1 1 1 1\nx\n300 9 333333 1 1 1 1 1\n"});
  // 2000 pages of 4 KB of 1,000,000 KB.
  EXPECT_EQ(run.Since(DecodeRun::kWall), (Numbers{{100, 0.8}, {200, 133.3332}}));
  EXPECT_EQ(run.stats.bad_records, 1u);
}

TEST(HostDisk, RowsAtTheirIntervals) {
  DecodeRun run("host_disk.data", kHost);
  run.Feed(
      {"Total DISK READ : 0.00 B/s\n    TIME  TID  PRIO  USER\n"
       "12:00:00 42 be/4 root 299.00 K/s 2.00 M/s 0.00 % 12.50 % python\n"
       "12:00:00 42 be/4 root 512.00 B/s 1.00 G/s ?unavailable?\n"
       "12:00:01 42 be/4\n"
       "12:00:01 42 be/4 root x K/s 1.00 Z/s 0.00 % 1.00 % python\nstart_time 5000\n"});
  EXPECT_EQ(run.Since(DecodeRun::kWall + 5000),
            (Numbers{{0, 299, 2048, 12.5}, {20e6, 0.5, 1048576, 0}, {40e6, 0, 1, 1}}));
  EXPECT_EQ(run.stats.bad_records, 1u);
}

TEST(HostDisk, WithoutItsStartRowsBeginWithTheSession) {
  DecodeRun run("host_disk.data", kHost);
  run.Feed({"12:00:00 42 be/4 root 1.00 K/s 2.00 K/s 0.00 % 1.00 % python\n"});
  ASSERT_EQ(run.rows.size(), 1u);
  EXPECT_EQ(run.rows[0].t_ns, DecodeRun::kWall + 2000);

  DecodeRun unknown("host_disk.data", kHost);
  unknown.place().host_disk_hz = 0;
  unknown.Feed({"12:00:00 42 be/4 root 1.00 K/s 2.00 K/s 0.00 % 1.00 % python\n"});
  EXPECT_TRUE(unknown.rows.empty());
  EXPECT_EQ(unknown.stats.bad_records, 1u);
}

std::string Card(const std::string& name, uint64_t rx, uint64_t tx) {
  return fmt::format("  {}: {} 1 0 0 0 0 0 0 {} 1 0 0 0 0 0 0\n", name, rx, tx);
}

TEST(HostNetwork, RateOfAllAndUsageOfOne) {
  DecodeRun run("host_network.data", kHost);
  std::string heading = "Inter-|   Receive  |  Transmit\n face |bytes    packets|bytes\n";
  run.Feed({"time 0\n" + heading + Card("eth0", 0, 0) + Card("eth1", 100, 100) + Card("lo", 0, 0) +
            "time 500000000\n" + heading + Card("eth0", 1000, 0) + Card("eth1", 62500100, 1100) +
            Card("lo", 999, 9) + "time 1000000000\n" + Card("eth0", 900, 0) +
            Card("eth1", 62500100, 126100)});
  // 62502000 B on two cards in 0.5 s, of 250 MB/s; then eth0 fell.
  EXPECT_EQ(run.Since(DecodeRun::kWall), (Numbers{{0, 25.0008, 122074.21875}, {0.5e9, 0.1, 244.140625}}));
}

TEST(HostNetwork, OneSampleAndGarbage) {
  DecodeRun run("host_network.data", kHost);
  run.Feed({"time 0\n" + Card("eth0", 0, 0) + "time x\nnonsense\n  eth1: 5\n"});
  EXPECT_TRUE(run.rows.empty());
  EXPECT_EQ(run.stats.bad_records, 3u);
}

TEST(HostNetwork, ACardGluedToItsCountIsRead) {
  DecodeRun run("host_network.data", kHost);
  run.Feed(
      {"time 0\neth0:0 1 0 0 0 0 0 0 0 1 0 0 0 0 0 0\n"
       "time 1000000000\neth0:1250000 1 0 0 0 0 0 0 0 1 0 0 0 0 0 0\n"});
  ASSERT_EQ(run.rows.size(), 1u);
  EXPECT_EQ(run.rows[0].Real(0), 1.0);
}

}  // namespace
}  // namespace profd::exporting
