// Memory beside the operators.
#include <gtest/gtest.h>

#include <string>
#include <string_view>

#include "export/csv/operator_parts.h"

namespace profd::exporting::csv {
namespace {

using operators::MemoryRecord;
using operators::Model;

MemoryRecord RecordOf(uint64_t time, uint64_t address, int64_t bytes) {
  MemoryRecord record;
  record.time = time;
  record.address = address;
  record.bytes = bytes;
  record.device_type = operators::kNpuMemory;
  return record;
}

// Its rows.
std::string Csv(const Model& model, std::string_view name) {
  std::string text;
  for (const OperatorCsv& csv : ResourceCsvs(model)) {
    for (size_t row = 0; csv.name == name && row < csv.rows; ++row) csv.add(row, &text);
  }
  return text;
}

TEST(OperatorResources, OnlyMemoryOfTheWindow) {
  Model model(operators::HostData([](uint64_t count) { return static_cast<int64_t>(count); }, 0, false), true);
  model.host.memory.memory = {RecordOf(1000, 1, 1024), RecordOf(2000, 2, 2048), RecordOf(3000, 1, -1024),
                              RecordOf(4000, 2, -2048), RecordOf(5000, 3, 4096)};
  model.KeepOnly({2000, 3000});
  EXPECT_EQ(Csv(model, "memory_record"), "host,GE,2.000\t,0.0,0.0,NPU:0\nhost,GE,3.000\t,0.0,0.0,NPU:0\n");
  // It is freed behind the window.
  EXPECT_EQ(Csv(model, "operator_memory"), "host,N/A,2.0,2.000\t,2.0,0.0,0.0,0.0,0.0,NPU:0\n");
}

// The files of one age are read before those of the other; memory of the host may have the same address.
TEST(OperatorResources, TheNextFreeIsFoundByTime) {
  Model model(operators::HostData([](uint64_t count) { return static_cast<int64_t>(count); }, 0, false), true);
  MemoryRecord of_host = RecordOf(2000, 1, -1024);
  of_host.device_type = 0;
  model.host.memory.memory = {RecordOf(4000, 1, -1024), RecordOf(5000, 1, 2048), RecordOf(1000, 1, 1024), of_host,
                              RecordOf(9000, 1, -2048)};
  EXPECT_EQ(Csv(model, "operator_memory"),
            "host,N/A,2.0,5.000\t,4.0,0.0,0.0,0.0,0.0,NPU:0\nhost,N/A,1.0,1.000\t,3.0,0.0,0.0,0.0,0.0,NPU:0\n");
}

TEST(OperatorResources, NumbersOf64BitsHaveNoSign) {
  constexpr uint64_t kMost = UINT64_MAX;
  Model model(operators::HostData([](uint64_t count) { return static_cast<int64_t>(count); }, 0, false), true);
  model.host.memory.planned = {{0, 2048, 3, kMost, 5}};
  operators::DeviceCpu& cpu = model.cpu[1];
  cpu.monotonic = [](uint64_t ns) { return static_cast<int64_t>(ns); };
  cpu.records.pipeline = {{1000, kMost, "enqueue", "source"}};
  cpu.records.waits = {{kMost - 2, kMost - 1, kMost, 1, {}}};
  EXPECT_EQ(Csv(model, "static_op_mem"), "host,TOTAL,N/A,5,3,18446744073709551615,2\n");
  EXPECT_EQ(Csv(model, "dp"), "1,1.000\t,enqueue,source,18446744073709551615\n");
  EXPECT_EQ(Csv(model, "aicpu_mi"),
            "1,GetNext_dequeue_wait,18446744073709551613,18446744073709551614,18446744073709551615\n");
}

}  // namespace
}  // namespace profd::exporting::csv
