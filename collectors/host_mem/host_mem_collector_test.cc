#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <string>

#include "collectors/collector_list.h"
#include "collectors/proc/testing/host_fixture.h"

namespace profd {
namespace {

using testing::All;
using testing::AndAll;
using testing::FakeHost;
using ::testing::HasSubstr;
using ::testing::Not;
using testing::PolledRig;
using testing::Roots;

constexpr char kMeminfo[] =
    "MemTotal:       64000000 kB\n"
    "MemFree:        30000000 kB\n"
    "MemAvailable:   40000000 kB\n"
    "Buffers:          120000 kB\n"
    "Cached:          8000000 kB\n"
    "SwapCached:            5 kB\n"
    "HugePages_Total:      15\n";

class HostMemTest : public ::testing::Test {
 protected:
  HostMemTest() { fake_.proc.Write("meminfo", kMeminfo); }
  void AddProcess(int pid, std::string_view comm, std::string_view statm, int ppid = 1,
                  int flags = 4194304) {
    const std::string folder = std::to_string(pid);
    fake_.proc.Write(folder + "/stat",
                     fmt::format("{} ({}) S {} 5 5 0 -1 {} 1 0 0 0 1 1 0 0 20 0 2 0 {} 4096 9\n",
                                 pid, comm, ppid, flags, pid));
    fake_.proc.Write(folder + "/statm", statm);
  }
  static PollOptions Only(ProcessScope scope) {
    PollOptions options;
    options.system = false;
    options.processes = std::move(scope);
    return options;
  }
  static std::string Bytes(long pages) { return std::to_string(pages * sysconf(_SC_PAGESIZE)); }

