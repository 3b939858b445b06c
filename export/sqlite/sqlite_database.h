// The SQLite library, as far as it is needed here.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "base/status.h"

struct sqlite3;
struct sqlite3_stmt;

namespace profd::exporting {

using SqlCell = std::variant<std::monostate, int64_t, double, std::string>;

class SqliteDatabase {
 public:
  // Makes the file if it is not there. Nothing is synced and nothing is undone: for files that are
  // thrown away when something goes wrong.
  static Result<SqliteDatabase> Open(const std::string& path);

  Status Run(const std::string& sql);
  // All rows, in memory; the columns' names too if they are wanted.
  Result<std::vector<std::vector<SqlCell>>> Query(const std::string& sql,
                                                  std::vector<std::string>* names = nullptr);
  // "INSERT INTO t VALUES(?, ...)" once per row.
  Status Insert(std::string_view table, std::span<const std::vector<SqlCell>> rows);

 private:
  struct Close {
    void operator()(sqlite3* database) const;
  };
  struct Finalize {
    void operator()(sqlite3_stmt* statement) const;
  };
  using Statement = std::unique_ptr<sqlite3_stmt, Finalize>;
  explicit SqliteDatabase(sqlite3* database) : database_(database) {}
  Result<Statement> Prepare(const std::string& sql);
  Status Error(std::string_view what) const;

  std::unique_ptr<sqlite3, Close> database_;
};

}  // namespace profd::exporting
