#include "export/csv/csv_test_support.h"

namespace profd::exporting {
namespace {

using HostCsvTest = CsvTest;

TEST_F(HostCsvTest, CpuUsageByKindOfCpu) {
  Place& place = PlaceOf(0);
  place.ctrl_cpus = {0};
  place.ai_cpus = {2, 3};
  auto cpu = [](BatchBuilder& rows, int64_t number, int64_t user) {
    rows.Add(kStartNs, number, user, 0, 30, 600, 10, 10, 10, 0, 0, 0);
  };
  Feed(0, TableId::kSysCpu, [&](BatchBuilder& rows) {
    cpu(rows, -1, 99);  // all together: of no kind
    cpu(rows, 0, 340);
    cpu(rows, 1, 99);
    cpu(rows, 2, 70);
    cpu(rows, 3, 71);
  });
  Feed(-1, TableId::kSysCpu, [&](BatchBuilder& rows) {
    cpu(rows, -1, 340);
    cpu(rows, 0, 340);
  });
  End();
  // 141 / 1461, 60 / 1461, 20 / 1461, 1200 / 1461
  EXPECT_EQ(Csv("cpu_usage"),
            "Device_id,Cpu Type,User(%),Sys(%),IoWait(%),Irq(%),Soft(%),Idle(%)\n"
            "0,aicpu,9.651,4.107,1.369,1.369,1.369,82.136\n"
            "0,ctrlcpu,34.0,3.0,1.0,1.0,1.0,60.0\n"
            "host,host,34.0,3.0,1.0,1.0,1.0,60.0\n");
}

TEST_F(HostCsvTest, ProcessesByTheirUsage) {
  int64_t python = Intern("python3");
  int64_t odd = Intern("a,\"b\"");
  Feed(
      0, TableId::kProcCpu,
      [&](BatchBuilder& rows) {
        rows.Add(kStartNs, 42, odd, 1, 1000);
        rows.Add(kStartNs, 42, odd, 1, 2000);
      },
      "42-CpuUsage.data");
  Feed(
      0, TableId::kProcCpu, [&](BatchBuilder& rows) { rows.Add(kStartNs, 4242, python, 5, 300); },
      "4242-CpuUsage.data");
  Feed(
      -1, TableId::kProcCpu, [&](BatchBuilder& rows) { rows.Add(kStartNs, 7, python, 5, 0); },
      "7-CpuUsage.data");
  End();
  // 100 * (0.001 + 0.0005) / 2 = 0.075
  EXPECT_EQ(Csv("process_cpu_usage"),
            "Device_id,PID,Name,CPU(%)\n"
            "0,4242,python3,1.667\n"
            "0,42,\"a,\"\"b\"\"\",0.075\n"
            "host,7,python3,0.0\n");
}

TEST_F(HostCsvTest, MemoryIsInIntegers) {
  int64_t python = Intern("python3");
  Feed(0, TableId::kSysMem, [](BatchBuilder& rows) {
    rows.Add(kStartNs, 64000000, 30000000, 1, 2, 3, 4, 5, 15, 7);
    rows.Add(kStartNs + 1, 64000000, 29990011, 1, 2, 4, 4, 5, 15, 7);
  });
  Feed(
      0, TableId::kProcMem,
      [&](BatchBuilder& rows) {
        rows.Add(kStartNs, 1, python, 10, 2, 3);
        rows.Add(kStartNs, 1, python, 11, 2, 3);
      },
      "1-Memory.data");
  Feed(
      0, TableId::kProcMem,
      [&](BatchBuilder& rows) { rows.Add(kStartNs, 4242, python, 50499, 20499, 3000); },
      "4242-Memory.data");
  End();
  EXPECT_EQ(Csv("sys_mem"),
            "Device_id,Memory Total(kB),Memory Free(kB),Buffers(kB),Cached(kB),Share Memory(kB),"
            "Commit Limit(kB),Committed AS(kB),Huge Pages Total(pages),Huge Pages Free(pages)\n"
            "0,64000000,29995005,1,2,3,4,5,15,7\n");
  EXPECT_EQ(Csv("process_mem"),
            "Device_id,PID,Name,Size(pages),Resident(pages),Shared(pages)\n"
            "0,4242,python3,50499,20499,3000\n"
            "0,1,python3,10,2,3\n");
}

TEST_F(HostCsvTest, HostUsageHasPeaksAndRecommendations) {
  PlaceOf(-1);
  dump().cpu_count = 192;
  dump().memory_total_kb = 1583221744;
  dump().cards = {{"eth0", 10000}, {"eth1", -1}};
  Feed(-1, TableId::kHostCpu, [](BatchBuilder& rows) {
    rows.Add(kStartNs, -1, 3.0);
    rows.Add(kStartNs, 4, 0.0);
    rows.Add(kStartNs, 9, 0.5);
    rows.Add(kStartNs + 1, 9, 0.0);
  });
  Feed(-1, TableId::kHostMem, [](BatchBuilder& rows) {
    rows.Add(kStartNs, 0.656873);
    rows.Add(kStartNs + 1, 0.0);
  });
  // Of 1 to 100 and a 0: rank ceil(99 * 0.98) = 98, the 99th.
  Feed(-1, TableId::kHostNetwork, [](BatchBuilder& rows) {
    for (int i = 0; i <= 100; ++i) rows.Add(kStartNs + i, 0.0, i * 1.1);
  });
  Feed(-1, TableId::kHostDisk, [](BatchBuilder& rows) {
    rows.Add(kStartNs, 299.0, 0.0, 1.0);
    rows.Add(kStartNs + 1, 293.0, 0.0, 1.0);
  });
  End();
  EXPECT_EQ(Csv("host_cpu_usage"),
            "Device_id,Total Cpu Numbers,Occupied Cpu Numbers,Recommend Cpu Numbers\n"
            "host,192,2,1\n");
  // 0.656873 % of 1583221744; by 0.8
  EXPECT_EQ(Csv("host_mem_usage"),
            "Device_id,Total Memory(KB),Peak Used Memory(KB),Recommend Memory(KB)\n"
            "host,1583221744,10399756.166,12999695.208\n");
  EXPECT_EQ(Csv("host_network_usage"),
            "Device_id,Netcard Speed(KB/s),Peak Used Speed(KB/s),Recommend Speed(KB/s)\n"
            "host,1220703.125,110.00000000000001,136.125\n");
  EXPECT_EQ(Csv("host_disk_usage"),
            "Device_id,Peak Disk Read(KB/s),Recommend Disk Read(KB/s),Peak Disk Write(KB/s),"
            "Recommend Disk Write(KB/s)\n"
            "host,299.0,373.75,0.0,0.0\n");
}

}  // namespace
}  // namespace profd::exporting
