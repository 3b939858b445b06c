// What the library writes: definitions of tables and views, and the tables of few rows.
#pragma once

#include <cstdint>
#include <map>
#include <span>
#include <string>
#include <string_view>
#include <utility>

#include "base/mutex.h"
#include "base/status.h"
#include "export/format.h"
#include "export/sqlite/sql_tables.h"
#include "export/sqlite/sqlite_database.h"

namespace profd::exporting {

// What marks say of their processes. Thread-safe; bounded, as pids are untrusted.
class ProcessRanks {
 public:
  void Add(int64_t dump, int64_t pid, int rank) {
    constexpr size_t kMax = 65536;
    MutexLock lock(mutex_);
    if (ranks_.size() < kMax) ranks_[{dump, pid}] = rank;
  }
  // By dump and pid. When all have been added: without the lock.
  const std::map<std::pair<int64_t, int64_t>, int>& ranks() const UNCHECKED_LOCKING {
    return ranks_;
  }

 private:
  Mutex mutex_;
  std::map<std::pair<int64_t, int64_t>, int> ranks_ GUARDED_BY(mutex_);
};

// With several dumps every table of rows has a last column dumpId.
std::string CreateSql(std::string_view name, std::string_view columns, bool merged);
std::string CreateSql(const SqlTable& table, bool merged);
std::string CreateSql(const EventTableSpec& table, bool merged);

// profd_samples over the given tables, and the views of events.
std::string SamplesViewSql(std::span<const SqlTable* const> tables, bool merged);
std::string EventViewsSql(bool merged);
// Those of what training processes did, of the tables that are there.
std::string ActivityViewsSql(std::span<const SqlTable* const> tables, bool merged);

// META_DATA, ENUM_*, STRING_IDS, what is known of session, host and devices, and of the dumps.
// `last_ns`: timestamp of each dump's last row, for those that do not say when they ended.
Status WriteSmallTables(SqliteDatabase& database, const ExportPlan& plan,
                        std::span<const int64_t> last_ns, const ProcessRanks& ranks);

}  // namespace profd::exporting
