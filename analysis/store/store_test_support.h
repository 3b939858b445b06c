// A server that keeps what it is sent; shared by the tests of what is stored and of what is fetched.
#pragma once

#include <fmt/format.h>

#include <algorithm>
#include <string>
#include <utility>
#include <vector>

#include "analysis/store/server.h"
#include "analysis/store/tables.h"

namespace profd::analysis {

// Keeps what is sent, and answers counts as if all rows that were sent are there.
class FakeServer : public StoreServer {
 public:
  Result<std::string> Send(std::string_view statement, std::string_view rows) override {
    statements.emplace_back(statement);
    if (statement.starts_with("INSERT")) {
      if (fail_inserts_after >= 0 && inserts++ >= fail_inserts_after) return Unavailable(failure);
      sent.emplace_back(statement, rows);
      return std::string();
    }
    if (statement.find("version()") != std::string_view::npos) return Data("[[\"" + version + "\"]]");
    if (statement.find("system.columns") != std::string_view::npos) return Data(Columns());
    if (!no_table.empty() && statement.find("FROM db.loads") != std::string_view::npos && --shard_without_tables >= 0) return Unavailable(no_table);
    if (loads_of_before > 0 && statement.find("FROM db.loads") != std::string_view::npos) return Data(R"([["3", "5", 1, "7", 1]])");
    if (statement.find("system.tables") != std::string_view::npos) return Data(engine.empty() ? "[]" : "[[\"" + engine + "\"]]");
    if (statement.find("count()") != std::string_view::npos) return Data(Counts(statement));
    return Data("[]");
  }
  Result<std::string> SendToCluster(std::string_view statement, int wait_s) override {
    waits.push_back(wait_s);
    statements.emplace_back(statement);
    if (replica_is_away && wait_s > 0) return Unavailable("is executing longer than distributed_ddl_task_timeout (=5) seconds. There are 1 unfinished hosts");
    return std::string();
  }
  const std::string& database() const override { return database_; }
  void Pause(int) override { ++pauses; }

  size_t Changes() const { return static_cast<size_t>(std::ranges::count_if(statements, [](const std::string& each) { return each.starts_with("CREATE") || each.starts_with("ALTER"); })); }

  std::string RowsOf(const std::string& table) const {
    std::string rows;
    for (const auto& [statement, text] : sent) {
      if (statement == "INSERT INTO db." + table + " FORMAT TabSeparated") rows += text;
    }
    return rows;
  }

  std::vector<std::string> statements;
  std::vector<std::pair<std::string, std::string>> sent;
  std::string version = "18.16.1";
  std::string engine;
  std::string failure = "gone";
  int fail_inserts_after = -1;
  int inserts = 0;
  int pauses = 0;
  int64_t missing = 0;
  bool has_tables = false;
  std::string without;  // a column, of kernels
  std::vector<int> waits;
  bool replica_is_away = false;
  std::string no_table;
  int shard_without_tables = 0;
  int loads_of_before = 0;

 private:
  static std::string Data(const std::string& rows) {
    return R"({"meta": [{"name": "x", "type": "String"}], "data": )" + rows + R"(, "rows": 1, "statistics": {"elapsed": 0.5, "rows_read": 3, "bytes_read": 70}})";
  }
  std::string Columns() const {
    std::string rows;
    for (const StoreTable& table : StoreTables()) {
      std::vector<std::string_view> names(kHeadColumns.begin(), kHeadColumns.end());
      for (const StoreColumn& column : table.columns) names.push_back(column.name);
      for (const std::string_view name : names) {
        if (!has_tables || (table.name == "kernels" && name == without)) continue;
        for (const char* suffix : {"", "_local"}) rows += fmt::format("{}[\"{}{}\", \"{}\"]", rows.empty() ? "" : ", ", table.name, suffix, name);
      }
    }
    return "[" + rows + "]";
  }
  // Of the load that is asked for.
  std::string Counts(std::string_view asked) const {
    constexpr std::string_view kLoad = " load = ";
    const std::string_view from = asked.substr(asked.find(kLoad) + kLoad.size());
    const std::string load = fmt::format("\t{}\t", from.substr(0, from.find_first_not_of("0123456789")));
    std::string rows;
    for (const StoreTable& table : StoreTables()) {
      int64_t count = -missing;
      const std::string text = RowsOf(std::string(table.name));
      for (size_t at = text.find(load); at != std::string::npos; at = text.find(load, at + 1)) ++count;
      rows += fmt::format("{}[\"{}\", \"{}\"]", rows.empty() ? "[" : ", ", table.name, std::max<int64_t>(0, count));
    }
    return rows + "]";
  }
  std::string database_ = "db";
};

}  // namespace profd::analysis
