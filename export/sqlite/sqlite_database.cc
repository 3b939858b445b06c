#include "export/sqlite/sqlite_database.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sqlite3.h>

#include "base/fd.h"

namespace profd::exporting {
namespace {

void Bind(sqlite3_stmt* statement, int index, const SqlCell& cell) {
  if (const auto* number = std::get_if<int64_t>(&cell)) {
    sqlite3_bind_int64(statement, index, *number);
  } else if (const auto* real = std::get_if<double>(&cell)) {
    sqlite3_bind_double(statement, index, *real);
  } else if (const auto* text = std::get_if<std::string>(&cell)) {
    sqlite3_bind_text(statement, index, text->data(), static_cast<int>(text->size()), nullptr);
  } else {
    sqlite3_bind_null(statement, index);
  }
}

SqlCell Get(sqlite3_stmt* statement, int index) {
  switch (sqlite3_column_type(statement, index)) {
    case SQLITE_INTEGER:
      return int64_t{sqlite3_column_int64(statement, index)};
    case SQLITE_FLOAT:
      return sqlite3_column_double(statement, index);
    case SQLITE_TEXT: {
      const auto* text = reinterpret_cast<const char*>(sqlite3_column_text(statement, index));
      return std::string(text, static_cast<size_t>(sqlite3_column_bytes(statement, index)));
    }
    default:
      return {};
  }
}

}  // namespace

void SqliteDatabase::Close::operator()(sqlite3* database) const { sqlite3_close(database); }
void SqliteDatabase::Finalize::operator()(sqlite3_stmt* statement) const {
  sqlite3_finalize(statement);
}

Result<SqliteDatabase> SqliteDatabase::Open(const std::string& path) {
  // Made here, as SQLite would let everybody read it. It reports problems of the path itself.
  UniqueFd made(::open(path.c_str(), O_WRONLY | O_CREAT | O_CLOEXEC, 0640));
  made.Reset();
  sqlite3* raw = nullptr;
  int rc = sqlite3_open_v2(path.c_str(), &raw,
                           SQLITE_OPEN_READWRITE | SQLITE_OPEN_CREATE | SQLITE_OPEN_NOMUTEX, nullptr);
  if (raw == nullptr) return ResourceExhausted("no memory for a database");
  SqliteDatabase database(raw);
  if (rc != SQLITE_OK) return database.Error(path);
  Status status = database.Run("PRAGMA journal_mode=OFF; PRAGMA synchronous=OFF");
  if (!status.ok()) return status;
  return database;
}

Status SqliteDatabase::Error(std::string_view what) const {
  int code = sqlite3_errcode(database_.get());
  std::string message = fmt::format("{}: {}", what, sqlite3_errmsg(database_.get()));
  if (code == SQLITE_FULL) return ResourceExhausted(message);
  return Unavailable(message);
}

Status SqliteDatabase::Run(const std::string& sql) {
  if (sqlite3_exec(database_.get(), sql.c_str(), nullptr, nullptr, nullptr) == SQLITE_OK) return {};
  return Error("database");
}

Result<SqliteDatabase::Statement> SqliteDatabase::Prepare(const std::string& sql) {
  sqlite3_stmt* statement = nullptr;
  int rc = sqlite3_prepare_v2(database_.get(), sql.c_str(), static_cast<int>(sql.size()), &statement,
                              nullptr);
  if (rc != SQLITE_OK) return Error("database");
  return Statement(statement);
}

Result<std::vector<std::vector<SqlCell>>> SqliteDatabase::Query(
    const std::string& sql, std::vector<std::string>* names) {
  Result<Statement> statement = Prepare(sql);
  if (!statement.ok()) return statement.status();
  for (int i = 0; names != nullptr && i < sqlite3_column_count(statement->get()); ++i) {
    names->emplace_back(sqlite3_column_name(statement->get(), i));
  }
  std::vector<std::vector<SqlCell>> rows;
  int rc = SQLITE_ROW;
  while ((rc = sqlite3_step(statement->get())) == SQLITE_ROW) {
    std::vector<SqlCell>& row = rows.emplace_back();
    for (int i = 0; i < sqlite3_column_count(statement->get()); ++i) {
      row.push_back(Get(statement->get(), i));
    }
  }
  if (rc != SQLITE_DONE) return Error("database");
  return rows;
}

Status SqliteDatabase::Insert(std::string_view table, std::span<const std::vector<SqlCell>> rows) {
  if (rows.empty()) return {};
  std::string marks = "?";
  for (size_t i = 1; i < rows.front().size(); ++i) marks += ",?";
  Result<Statement> statement = Prepare(fmt::format("INSERT INTO {} VALUES({})", table, marks));
  if (!statement.ok()) return statement.status();
  for (const std::vector<SqlCell>& row : rows) {
    for (size_t i = 0; i < row.size(); ++i) Bind(statement->get(), static_cast<int>(i) + 1, row[i]);
    int rc = sqlite3_step(statement->get());
    sqlite3_reset(statement->get());
    if (rc != SQLITE_DONE) return Error(table);
  }
  return {};
}

}  // namespace profd::exporting
