// What is written of which rows: the vendor's tables with its columns, types and units
// (dump-format 3.4), and our own, PROFD_*, for what it has none for.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "export/table.h"

namespace profd::exporting {

enum class SqlType : uint8_t { kInteger, kNumeric, kReal };
std::string_view ToString(SqlType type);

// From the cell to the value.
enum class SqlValue : uint8_t {
  kDevice,
  kTime,
  kPlain,       // cell * factor
  kWhole,       // cell * factor without what is behind the point
  kKeyText,     // STRING_IDS id of the key's text
  kQosName,     // STRING_IDS id of "QoS <text>"
  kDieName,     // STRING_IDS id of "die 0", "D-DIE0"
  kCoreType,    // STRING_IDS id of AIC, AIV
  kUsage,       // busy share of a core in %
  kAicoreMhz,
};

struct SqlColumn {
  std::string name;
  SqlType type = SqlType::kInteger;
  SqlValue value = SqlValue::kPlain;
  int cell = -1;  // index into the rows' columns; -1 = none
  double factor = 1;
};

struct SqlTable {
  std::string name;
  TableId source = TableId::kHccs;
  bool vendor = false;
  bool samples = false;  // what profd_samples reads for these rows
  std::vector<SqlColumn> columns;
};

// Every table of rows.
std::vector<SqlTable> SqlRowTables();

// Tables of what is not a row; columns are INTEGER but for `value` of kPmuSummary, texts STRING_IDS ids.
enum class EventTable : uint8_t { kMstx, kSteps, kStepArgs, kGaps, kPmuSummary };
inline constexpr size_t kEventTables = 5;
struct EventTableSpec {
  std::string_view name;
  std::span<const std::string_view> columns;
  bool always;  // there also without rows
};
const EventTableSpec& EventTableOf(EventTable table);

// "rx_packets" as rxPackets.
std::string CamelCase(std::string_view name);

}  // namespace profd::exporting
