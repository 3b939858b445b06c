// THE table of what can be decoded from a dump: for each kind of row its columns, their units, and
// which metric and labels they are for generic readers. Decoders produce these rows; CSV, trace,
// database and the rest are tables of their own over them. Facts: dump-format 2.1-2.16, 3.2-3.4.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>

namespace profd::exporting {

enum class TableId : uint8_t {
  kHccs,
  kPcie,
  kHbm,
  kDdr,
  kLlc,
  kNic,
  kRoce,
  kDvpp,
  kNpuMem,
  kModuleMem,
  kAicoreFreq,
  kVoltage,
  kQos,
  kSio,
  kAccPmu,
  kChipTrans,
  kSocLevel,
  kLowPower,
  kAicorePmu,
  kUb,
  kInstrCycles,
  kInstrFlow,
  kNetdev,
  kSysCpu,
  kSysMem,
  kProcCpu,
  kProcMem,
  kHostCpu,
  kHostMem,
  kHostDisk,
  kHostNetwork,
  kSample,
  // What training processes did; one row each, nothing a counter could show.
  kKernel,
  kCommunication,
  kApi,
  kMarker,
  kMemory,
};
inline constexpr size_t kTableCount = static_cast<size_t>(TableId::kMemory) + 1;

constexpr bool IsActivity(TableId id) { return id >= TableId::kKernel; }

enum class ColumnType : uint8_t {
  kKey,   // integer; distinguishes series; a label of every metric of the row
  kName,  // the same, but an id of Strings
  kInt,   // a value, 64-bit integer
  kReal,  // a value, double
};
constexpr bool IsReal(ColumnType type) { return type == ColumnType::kReal; }
constexpr bool IsKey(ColumnType type) {
  return type == ColumnType::kKey || type == ColumnType::kName;
}

struct Column {
  std::string_view name;  // [a-z0-9_]; of a key: the name of its label
  ColumnType type = ColumnType::kReal;
  std::string_view unit = {};  // of the cell: "MB/s" (2^20 bytes), "B/us", "%", ...
  // For generic readers (JSON lines, OpenMetrics, profd_samples, profctl show): the metric whose value
  // is cell * scale, the same names as in the daemon's metric table where it has the quantity. Empty:
  // not shown there.
  std::string_view metric = {};
  std::string_view labels = {};  // fixed labels behind the table's: "link=all,direction=tx"
  double scale = 1;
  // kKey: texts by value, separated by ','; a value without one is shown as a number.
  std::string_view values = {};
  // kKey: the label of -1, which stands for what the row does not distinguish. Empty: it has no such label then.
  std::string_view none = {};
  // The metric instead, in rows whose key "die" is not -1.
  std::string_view metric_of_die = {};
};

struct TableSpec {
  TableId id;
  std::string_view name;  // as --channels has it: "hccs"
  std::span<const Column> columns;  // keys first
  std::string_view labels = {};     // fixed labels of every metric: "layer=nic"
};

// One MB/s of the vendor's, in bytes per second.
inline constexpr double kMega = 1048576.0;

// Each stands at the place of its id.
template <class List>
constexpr bool AreInOrder(const List& list) {
  for (size_t i = 0; i < list.size(); ++i) {
    if (static_cast<size_t>(list[i].id) != i) return false;
  }
  return true;
}

std::span<const TableSpec> Tables();
const TableSpec& TableOf(TableId id);
// Null if there is none.
const TableSpec* FindTable(std::string_view name);
// How many of the columns are keys; they come first.
size_t KeyCount(const TableSpec& table);
// Index of a column, -1 if there is none.
int ColumnIndex(const TableSpec& table, std::string_view name);
// All fixed labels of a column of the table.
std::string LabelsOf(const TableSpec& table, const Column& column);
// Text of a kKey column's value, from `values`; empty if it has none.
std::string_view KeyText(const Column& column, int64_t value);

}  // namespace profd::exporting
