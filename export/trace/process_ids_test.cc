#include "export/trace/process_ids.h"

#include <gtest/gtest.h>

#include <set>

namespace profd::exporting {
namespace {

TEST(ProcessIdsTest, TheVendorsFormula) {
  DumpInfo dump;
  dump.pid = 4242;
  ProcessIds ids({&dump});
  ProcessSpec hbm{"HBM", 24, 24, false};
  EXPECT_EQ(ids.Pid(0, 3, hbm), 4242U << 10 | 24U << 5 | 3U);
  EXPECT_EQ(ids.Pid(0, -1, hbm), 4242U << 10 | 24U << 5 | 31U);
  EXPECT_EQ(ids.Label(0, 3), "NPU 3");
  EXPECT_EQ(ids.Label(0, -1), "CPU");
}

// A chip has a Unified Bus or instruction profiling, which have one slot.
class ProcessIdsOfChipsTest : public ::testing::TestWithParam<TableId> {};

TEST_P(ProcessIdsOfChipsTest, NoTwoAreTheSame) {
  DumpInfo a, b, c;
  a.pid = b.pid = 0;
  c.pid = (int64_t{1} << 40) + 7;  // garbage
  ProcessIds ids({&a, &b, &c});
  std::set<uint32_t> pids;
  size_t asked = 0;
  for (size_t dump = 0; dump < 3; ++dump) {
    for (int device = -1; device < 70; ++device) {
      std::vector<ProcessSpec> processes = {kMarksProcess, kLossProcess};
      for (const TableSpec& table : Tables()) {
        if (IsActivity(table.id) || table.id == TableId::kInstrFlow) continue;  // they share processes
        if (table.id == GetParam()) continue;
        const ProcessSpec& process = LayoutOf(table.id, false).process;
        bool host = table.id >= TableId::kHostCpu && table.id <= TableId::kHostNetwork;
        if (process.own || host == (device < 0)) processes.push_back(process);
      }
      for (const ProcessSpec& process : processes) {
        ++asked;
        pids.insert(ids.Pid(dump, device, process));
      }
    }
  }
  EXPECT_EQ(pids.size(), asked);
}

INSTANTIATE_TEST_SUITE_P(WithoutOneOfThem, ProcessIdsOfChipsTest, ::testing::Values(TableId::kUb, TableId::kInstrCycles));

TEST(ProcessIdsTest, LabelsOfSeveralDumpsSayWhose) {
  DumpInfo a, b;
  a.hostname = "node-7";
  a.rank = 2;
  a.pid = 1;
  b.name = "PROF_2";
  ProcessIds ids({&a, &b});
  EXPECT_EQ(ids.Label(0, 0), "NPU 0 node-7 rank 2");
  EXPECT_EQ(ids.Label(1, -1), "CPU PROF_2");
}

}  // namespace
}  // namespace profd::exporting
