#include "analysis/store/overview.h"

#include <fmt/format.h>

#include <array>
#include <span>

#include "analysis/store/fetch.h"
#include "export/shared_file.h"

namespace profd::analysis {
namespace {

enum class Kind : uint8_t { kText, kInt, kFloat };
struct Field {
  std::string_view name;
  std::string_view sql;
  Kind kind = Kind::kFloat;
};

// A list of the overview: one query. A load is a rank, also of those without a number. Shares are not known of all steps.
struct List {
  std::string_view name;
  std::string_view table;
  std::string_view where;  // besides that the rows count
  std::string_view tail;
  size_t most = kOverviewRows;
  std::span<const Field> fields;
};

constexpr std::string_view kStepsTable = "steps";

// Which rows of a run are asked for.
struct Rows {
  std::string all;
  std::string steps;  // of steps, those that `steps` of a rank lists: without times only where the rank has none with times
};

constexpr auto kRankFields = std::to_array<Field>({
    {"rank", "rank", Kind::kInt},
    {"steps", "count()", Kind::kInt},
    {"total_ms", "avg(if(has_times = 1, (end_ns - start_ns) / 1e6, computing_ms + uncovered_ms + free_ms) AS total)"},
    {"max_ms", "max(total)"},
    {"computing_ms", "avgIf(computing_ms, has_shares = 1) AS computing"},
    {"communication_ms", "avgIf(communication_ms, has_shares = 1)"},
    {"uncovered_communication_ms", "avgIf(uncovered_ms, has_shares = 1)"},
    {"free_ms", "avgIf(free_ms, has_shares = 1)"},
});
constexpr auto kStepFields = std::to_array<Field>({
    {"step", "step", Kind::kInt},
    {"ranks", "count()", Kind::kInt},
    {"mean_ms", "avg(if(has_times = 1, (end_ns - start_ns) / 1e6, computing_ms + uncovered_ms + free_ms) AS total)"},
    {"max_ms", "max(total)"},
    {"longest_rank", "argMax(rank, total)", Kind::kInt},
    {"computing_ms", "avgIf(computing_ms, has_shares = 1)"},
    {"max_computing_ms", "if(max(has_shares) = 1, max(computing_ms), NULL)"},
    {"slowest_rank", "if(max(has_shares) = 1, argMax(rank, computing_ms), NULL)", Kind::kInt},
});
constexpr auto kTypeFields = std::to_array<Field>({
    {"type", "type", Kind::kText},
    {"core", "core", Kind::kText},
    {"count", "sum(executions)", Kind::kInt},
    {"total_ms", "sum(total_ns) / 1e6 AS total"},
    {"min_ms", "min(min_ns) / 1e6"},
    {"mean_ms", "sum(total_ns) / sum(executions) / 1e6"},
    {"max_ms", "max(max_ns) / 1e6"},
});
constexpr auto kOperatorFields = std::to_array<Field>({
    {"name", "name", Kind::kText},
    {"type", "type", Kind::kText},
    {"core", "core", Kind::kText},
    {"ranks", "uniqExact(load)", Kind::kInt},
    {"count", "sum(executions)", Kind::kInt},
    {"total_ms", "sum(total_ns) / 1e6 AS total"},
    {"min_ms", "min(min_ns) / 1e6"},
    {"mean_ms", "sum(total_ns) / sum(executions) / 1e6"},
    {"max_ms", "max(max_ns) / 1e6"},
});
constexpr auto kCommunicationFields = std::to_array<Field>({
    {"group", "group_name", Kind::kText},
    {"type", "type", Kind::kText},
    {"count", "count()", Kind::kInt},
    {"elapse_ms", "sum(elapse_ms) AS elapse"},
    {"transit_ms", "sum(transit_ms)"},
    {"wait_ms", "sum(wait_ms)"},
    {"synchronization_ms", "sum(synchronization_ms)"},
    {"idle_ms", "sum(idle_ms)"},
});
// The slowest first.
constexpr auto kLinkFields = std::to_array<Field>({
    {"group", "group_name", Kind::kText},
    {"src", "src", Kind::kText},
    {"dst", "dst", Kind::kText},
    {"transport", "transport", Kind::kText},
    {"size_mb", "sum(size_mb)"},
    {"time_ms", "sum(time_ms)"},
    {"bandwidth_gb_s", "sum(size_mb) / sum(time_ms) AS bandwidth"},
});

constexpr auto kLists = std::to_array<List>({
    {"slow_ranks", kStepsTable, "", "GROUP BY load, rank ORDER BY computing DESC, rank, load", kOverviewRows, kRankFields},
    {"steps", kStepsTable, "", "GROUP BY step ORDER BY step", kOverviewSteps, kStepFields},
    {"operator_types", "operators", " AND executions > 0", "GROUP BY type, core ORDER BY total DESC, type, core", kOverviewRows, kTypeFields},
    {"operators", "operators", " AND executions > 0", "GROUP BY name, type, core ORDER BY total DESC, name, type, core", kOverviewRows, kOperatorFields},
    {"communication", "collectives", "", "GROUP BY group_name, type ORDER BY elapse DESC, group_name, type", kOverviewRows, kCommunicationFields},
    {"links", "links", " AND time_ms > 0 AND part = 0", "GROUP BY group_name, src, dst, transport ORDER BY bandwidth, group_name, src, dst", kOverviewRows, kLinkFields},
});

Json ValueOf(const StoreRow& row, size_t column, Kind kind) {
  if (row.IsNull(column)) return nullptr;
  if (kind == Kind::kText) return row.Text(column).empty() ? Json() : Json(row.Text(column));
  if (kind == Kind::kInt) return row.Int(column);
  return row.Float(column);
}

std::string SelectOf(std::span<const Field> fields) {
  std::string select;
  for (const Field& field : fields) select += fmt::format("{}{}", select.empty() ? "SELECT " : ", ", field.sql);
  return select;
}

Json ObjectOf(const StoreRow& row, std::span<const Field> fields) {
  Json json;
  for (size_t i = 0; i < fields.size(); ++i) json[std::string(fields[i].name)] = ValueOf(row, i, fields[i].kind);
  return json;
}

Status AskList(StoreServer* server, const List& list, const Rows& rows_of, Json* overview) {
  Json rows = Json::array();
  const std::string select = fmt::format("{} FROM {}.{} WHERE {}{} {} LIMIT {}", SelectOf(list.fields), server->database(), list.table,
                                         list.table == kStepsTable ? rows_of.steps : rows_of.all, list.where, list.tail, list.most);
  Status asked = server->Query(select, [&](const StoreRow& row) { rows.push_back(ObjectOf(row, list.fields)); });
  (*overview)[std::string(list.name)] = std::move(rows);
  return asked;
}

constexpr auto kTotalFields = std::to_array<Field>({
    {"ranks", "count()", Kind::kInt},
    {"executions", "sum(executions)", Kind::kInt},
    {"e2e_ms", "avgIf(e2e_ms, has_overall = 1)"},
    {"computing_ms", "avgIf(computing_ms, has_overall = 1)"},
    {"communication_ms", "avgIf(communication_ms, has_overall = 1)"},
    {"uncovered_communication_ms", "avgIf(uncovered_ms, has_overall = 1)"},
    {"free_ms", "avgIf(free_ms, has_overall = 1)"},
});

}  // namespace

Result<Json> StoreOverview(StoreServer* server, const std::string& run, const Progress& go_on) {
  Result<std::string> counted = RowsOfRanks(server, run);
  if (!counted.ok()) return counted.status();
  Rows rows{std::move(*counted), {}};
  rows.steps = fmt::format("{} AND (has_times = 1 OR step >= 0 AND load GLOBAL NOT IN (SELECT load FROM {}.totals WHERE run = {} AND steps > 0))", rows.all,
                           server->database(), Quoted(run));
  Json overview;
  overview["run"] = {{"name", run}, {"inputs", {fmt::format("{}/{}", server->database(), run)}}};
  // All that ran in all ranks, which shares are of.
  Json& all = overview["overall"];
  RETURN_IF_ERROR(server->Query(fmt::format("{} FROM {}.totals WHERE {}", SelectOf(kTotalFields), server->database(), rows.all),
                                [&all](const StoreRow& row) { all = ObjectOf(row, kTotalFields); }));
  if (!all.is_object() || all["ranks"] == 0 || all["ranks"].is_null()) {
    const auto runs = StoredRuns(server, 1);
    return NotFound(fmt::format("no run {} in {}{}", run, server->database(), runs.ok() && !runs->empty() ? "; the latest there: " + runs->front() : ""));
  }
  RETURN_IF_ERROR(server->Query(fmt::format("SELECT max(steps) FROM (SELECT count() AS steps FROM {}.{} WHERE {} GROUP BY load)", server->database(), kStepsTable,
                                            rows.steps),
                                [&all](const StoreRow& row) { all["steps"] = row.IsNull(0) ? 0 : row.Int(0); }));
  double all_ms = 0;
  RETURN_IF_ERROR(server->Query(fmt::format("SELECT sum(total_ns) / 1e6 FROM {}.operators WHERE {}", server->database(), rows.all),
                                [&all_ms](const StoreRow& row) { all_ms = row.Float(0); }));
  for (const List& list : kLists) {
    RETURN_IF_ERROR(exporting::IsInterrupted(go_on));
    RETURN_IF_ERROR(AskList(server, list, rows, &overview));
  }
  for (const char* name : {"operator_types", "operators"}) {
    for (Json& row : overview[name]) row["share"] = all_ms > 0 && row["total_ms"].is_number() ? row["total_ms"].get<double>() / all_ms : 0.0;
  }
  overview["problems"] = Json::array();
  RETURN_IF_ERROR(AskProblems(server, rows.all, [&overview](uint64_t, const Problem& each) {
    overview["problems"].push_back({{"where", each.where}, {"what", each.what}});
  }));
  return overview;
}

}  // namespace profd::analysis