  FakeHost fake_;
};

TEST_F(HostMemTest, SystemSamples) {
  PolledRig rig(kHostMemCollector, fake_);
  EXPECT_TRUE(rig.PollAt(0).ok());
  EXPECT_EQ(rig.Samples(),
            "atlas_host_memory_total_bytes 65536000000\n"
            "atlas_host_memory_free_bytes 30720000000\n"
            "atlas_host_memory_available_bytes 40960000000\n"
            "atlas_host_memory_cached_bytes 8192000000\n");
}

TEST_F(HostMemTest, SystemRawFile) {
  PolledRig rig(kHostMemCollector, fake_);
  EXPECT_TRUE(rig.PollAt(0).ok());
  EXPECT_EQ(rig.sink.files["host_sys_mem.data"],
            fmt::format("TimeStamp:1000000000\nIndex:0\nDataLen:{}\n{}\n", sizeof kMeminfo - 2,
                        kMeminfo));
  EXPECT_TRUE(rig.PollAt(20).ok());
  EXPECT_THAT(rig.sink.files["host_sys_mem.data"], HasSubstr("TimeStamp:1020000000\nIndex:1\n"));
}

TEST_F(HostMemTest, NumaNodesAreReadSlowlyAndShownAlways) {
  fake_.sys.Write("devices/system/node/node0/meminfo",
                  "Node 0 MemTotal: 100 kB\nNode 0 MemFree:  10 kB\n");
  fake_.sys.Write("devices/system/node/node12/meminfo", "Node 12 MemFree:  20 kB\n");
  fake_.sys.Write("devices/system/node/node3/meminfo", "\xff:\nNode 3 MemFree: x kB\n");
  fake_.sys.Write("devices/system/node/possible", "0-3\n");
  PolledRig rig(kHostMemCollector, fake_);
  EXPECT_TRUE(rig.PollAt(0).ok());
  const std::string nodes =
      "atlas_host_numa_memory_free_bytes{node=\"0\"} 10240\n"
      "atlas_host_numa_memory_free_bytes{node=\"12\"} 20480\n";
  EXPECT_THAT(rig.Samples(), HasSubstr(nodes));
  fake_.sys.Write("devices/system/node/node0/meminfo", "Node 0 MemFree:  11 kB\n");
  EXPECT_TRUE(rig.PollAt(9'999).ok());
  EXPECT_THAT(rig.Samples(), HasSubstr(nodes));
  EXPECT_TRUE(rig.PollAt(10'000).ok());
  EXPECT_THAT(rig.Samples(), HasSubstr("{node=\"0\"} 11264\n"));
}

TEST_F(HostMemTest, GarbageInMeminfo) {
  PolledRig rig(kHostMemCollector, fake_);
  for (const std::string& text :
       {std::string(), std::string(300000, 'M'), std::string("MemTotal:\n"),
        std::string("MemTotal: -5 kB\nMemFree: 1e9 kB\n:::\n\xff\0\n", 40)}) {
    fake_.proc.Write("meminfo", text);
    EXPECT_EQ(rig.PollAt(0).code(), StatusCode::kInternal) << text.substr(0, 20);
    EXPECT_TRUE(rig.sink.files.empty());
  }
  fake_.proc.Remove("meminfo");
}

TEST_F(HostMemTest, AllProcessesExceptKernelThreads) {
  AddProcess(2, "kthreadd", "0 0 0 0 0 0 0\n", 0, 2129984);
  AddProcess(42, "my prog", "1000 50 10 1 0 20 0\n");
  PolledRig rig(kHostMemCollector, fake_, Only(All()));
  EXPECT_TRUE(rig.PollAt(0).ok());
  const std::string labels = "{pid=\"42\",comm=\"my prog\"} ";
  EXPECT_EQ(rig.Samples(), "atlas_host_process_resident_bytes" + labels + Bytes(50) + "\n" +
                               "atlas_host_process_virtual_bytes" + labels + Bytes(1000) + "\n");
  ASSERT_EQ(rig.sink.files.size(), 1u);
  EXPECT_EQ(rig.sink.files["42-Memory.data"],
            "TimeStamp:1000000000\nIndex:0\nDataLen:39\n"
            "1000 50 10 1 0 20 0\nProcessName:my_prog\n\n");
}

TEST_F(HostMemTest, AJobIsSummedInPagesOfFourKiB) {
  AddProcess(42, "python3", "1000 50 10 1 0 20 0\n");
  AddProcess(43, "child", "100 5 1 1 0 2 0\n", 42);
  AddProcess(44, "other", "7 7 7 7 7 7 7\n");
  PolledRig rig(kHostMemCollector, fake_, Only(Roots({42})));
  EXPECT_TRUE(rig.PollAt(20).ok());
  const long scale = sysconf(_SC_PAGESIZE) / 4096;
  ASSERT_EQ(rig.sink.files.size(), 1u);
  EXPECT_EQ(rig.sink.files["host_mem.data"],
            fmt::format("1020000000 {} {} {} {} 0 {} 0\n", 1100 * scale, 55 * scale, 11 * scale,
                        2 * scale, 22 * scale));
  EXPECT_EQ(rig.registry.live(), 4u);
}

TEST_F(HostMemTest, GoneAndRenamedProcesses) {
  AddProcess(42, "bash", "1 1 1 1 1 1 1\n");
  AddProcess(43, "x", "1 1 1 1 1 1 1\n");
  PolledRig rig(kHostMemCollector, fake_, Only(AndAll(Roots({42}))));
  EXPECT_TRUE(rig.PollAt(0).ok());
  EXPECT_EQ(rig.registry.live(), 4u);
  AddProcess(42, "python3", "1 1 1 1 1 1 1\n");
  fake_.proc.Remove("43");
  EXPECT_TRUE(rig.PollAt(1000).ok());
  EXPECT_EQ(rig.registry.live(), 2u);
  EXPECT_THAT(rig.Samples(), HasSubstr("comm=\"python3\""));
  fake_.proc.Remove("42");
  EXPECT_TRUE(rig.PollAt(2000).ok());
  EXPECT_EQ(rig.registry.live(), 0u);
  EXPECT_TRUE(rig.sink.files.empty());
}

TEST_F(HostMemTest, GarbageInStatm) {
  AddProcess(42, "a", "1 2 3\n");
  AddProcess(43, "b", "1 2 3 4 5 6 7\n");
  PolledRig rig(kHostMemCollector, fake_, Only(Roots({42, 43})));
  for (const std::string& text :
       {std::string("1 2 3"), std::string(), std::string("1 2 3 4 5 6 7 8"),
        std::string(100000, '1'), std::string("-1 2 3 4 5 6 7")}) {
    fake_.proc.Write("42/statm", text);
    Status status = rig.PollAt(0);
    EXPECT_EQ(status.code(), StatusCode::kInternal) << text.substr(0, 20);
    EXPECT_THAT(status.message(), HasSubstr("/proc/42/statm"));
    EXPECT_THAT(rig.Samples(), Not(HasSubstr("42")));
    EXPECT_THAT(rig.sink.files["host_mem.data"], HasSubstr("1000000000 "));
  }
}

TEST_F(HostMemTest, AllocatesNothingPerPoll) {
  for (int pid = 100; pid < 120; ++pid) AddProcess(pid, "python3", "1000 50 10 1 0 20 0\n");
  fake_.sys.Write("devices/system/node/node0/meminfo", "Node 0 MemFree:  10 kB\n");
  PollOptions options = Only(AndAll(Roots({100, 101, 102})));
  options.system = true;
  PolledRig rig(kHostMemCollector, fake_, options);
  EXPECT_EQ(rig.AllocationsOf(100), 0u);
  rig.collector.reset();
  EXPECT_EQ(rig.registry.live(), 0u);
}

TEST_F(HostMemTest, ProbeReportsWhyNot) {
  EXPECT_TRUE(kHostMemCollector.probe_host(fake_.host()).ok());
  fake_.proc.Remove("meminfo");
  EXPECT_EQ(kHostMemCollector.probe_host(fake_.host()).message(), "/proc/meminfo is missing");
}

}  // namespace
}  // namespace profd
