// What tests of readers share.
#pragma once

#include <gtest/gtest.h>
#include <sqlite3.h>

#include <string>
#include <utility>
#include <vector>

#include "analysis/run.h"

namespace profd::analysis {

// Of what can be read.
inline Run Loaded(const std::string& path) {
  Result<Run> run = LoadRun({path}, {}, {});
  EXPECT_TRUE(run.ok()) << run.status().ToString();
  return run.ok() ? std::move(*run) : Run();
}

inline std::vector<std::string> TextsOf(const std::vector<Problem>& problems) {
  std::vector<std::string> texts;
  for (const Problem& each : problems) texts.push_back(each.what);
  return texts;
}

// In a database that is made where there is none.
inline void RunSql(const std::string& file, const std::string& sql) {
  sqlite3* database = nullptr;
  EXPECT_EQ(sqlite3_open(file.c_str(), &database), SQLITE_OK);
  EXPECT_EQ(sqlite3_exec(database, sql.c_str(), nullptr, nullptr, nullptr), SQLITE_OK) << sqlite3_errmsg(database);
  sqlite3_close(database);
}

}  // namespace profd::analysis
