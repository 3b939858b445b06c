#include "export/sqlite/sql_schema.h"

#include <algorithm>
#include <map>
#include <optional>
#include <set>

#include <fmt/format.h>

#include "export/repaired_text.h"
#include "export/sqlite/sql_enums.h"

namespace profd::exporting {
namespace {

// A table of few rows; the definition without dumpId.
struct SmallTable {
  std::string_view name;
  std::string_view columns;
  std::vector<std::vector<SqlCell>> rows = {};

  // `dump`: dumpId, with several.
  void Add(std::vector<SqlCell> row, std::optional<int64_t> dump) {
    if (dump) row.emplace_back(*dump);
    rows.push_back(std::move(row));
  }
};

SqlCell OrNull(const std::string& text) { return text.empty() ? SqlCell() : SqlCell(text); }
SqlCell Count(uint64_t value) { return static_cast<int64_t>(value); }

struct Span {
  int64_t start_ns = 0;
  int64_t end_ns = 0;
};
Span SessionSpan(const DumpInfo& dump, int64_t last_ns) {
  const Place* place = dump.ClockPlace();
  if (place == nullptr) return {};
  Span span{place->clock.begin_us * 1000, place->clock.end_us * 1000};
  if (span.end_ns == 0) span.end_ns = std::max(last_ns, span.start_ns);
  return span;
}

void AddDevices(const DumpInfo& dump, std::optional<int64_t> number, SmallTable& npus, SmallTable& ranks) {
  auto add = [&](int64_t device, std::string_view chip) {
    npus.Add({device, std::string(chip)}, number);
    std::vector<int> of_device = dump.RanksOf(static_cast<int>(device));
    if (of_device.empty()) of_device.push_back(-1);
    for (int64_t rank : of_device) ranks.Add({rank, device}, number);
  };
  bool any = false;
  for (const Place& place : dump.places) {
    if (place.kind != Place::Kind::kDevice) continue;
    add(place.device, ChipName(place.chip));
    any = true;
  }
  if (!any) add(-1, ChipName(-1));
}

std::vector<SqlCell> DumpRow(const DumpInfo& dump, size_t number, const Span& span) {
  std::vector<SqlCell> row{static_cast<int64_t>(number), RepairedText(dump.name, dump.name.size()),
                           RepairedText(dump.path, dump.path.size()), dump.hostname, OrNull(dump.job_id)};
  row.push_back(dump.rank ? SqlCell(int64_t{*dump.rank}) : SqlCell());
  row.emplace_back(int64_t{dump.chip});
  row.emplace_back(span.start_ns);
  row.emplace_back(span.end_ns);
  if (dump.manifest) {
    row.emplace_back(std::string(ToString(dump.manifest->state)));
    row.push_back(OrNull(dump.manifest->session_id));
  } else {
    row.insert(row.end(), 2, SqlCell());
  }
  row.push_back(Count(dump.bytes));
  return row;
}

void AddChannels(const DumpInfo& dump, std::optional<int64_t> number, SmallTable& channels, SmallTable& losses) {
  if (!dump.manifest) return;
  for (const ManifestChannel& channel : dump.manifest->channels) {
    uint64_t lost = 0;
    for (const ManifestLoss& loss : channel.dropped) {
      lost += loss.records;
      losses.Add({int64_t{channel.device}, channel.collector, channel.file, std::string(ToString(loss.reason)),
                  Count(loss.records), Count(loss.bytes)},
                 number);
    }
    channels.Add({int64_t{channel.device}, channel.collector, int64_t{channel.channel}, channel.file, channel.state,
                  OrNull(channel.detail), channel.hz_asked, channel.hz_effective, Count(channel.records),
                  Count(channel.bytes), Count(lost), Count(channel.gap_count)},
                 number);
  }
}

std::vector<SmallTable> DumpTables(const ExportPlan& plan, std::span<const int64_t> last_ns) {
  std::vector<SmallTable> tables{
      {"SESSION_TIME_INFO", "startTimeNs INTEGER, endTimeNs INTEGER"},
      {"NPU_INFO", "id INTEGER, name TEXT"},
      {"RANK_DEVICE_MAP", "rankId INTEGER, deviceId INTEGER"},
      {"HOST_INFO", "hostUid TEXT, hostName TEXT"},
      {"PROFD_CHANNEL_ROWS",
       "deviceId INTEGER, collector TEXT, channel INTEGER, file TEXT, state TEXT, detail TEXT, hzAsked REAL, "
       "hzEffective REAL, records INTEGER, bytes INTEGER, lostRecords INTEGER, gaps INTEGER"},
      {"PROFD_LOSS_ROWS", "deviceId INTEGER, collector TEXT, file TEXT, reason TEXT, records INTEGER, bytes INTEGER"},
  };
  for (size_t i = 0; i < plan.dumps.size(); ++i) {
    const DumpInfo& dump = *plan.dumps[i];
    const Span span = SessionSpan(dump, last_ns[i]);
    const auto number = plan.dumps.size() > 1 ? std::optional(static_cast<int64_t>(i)) : std::nullopt;
    tables[0].Add({span.start_ns, span.end_ns}, number);
    AddDevices(dump, number, tables[1], tables[2]);
    tables[3].Add({std::string("0"), dump.hostname}, number);
    AddChannels(dump, number, tables[4], tables[5]);
  }
  return tables;
}

Status WriteTable(SqliteDatabase& database, const SmallTable& table, bool merged) {
  RETURN_IF_ERROR(database.Run(CreateSql(table.name, table.columns, merged)));
  return database.Insert(table.name, table.rows);
}

Status WriteStrings(SqliteDatabase& database, const Strings& strings) {
  SmallTable table{"STRING_IDS", "id INTEGER PRIMARY KEY, value TEXT"};
  RETURN_IF_ERROR(WriteTable(database, table, false));
  constexpr size_t kAtOnce = 4096;
  for (size_t i = 0; i < strings.size(); ++i) {
    auto id = static_cast<int64_t>(i);
    table.rows.push_back({id, std::string(strings.Text(id))});
    if (table.rows.size() < kAtOnce && i + 1 < strings.size()) continue;
    RETURN_IF_ERROR(database.Insert(table.name, table.rows));
    table.rows.clear();
  }
  return {};
}

Status WriteEnums(SqliteDatabase& database) {
  for (const EnumTable& entry : EnumTables()) {
    SmallTable table{entry.name, "id INTEGER PRIMARY KEY, name TEXT"};
    for (const EnumValue& value : entry.values) {
      table.rows.push_back({int64_t{value.id}, std::string(value.name)});
    }
    RETURN_IF_ERROR(WriteTable(database, table, false));
  }
  return {};
}

}  // namespace

std::string CreateSql(std::string_view name, std::string_view columns, bool merged) {
  return fmt::format("CREATE TABLE {} ({}{})", name, columns, merged ? ", dumpId INTEGER" : "");
}

std::string CreateSql(const SqlTable& table, bool merged) {
  std::string columns;
  for (const SqlColumn& column : table.columns) {
    fmt::format_to(std::back_inserter(columns), "{}{} {}", columns.empty() ? "" : ", ", column.name,
                   ToString(column.type));
  }
  return CreateSql(table.name, columns, merged);
}

std::string CreateSql(const EventTableSpec& table, bool merged) {
  std::string columns;
  for (std::string_view column : table.columns) {
    fmt::format_to(std::back_inserter(columns), "{}{} {}", columns.empty() ? "" : ", ", column,
                   column == "value" ? "NUMERIC" : "INTEGER");
  }
  return CreateSql(table.name, columns, merged);
}

namespace {

Status WriteRanks(SqliteDatabase& database, const ExportPlan& plan, const ProcessRanks& ranks) {
  SmallTable places{"PROFD_PLACES",
                    "dumpId INTEGER, deviceId INTEGER, rank INTEGER, PRIMARY KEY(dumpId, deviceId)"};
  SmallTable processes{"PROFD_PROCESSES",
                       "dumpId INTEGER, pid INTEGER, rank INTEGER, command TEXT, PRIMARY KEY(dumpId, pid)"};
  std::map<std::pair<int64_t, int64_t>, std::pair<std::optional<int>, std::string>> known;
  for (const auto& [key, rank] : ranks.ranks()) known[key].first = rank;
  auto cell = [](std::optional<int> rank) { return rank ? SqlCell(int64_t{*rank}) : SqlCell(); };
  for (size_t i = 0; i < plan.dumps.size(); ++i) {
    const DumpInfo& dump = *plan.dumps[i];
    const auto number = static_cast<int64_t>(i);
    std::set<int> devices = {-1};
    for (const Place& place : dump.places) devices.insert(place.device);
    for (int device : devices) {
      places.rows.push_back({number, int64_t{device}, cell(dump.RankOf(device))});
    }
    if (!dump.manifest) continue;
    for (const ManifestProcess& process : dump.manifest->processes) {
      auto& [rank, command] = known[{number, process.pid}];
      if (!rank) rank = process.rank;
      command = process.command;
    }
  }
  for (const auto& [key, process] : known) {
    processes.rows.push_back(
        {key.first, key.second, cell(process.first), OrNull(process.second)});
  }
  RETURN_IF_ERROR(WriteTable(database, places, false));
  return WriteTable(database, processes, false);
}

}  // namespace

Status WriteSmallTables(SqliteDatabase& database, const ExportPlan& plan,
                        std::span<const int64_t> last_ns, const ProcessRanks& ranks) {
  SmallTable meta{"META_DATA", "name TEXT, value TEXT"};
  for (const MetaValue& value : MetaData()) {
    meta.rows.push_back({std::string(value.name), std::string(value.value)});
  }
  RETURN_IF_ERROR(WriteTable(database, meta, false));
  RETURN_IF_ERROR(WriteEnums(database));
  RETURN_IF_ERROR(WriteStrings(database, *plan.strings));
  const bool merged = plan.dumps.size() > 1;
  for (const SmallTable& table : DumpTables(plan, last_ns)) {
    RETURN_IF_ERROR(WriteTable(database, table, merged));
  }
  SmallTable dumps{"PROFD_DUMPS",
                   "dumpId INTEGER PRIMARY KEY, name TEXT, path TEXT, node TEXT, job TEXT, "
                   "rank INTEGER, chip INTEGER, startNs INTEGER, endNs INTEGER, state TEXT, "
                   "session TEXT, bytes INTEGER"};
  for (size_t i = 0; i < plan.dumps.size(); ++i) {
    dumps.rows.push_back(DumpRow(*plan.dumps[i], i, SessionSpan(*plan.dumps[i], last_ns[i])));
  }
  RETURN_IF_ERROR(WriteTable(database, dumps, false));
  return WriteRanks(database, plan, ranks);
}

}  // namespace profd::exporting
