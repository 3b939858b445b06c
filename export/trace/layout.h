// THE table of what timelines show: for each table of rows the process it belongs to, its counters
// and their args, named as the vendor's analyser names them (dump-format 3.3). Tables it shows
// nowhere have a process of our own; low power, whose columns have no names, one counter per
// column.
//
// Patterns name key columns by their place: {0} is the value of the first one (a column of kName:
// its text), {0:a,b} the first or second text (the number where there is none), {0-x} the text x
// for negative values, {0>1 x} nothing unless the value is above 1, then " x" and the value; {0%3}
// the number with at least three digits.
#pragma once

#include <array>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>

#include "export/batch.h"
#include "export/strings.h"
#include "export/table.h"

namespace profd::exporting {

// What the value of an arg is made of.
enum class Show : uint8_t {
  kNone,      // no arg
  kCell,      // the cell, integer or real as its column
  kReal,      // (cell + cell of column2) * mul / div
  kReal3,     // the same with three decimals
  kInteger,   // the cell cut to an integer
  kKey,       // a key column: the same in every event of the series
  kConstant,  // mul
};

struct ArgSpec {
  std::string_view key;  // a pattern
  Show show = Show::kNone;
  std::string_view column = {};  // by name
  double mul = 1;
  double div = 1;
  std::string_view column2 = {};
  std::string_view unit = {};  // where it differs from the column's
};

struct CounterSpec {
  std::string_view name;  // a pattern
  std::array<ArgSpec, 10> args = {};
  int tid = 0;
  int when_key = -1;  // only for rows whose key column `when_key` is `when`
  int64_t when = 0;
};

// A process of the timeline, once per device (or for the host).
struct ProcessSpec {
  std::string_view name;
  int sort_index = 0;
  int slot = 0;      // bits 5 to 9 of the pid; the vendor's are the sort index
  bool own = false;  // not the vendor's
};

struct TableLayout {
  TableId id = TableId::kHccs;
  ProcessSpec process;
  std::span<const CounterSpec> counters;  // empty: one per value column
  // Args of rows with the same timestamp and different first key make one event.
  bool merge = false;
};

// `v6`: of chips 15 and 16.
const TableLayout& LayoutOf(TableId id, bool v6);

// Processes of what is not a row.
extern const ProcessSpec kMarksProcess;
extern const ProcessSpec kStepTraceProcess;
extern const ProcessSpec kLossProcess;
// Of operator-level records.
extern const ProcessSpec kPythonProcess;
extern const ProcessSpec kCannProcess;
extern const ProcessSpec kHardwareProcess;
extern const ProcessSpec kCommunicationProcess;
extern const ProcessSpec kOverlapProcess;

// AI Core samples as the timeline shows them: rows of these columns, made by Utilization.
const TableSpec& UtilizationTable();

// `keys` are the cells of the key columns.
std::string Expand(std::string_view pattern, const TableSpec& table, std::span<const int64_t> keys,
                   const Strings* strings);

}  // namespace profd::exporting
