// The vendor's CSVs of operators, one function each.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "export/operators/model.h"

namespace profd::exporting::csv {

struct OperatorCsv {
  std::string_view name;
  std::string columns;  // after Device_id
  size_t rows = 0;
  std::function<void(size_t row, std::string* out)> add;  // the line of one row; any thread
  bool of_devices = true;  // false: Device_id is not its first column
};
OperatorCsv OfLines(std::string_view name, std::string columns, std::vector<std::string> lines, bool of_devices = true);

// As the analyser's C++ prints doubles: up to three decimals, none that are zero at the end.
std::string ShortDecimal(double value);

// An execution of an operator, or (task null) an operation of communication.
struct OperatorRow {
  const operators::TaskRow* task = nullptr;
  const operators::CommunicationOp* communication = nullptr;
  int32_t alike = -1;  // index of what is made once for tasks alike; -1: it is made for this one

  int device() const { return task != nullptr ? task->device : communication->device; }
  int64_t start_ns() const { return task != nullptr ? task->start_ns : communication->start_ns; }
  int64_t end_ns() const { return task != nullptr ? task->end_ns : communication->end_ns; }
  int64_t duration() const { return end_ns() - start_ns(); }
};

using OperatorRowsPtr = std::shared_ptr<const Large<OperatorRow>>;

// us between the end of the row before and the start. As the analyser: in us since the epoch as doubles, which are
// 0.25 us apart. None: it is the first. The row before may be one that --top leaves out.
std::optional<double> WaitOf(const operators::Model& model, std::span<const OperatorRow> rows, size_t at);
// The number that the text with three decimals reads back as. Not ns / 1000: today's ns have more digits than a double.
inline double MicrosAsPrinted(int64_t ns) {
  const int64_t micros = ns / 1000;
  return static_cast<double>(micros) + static_cast<double>(ns - micros * 1000) / 1000;
}

// kernel_details (op_summary with steps), operator_details, framework_memory_record and framework_operator_memory; none
// without a framework's records.
std::vector<OperatorCsv> FrameworkCsvs(const operators::Model& model, const OperatorCsv& summary, OperatorRowsPtr rows);
OperatorCsv OperatorStatistic(const operators::Model& model, std::span<const OperatorRow> rows, int64_t begin_ns);
OperatorCsv CommunicationStatistic(const operators::Model& model, std::span<const OperatorRow> rows);
OperatorCsv ApiStatistic(const operators::Model& model);
// ge_op_execute: what the graph engine does for an operator before it launches it (shapes, tiling, memory), which dynamic
// shapes cause. Today's releases of the vendor's analyser do not write it.
OperatorCsv OperatorPhases(const operators::Model& model);
// acl_statistic, runtime_api and acl of earlier releases. `pid`: of the process whose calls these are.
std::vector<OperatorCsv> LegacyCsvs(const operators::Model& model, int64_t pid);
// memory_record, operator_memory, static_op_mem, fusion_op, l2_cache, aicpu, dp, aicpu_mi.
std::vector<OperatorCsv> ResourceCsvs(const operators::Model& model);

}  // namespace profd::exporting::csv
