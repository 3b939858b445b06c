#include "export/trace/layout.h"

#include <gtest/gtest.h>

#include <set>

namespace profd::exporting {
namespace {

std::string Text(std::string_view pattern, std::vector<int64_t> keys) {
  return Expand(pattern, TableOf(TableId::kLlc), keys, nullptr);
}

TEST(LayoutTest, Patterns) {
  EXPECT_EQ(Text("LLC {0} {1:Read,Write}/x", {2, 1}), "LLC 2 Write/x");
  EXPECT_EQ(Text("LLC {0} {1:Read,Write}/x", {2, 7}), "LLC 2 7/x");
  EXPECT_EQ(Text("{1}", {0, 0}), "read");  // the column's own text
  EXPECT_EQ(Text("CPU {0-Avg}", {-1, 0}), "CPU Avg");
  EXPECT_EQ(Text("CPU {0-Avg}", {12, 0}), "CPU 12");
  EXPECT_EQ(Text("Freq{0>-1 Die }", {-1, 0}), "Freq");
  EXPECT_EQ(Text("Freq{0>-1 Die }", {0, 0}), "Freq Die 0");
  EXPECT_EQ(Text("Port{0%3}", {7, 0}), "Port007");
  EXPECT_EQ(Text("{5}", {0, 0}), "");
}

// A misspelt column would silently show another one.
TEST(LayoutTest, ColumnsExist) {
  for (bool v6 : {false, true}) {
    for (const TableSpec& table : Tables()) {
      const TableLayout& layout = LayoutOf(table.id, v6);
      EXPECT_EQ(layout.id, table.id);
      const TableSpec& rows = table.id == TableId::kAicorePmu ? UtilizationTable() : table;
      for (const CounterSpec& counter : layout.counters) {
        for (const ArgSpec& arg : counter.args) {
          if (arg.show == Show::kNone || arg.show == Show::kConstant) continue;
          EXPECT_GE(ColumnIndex(rows, arg.column), 0) << table.name << " " << arg.column;
          if (!arg.column2.empty()) {
            EXPECT_GE(ColumnIndex(rows, arg.column2), 0) << table.name << " " << arg.column2;
          }
        }
      }
    }
  }
}

TEST(LayoutTest, ProcessesHaveSlotsOfTheirOwn) {
  std::set<int> slots;
  std::set<std::string_view> names;
  for (const TableSpec& table : Tables()) {
    // They share processes, or (of chips that have no UB ports) the slot of one.
    if (IsActivity(table.id) || table.id == TableId::kInstrCycles || table.id == TableId::kInstrFlow) continue;
    const ProcessSpec& process = LayoutOf(table.id, false).process;
    // Host usage has the slots of device processes of our own; the host's lie elsewhere.
    bool host = table.id >= TableId::kHostCpu && table.id <= TableId::kHostNetwork;
    EXPECT_TRUE(host || slots.insert(process.slot).second) << process.name;
    EXPECT_TRUE(names.insert(process.name).second) << process.name;
    EXPECT_LT(process.slot, 32);
  }
  for (const ProcessSpec* process : {&kMarksProcess, &kStepTraceProcess, &kLossProcess, &kOverlapProcess}) {
    EXPECT_TRUE(slots.insert(process->slot).second) << process->name;
  }
}

}  // namespace
}  // namespace profd::exporting
