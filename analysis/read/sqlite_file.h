// An SQLite file that is read only; what is in it is not trusted.
#pragma once

#include <fmt/format.h>
#include <sqlite3.h>

#include <cmath>
#include <cstdint>
#include <filesystem>
#include <limits>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <system_error>
#include <vector>

#include "analysis/run.h"
#include "analysis/times.h"
#include "base/count_text.h"
#include "base/status.h"
#include "base/text.h"

namespace profd::analysis {

// Condition on a row that has a start, and an end not before it. Older writers have texts as times; those that are no
// numbers would count as 0.
inline std::string IsTimed(std::string_view table = "") {
  return fmt::format("({0}startNs = CAST({0}startNs AS NUMERIC) AND {0}endNs = CAST({0}endNs AS NUMERIC) AND "
                     "CAST({0}endNs AS NUMERIC) >= CAST({0}startNs AS NUMERIC))", table);
}

// Its columns by number, from 0.
class Row {
 public:
  explicit Row(sqlite3_stmt* statement) : statement_(statement) {}
  bool IsNull(int column) const { return sqlite3_column_type(statement_, column) == SQLITE_NULL; }
  int64_t Int(int column) const { return sqlite3_column_int64(statement_, column); }
  // Of a time in ns.
  int64_t Time(int column) const { return BoundedTime(Int(column)); }
  // What is not a finite number is 0.
  double Real(int column) const {
    const double value = sqlite3_column_double(statement_, column);
    return std::isfinite(value) ? value : 0;
  }
  // None: not a number. A text that is one, as a column without a type keeps it, counts.
  std::optional<double> Number(int column) const {
    const int type = sqlite3_column_type(statement_, column);
    double number = 0;
    if (type == SQLITE_INTEGER || type == SQLITE_FLOAT) {
      number = sqlite3_column_double(statement_, column);
    } else if (type != SQLITE_TEXT || !ParseNumber(Text(column), &number)) {
      return std::nullopt;
    }
    return std::isfinite(number) ? std::optional(number) : std::nullopt;
  }
  std::string_view Text(int column) const {
    const auto* text = reinterpret_cast<const char*>(sqlite3_column_text(statement_, column));
    return text == nullptr ? std::string_view()
                           : std::string_view(text, static_cast<size_t>(sqlite3_column_bytes(statement_, column)));
  }

 private:
  sqlite3_stmt* statement_;
};

// Of columns that have a number or nothing; what else is there counts as left out.
class CheckedNumbers {
 public:
  std::optional<double> Of(std::string_view table, const Row& row, int column, double least = std::numeric_limits<double>::lowest(),
                           double most = std::numeric_limits<double>::max()) {
    const std::optional<double> number = row.Number(column);
    if (number && *number >= least && *number <= most) return number;
    if (!row.IsNull(column)) ++left_out_[table];
    return std::nullopt;
  }
  // As problems of their tables.
  std::vector<std::string> LeftOut() const {
    std::vector<std::string> texts;
    for (const auto& [table, values] : left_out_) {
      texts.push_back(fmt::format("{}: {}: left out", table, CountText(values, "value makes no sense", "values make no sense")));
    }
    return texts;
  }

 private:
  std::map<std::string_view, uint64_t> left_out_;  // by table, whose name outlives it
};

class Database {
 public:
  // An error: it is empty, or SQLite cannot read which tables it has. `progress_or_null`, which outlives this, ends
  // statements.
  static Result<Database> Open(const std::filesystem::path& file, const Progress* progress_or_null) {
    // SQLite takes it for a database without tables.
    std::error_code error;
    if (std::filesystem::is_empty(file, error)) return InvalidArgument("the file is empty");
    sqlite3* opened = nullptr;
    const int code = sqlite3_open_v2(file.c_str(), &opened, SQLITE_OPEN_READONLY, nullptr);
    Database database(opened);
    if (code != SQLITE_OK) return InvalidArgument(sqlite3_errmsg(opened));
    sqlite3_db_config(opened, SQLITE_DBCONFIG_DEFENSIVE, 1, nullptr);
    sqlite3_db_config(opened, SQLITE_DBCONFIG_TRUSTED_SCHEMA, 0, nullptr);
    sqlite3_db_config(opened, SQLITE_DBCONFIG_ENABLE_VIEW, 0, nullptr);
    // A column may be generated: one value of its default limit, a gigabyte, takes seconds in each row.
    sqlite3_limit(opened, SQLITE_LIMIT_LENGTH, kMostBytes);
    if (progress_or_null != nullptr && *progress_or_null) {
      constexpr auto kStop = [](void* progress) { return (*static_cast<const Progress*>(progress))() ? 0 : 1; };
      sqlite3_progress_handler(opened, kInstructionsBetweenLooks, kStop, const_cast<Progress*>(progress_or_null));
    }
    // Nothing is read before the first statement: a file that is no database, or cut, would look like one without tables.
    if (Status status = database.Each("SELECT count(*) FROM sqlite_master", [](const Row&) {}); !status.ok()) return status;
    return database;
  }

