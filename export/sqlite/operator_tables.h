// The vendor's tables of operators and tasks (operator-data f), and our views over them.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>

namespace profd::exporting {

enum class OperatorTable : uint8_t {
  kTask,
  kComputeTaskInfo,
  kTaskPmuInfo,
  kCannApi,
  kCommunicationOp,
  kCommunicationTaskInfo,
  kMemcpyInfo,
  kOverlapAnalysis,
  kCommunicationScheduleTaskInfo,
  kNpuOpMem,
  // Of PyTorch's profiler.
  kPytorchApi,
  kPytorchCallchains,
  kConnectionIds,
  kStepTime,
  kGcRecord,
  kMemoryRecord,
  kOpMemory,
};
inline constexpr size_t kOperatorTables = 17;
struct OperatorTableSpec {
  std::string_view name;
  std::string_view columns;
  std::string_view index;  // name and columns; empty: none
};
const OperatorTableSpec& OperatorTableOf(OperatorTable table);

std::string IndexSql(const OperatorTableSpec& table);
// `filled`: by table. The views are there without the tables, too, and are empty then.
std::string OperatorViewsSql(std::span<const bool> filled, bool merged);

}  // namespace profd::exporting
