// The views that the library writes: what its tables of rows say, under the names of generic readers.
#include <algorithm>

#include <fmt/format.h>

#include "export/sqlite/sql_schema.h"

namespace profd::exporting {
namespace {

const SqlColumn* FindCell(const SqlTable& table, size_t cell) {
  for (const SqlColumn& column : table.columns) {
    if (column.cell == static_cast<int>(cell) && column.value != SqlValue::kUsage) return &column;
  }
  return nullptr;
}

std::string TextOf(std::string_view column) {
  return fmt::format("(SELECT value FROM STRING_IDS WHERE id = t.{})", column);
}

// Of "D-DIE0" or "die 0" the number, which is the label elsewhere.
std::string DieNumberSql(std::string_view column) {
  return fmt::format(
      "(SELECT CASE value WHEN 'D-DIE0' THEN '0' WHEN 'U-DIE0' THEN '2' WHEN 'U-DIE1' THEN '3' ELSE substr(value, 5) END "
      "FROM STRING_IDS WHERE id = t.{})",
      column);
}

// "'hbm=' || t.hbmId || ',' || 'direction=' || (SELECT ...)", quoted fixed labels behind.
std::string LabelsSql(const SqlTable& table, std::string_view fixed) {
  const TableSpec& rows = TableOf(table.source);
  std::string sql;
  for (size_t i = 0; i < KeyCount(rows); ++i) {
    const SqlColumn* column = FindCell(table, i);
    if (column == nullptr) continue;
    const Column& key = rows.columns[i];
    bool text = column->value != SqlValue::kPlain || key.type == ColumnType::kName;
    std::string value = text ? TextOf(column->name) : fmt::format("t.{}", column->name);
    if (column->value == SqlValue::kQosName) value = fmt::format("substr({}, 5)", value);
    if (column->value == SqlValue::kDieName) value = DieNumberSql(column->name);
    const std::string_view comma = i + 1 < KeyCount(rows) || !fixed.empty() ? "," : "";
    std::string label = fmt::format("'{}=' || {}", key.name, value);
    if (!comma.empty()) label += " || ','";
    if (!text && key.values.empty()) {
      const std::string none = key.none.empty() ? "" : fmt::format("{}={}{}", key.name, key.none, comma);
      label = fmt::format("CASE {} WHEN -1 THEN '{}' ELSE {} END", value, none, label);
    }
    fmt::format_to(std::back_inserter(sql), "{}{}", sql.empty() ? "" : " || ", label);
  }
  if (sql.empty()) return fmt::format("'{}'", fixed);
  return fixed.empty() ? sql : fmt::format("{} || '{}'", sql, fixed);
}

// The metric's name, quoted or by the row's die.
std::string MetricSql(const SqlTable& table, const Column& column) {
  std::string name = fmt::format("'{}'", column.metric);
  const int die = ColumnIndex(TableOf(table.source), "die");
  const SqlColumn* cell = die < 0 ? nullptr : FindCell(table, static_cast<size_t>(die));
  if (column.metric_of_die.empty() || cell == nullptr) return name;
  return fmt::format("CASE t.{} WHEN -1 THEN {} ELSE '{}' END", cell->name, name, column.metric_of_die);
}

// The metric's value; empty if the table does not have it.
std::string ValueSql(const SqlTable& table, size_t cell) {
  const Column& rows = TableOf(table.source).columns[cell];
  if (rows.name == "rx_utilization_ratio") return "t.rxByteRate * 8.0 / t.bandwidth";
  if (rows.name == "tx_utilization_ratio") return "t.txByteRate * 8.0 / t.bandwidth";
  // The vendor's table has nothing more exact.
  if (rows.name == "exact_hit_ratio") return "t.hitRate / 100.0";
  const SqlColumn* column = FindCell(table, cell);
  if (column == nullptr) return {};
  double factor = rows.scale / column->factor;
  return factor == 1 ? fmt::format("t.{}", column->name)
                     : fmt::format("t.{} * {:.17g}", column->name, factor);
}

// Which rank a device (-1: the host) and a process is of.
constexpr std::string_view kPlaceRank =
    " LEFT JOIN PROFD_PLACES p ON p.dumpId = d.dumpId AND p.deviceId = {}";
constexpr std::string_view kProcessRank =
    " LEFT JOIN PROFD_PROCESSES q ON q.dumpId = d.dumpId AND q.pid = {}";

std::string JoinSql(std::string_view table, bool merged) {
  return fmt::format("FROM {} t JOIN PROFD_DUMPS d{}", table,
                     merged ? " ON d.dumpId = t.dumpId" : "");
}

std::string ArmSql(const SqlTable& table, std::string_view metric, std::string_view labels,
                   std::string_view value, bool merged) {
  bool device = std::ranges::find(table.columns, SqlValue::kDevice, &SqlColumn::value) !=
                table.columns.end();
  const std::string_view id = device ? "t.deviceId" : "-1";
  // Always a double: an integer here would be divided as one.
  return fmt::format(
      "SELECT t.timestampNs, d.node, d.job, coalesce(p.rank, d.rank), {}, {}, {}, CAST({} AS REAL) {}{}",
      id, metric, labels, value, JoinSql(table.name, merged), fmt::format(kPlaceRank, id));
}

}  // namespace

std::string SamplesViewSql(std::span<const SqlTable* const> tables, bool merged) {
  std::string sql =
      "CREATE VIEW profd_samples(time_ns, node, job, rank, device, metric, labels, value) AS\n";
  bool any = false;
  for (const SqlTable* table : tables) {
    if (!table->samples) continue;
    const TableSpec& rows = TableOf(table->source);
    auto add = [&](const std::string& arm) {
      if (any) sql += "\nUNION ALL ";
      sql += arm;
      any = true;
    };
    if (table->source == TableId::kSample) {
      add(ArmSql(*table, TextOf("metric"), TextOf("labels"), "t.value", merged));
      continue;
    }
    for (size_t i = 0; i < rows.columns.size(); ++i) {
      if (rows.columns[i].metric.empty()) continue;
      std::string value = ValueSql(*table, i);
      if (value.empty()) continue;
      add(ArmSql(*table, MetricSql(*table, rows.columns[i]),
                 LabelsSql(*table, LabelsOf(rows, rows.columns[i])), value, merged));
    }
  }
  if (!any) sql += "SELECT NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL WHERE 0";
  return sql;
}

// PROFD_STEP_ARGS by step: a row for what is there once, and one for each all-reduce.
std::string StepPartViewsSql(bool merged) {
  const std::string_view key = merged ? "dumpId, startNs, deviceId, step" : "startNs, deviceId, step";
  const std::string named = fmt::format(
      "named AS (SELECT a.rowid AS number, {}a.startNs, a.deviceId, a.step, s.value AS name, a.value AS ns "
      "FROM PROFD_STEP_ARGS a JOIN STRING_IDS s ON s.id = a.name)",
      merged ? "a.dumpId, " : "");
  const std::string rank = fmt::format(kPlaceRank, "t.deviceId");
  std::string sql = fmt::format(
      "CREATE VIEW profd_step_trace(start_ns, end_ns, node, job, rank, device, kind, step, fp_start_ns, bp_end_ns, "
      "data_aug_ns, tail_ns, all_reduces) AS WITH {0}, "
      "parts AS (SELECT {1}, max(CASE name WHEN 'FP Start' THEN ns END) AS fp, "
      "max(CASE name WHEN 'BP End' THEN ns END) AS bp, max(CASE name WHEN 'Data Aug Bound' THEN ns END) AS aug, "
      "sum(name = 'Reduce Start') AS reduces FROM named GROUP BY {1}) "
      "SELECT t.startNs, t.endNs, d.node, d.job, coalesce(p.rank, d.rank), t.deviceId, {2}, t.step, t.startNs + a.fp, "
      "t.startNs + a.bp, a.aug, t.endNs - t.startNs - a.bp, coalesce(a.reduces, 0) {3} LEFT JOIN parts a USING ({1}){4} "
      "WHERE t.deviceId >= 0;\n",
      named, key, TextOf("kind"), JoinSql("PROFD_STEP_ROWS", merged), rank);
  // The k-th start of a step belongs to its k-th end.
  sql += fmt::format(
      "CREATE VIEW profd_step_reduces(start_ns, end_ns, node, job, rank, device, step, step_start_ns, number) AS WITH {0}, "
      "edges AS (SELECT *, row_number() OVER (PARTITION BY {1}, name ORDER BY number) AS k FROM named "
      "WHERE name IN ('Reduce Start', 'Reduce End')) "
      "SELECT t.startNs + t.ns, t.startNs + a.ns, d.node, d.job, coalesce(p.rank, d.rank), t.deviceId, t.step, t.startNs, "
      "t.k - 1 {2} JOIN (SELECT * FROM edges WHERE name = 'Reduce End') a USING ({1}, k){3} WHERE t.name = 'Reduce Start';\n",
      named, key, JoinSql("edges", merged), rank);
  return sql;
}

std::string EventViewsSql(bool merged) {
  const std::string of_device = fmt::format(kPlaceRank, "t.deviceId");
  auto view = [&](std::string_view name, std::string_view columns, std::string_view table,
                  std::string_view values, const std::string& joins) {
    return fmt::format("CREATE VIEW {}({}) AS SELECT {} {}{};\n", name, columns, values,
                       JoinSql(table, merged), joins);
  };
  std::string sql = view(
      "profd_steps",
      "start_ns, end_ns, node, job, rank, device, kind, name, step, pid, process, partial",
      "PROFD_STEP_ROWS",
      fmt::format("t.startNs, t.endNs, d.node, d.job, coalesce(q.rank, p.rank, d.rank), "
                  "t.deviceId, {}, {}, t.step, t.pid, q.command, t.partial",
                  TextOf("kind"), TextOf("name")),
      of_device + fmt::format(kProcessRank, "t.pid"));
  sql += StepPartViewsSql(merged);
  sql += view("profd_marks",
              "start_ns, end_ns, node, job, rank, pid, tid, name, process, partial", "MSTX_EVENTS",
              fmt::format("t.startNs, t.endNs, d.node, d.job, coalesce(q.rank, p.rank, d.rank), "
                          "t.globalTid >> 32, t.globalTid & 4294967295, {0}, q.command, "
                          "{0} LIKE '% (partial)'",
                          TextOf("message")),
              fmt::format(kPlaceRank, "-1") + fmt::format(kProcessRank, "t.globalTid >> 32"));
  sql += view("profd_gaps", "start_ns, end_ns, node, job, rank, device, name, records",
              "PROFD_GAP_ROWS",
              fmt::format("t.startNs, t.endNs, d.node, d.job, coalesce(p.rank, d.rank), "
                          "t.deviceId, {}, t.records",
                          TextOf("name")),
              of_device);
  sql += view("profd_losses", "node, job, rank, device, collector, file, reason, records, bytes",
              "PROFD_LOSS_ROWS",
              "d.node, d.job, coalesce(p.rank, d.rank), t.deviceId, t.collector, t.file, t.reason, "
              "t.records, t.bytes",
              of_device);
  sql += view("profd_channels",
              "node, job, rank, device, collector, file, state, hz, records, bytes, lost_records, gaps",
              "PROFD_CHANNEL_ROWS",
              "d.node, d.job, coalesce(p.rank, d.rank), t.deviceId, t.collector, t.file, t.state, "
              "t.hzEffective, t.records, t.bytes, t.lostRecords, t.gaps",
              of_device);
  // The q-th percentile is the value at rank ceil(q n / 100), as in `profctl show` and the CSV.
  sql +=
      "CREATE VIEW profd_durations(node, job, rank, device, kind, name, count, mean_ns, p50_ns, p99_ns, "
      "max_ns) AS WITH spans AS ("
      "SELECT node, job, rank, device, kind, '' AS name, end_ns - start_ns AS ns FROM profd_steps "
      "WHERE NOT partial UNION ALL "
      "SELECT node, job, rank, -1, 'range', name, end_ns - start_ns FROM profd_marks "
      "WHERE end_ns > start_ns AND NOT partial), "
      "ranked AS (SELECT *, row_number() OVER (PARTITION BY node, job, rank, device, kind, name "
      "ORDER BY ns) AS place, count(*) OVER (PARTITION BY node, job, rank, device, kind, name) AS n "
      "FROM spans) "
      "SELECT node, job, rank, device, kind, name, count(*), avg(ns), "
      "max(CASE WHEN place = (n * 50 + 99) / 100 THEN ns END), "
      "max(CASE WHEN place = (n * 99 + 99) / 100 THEN ns END), max(ns) "
      "FROM ranked GROUP BY node, job, rank, device, kind, name;\n";
  return sql;
}

std::string ActivityViewsSql(std::span<const SqlTable* const> tables, bool merged) {
  struct View {
    TableId table;
    std::string_view name;
    std::string_view columns;  // after start_ns, end_ns, node, job, rank, device, pid
    std::string_view values;   // {name}: the text of the column
  };
  static constexpr View kViews[] = {
      {TableId::kKernel, "profd_kernels", "stream, name, type, thread, correlation",
       "t.stream, {name}, {type}, t.thread, t.correlation"},
      {TableId::kCommunication, "profd_communication",
       "stream, name, communicator, algorithm, count, data_type, bandwidth, correlation",
       "t.stream, {name}, {communicator}, {algorithm}, t.count, t.dataType, t.bandwidth, t.correlation"},
      {TableId::kApi, "profd_api", "thread, level, name, correlation", "t.thread, {level}, {name}, t.correlation"},
      {TableId::kMarker, "profd_markers", "thread, stream, source, kind, id, name, domain",
       "t.thread, t.stream, {source}, {kind}, t.id, {name}, {domain}"},
      {TableId::kMemory, "profd_memory", "stream, operation, bytes, address, is_async, detail, correlation",
       "t.stream, {operation}, t.bytes, t.address, t.isAsync, t.detail, t.correlation"},
  };
  std::string sql;
  for (const View& view : kViews) {
    auto filled = std::ranges::find(tables, view.table, &SqlTable::source);
    fmt::format_to(std::back_inserter(sql),
                   "CREATE VIEW {}(start_ns, end_ns, node, job, rank, device, pid, {}) AS SELECT ", view.name,
                   view.columns);
    if (filled == tables.end()) {
      // Queries work on a dump without such records, too.
      sql += "NULL, NULL, NULL, NULL, NULL, NULL, NULL";
      for (auto n = std::ranges::count(view.columns, ','); n >= 0; --n) sql += ", NULL";
      sql += " WHERE 0;\n";
      continue;
    }
    std::string values;
    for (std::string_view rest = view.values; !rest.empty();) {
      const size_t open = std::min(rest.find('{'), rest.size());
      values += rest.substr(0, open);
      rest.remove_prefix(open);
      if (rest.empty()) break;
      const size_t close = rest.find('}');
      values += TextOf(rest.substr(1, close - 1));
      rest.remove_prefix(close + 1);
    }
    const bool instants = view.table == TableId::kMarker;
    fmt::format_to(std::back_inserter(sql),
                   "t.timestampNs, t.timestampNs{}, d.node, d.job, coalesce(nullif(t.rank, -1), q.rank, d.rank), "
                   "t.deviceId, t.pid, {} {}{};\n",
                   instants ? "" : " + t.duration", values, JoinSql((*filled)->name, merged),
                   fmt::format(kProcessRank, "t.pid"));
  }
  return sql;
}

}  // namespace profd::exporting