  bool Has(std::string_view table) const {
    bool has = false;
    Each(fmt::format("SELECT 1 FROM sqlite_master WHERE type = 'table' AND name = '{}'", table),
         [&has](const Row&) { has = true; })
        .Ignore();
    return has;
  }

  bool HasColumn(std::string_view table, std::string_view column) const {
    bool has = false;
    Each(fmt::format("SELECT 1 FROM pragma_table_info('{}') WHERE name = '{}'", table, column), [&has](const Row&) { has = true; }).Ignore();
    return has;
  }

  template <class Take>
  Status Each(const std::string& sql, const Take& take) const {
    sqlite3_stmt* prepared = nullptr;
    if (sqlite3_prepare_v2(database_.get(), sql.c_str(), -1, &prepared, nullptr) != SQLITE_OK) return Error();
    const std::unique_ptr<sqlite3_stmt, Finalize> statement(prepared);
    const Row row(prepared);
    int code = SQLITE_ROW;
    while ((code = sqlite3_step(prepared)) == SQLITE_ROW) take(row);
    return code == SQLITE_DONE ? Status::Ok() : Error();
  }

  // Of tables with this column no other rows are seen from now on.
  Status ShowOnly(std::string_view column, const std::vector<int64_t>& values) const {
    std::vector<std::string> tables;
    Status status = Each(fmt::format("SELECT replace(m.name, '\"', '\"\"') FROM sqlite_master m, pragma_table_info(m.name) p "
                                     "WHERE m.type = 'table' AND p.name = '{}'", column),
                         [&tables](const Row& row) { tables.emplace_back(row.Text(0)); });
    for (const std::string& table : tables) {
      if (!status.ok()) break;
      status = Each(fmt::format("CREATE TEMP VIEW \"{0}\" AS SELECT * FROM main.\"{0}\" WHERE {1} IN ({2})", table, column, fmt::join(values, ", ")),
                    [](const Row&) {});
    }
    return status;
  }

 private:
  static constexpr int kMostBytes = 16 << 20;  // of a value, and of a row
  static constexpr int kInstructionsBetweenLooks = 1000;
  struct Close {
    void operator()(sqlite3* database) const { sqlite3_close(database); }
  };
  struct Finalize {
    void operator()(sqlite3_stmt* statement) const { sqlite3_finalize(statement); }
  };
  explicit Database(sqlite3* opened) : database_(opened) {}
  Status Error() const {
    if (sqlite3_errcode(database_.get()) == SQLITE_TOOBIG) return InvalidArgument(fmt::format("a value or a row is larger than {} MiB", kMostBytes >> 20));
    return InvalidArgument(sqlite3_errmsg(database_.get()));
  }
  std::unique_ptr<sqlite3, Close> database_;
};

// The rank of a process of the rows `t` of a table, NULL where it is not known. A database of several dumps may have several
// processes of one number.
inline std::string RankOfProcess(const Database& database, std::string_view table, std::string_view pid) {
  if (!database.Has("PROFD_PROCESSES")) return "NULL";
  return fmt::format("(SELECT rank FROM PROFD_PROCESSES q WHERE q.pid = {}{})", pid,
                     database.HasColumn(table, "dumpId") ? " AND q.dumpId = t.dumpId" : "");
}

}  // namespace profd::analysis
