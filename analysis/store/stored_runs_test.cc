// With a server: tests/e2e/test_clickhouse.py.
#include "analysis/store/stored_runs.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

namespace profd::analysis {
namespace {

class Server : public StoreServer {
 public:
  Result<std::string> Send(std::string_view statement, std::string_view) override {
    if (statement.starts_with("ALTER")) {
      changes.emplace_back(statement);
      return !failure.ok() && changes.size() > 2 ? Result<std::string>(failure) : Result<std::string>(std::string());
    }
    if (statement.find("FROM system.tables") != std::string_view::npos) {
      if (statement.find("SELECT engine") != std::string_view::npos) return Data(fmt::format(R"(["{}"])", engine));
      std::string rows;
      for (const StoreTable& table : StoreTables()) {
        if (table.name == "findings") continue;  // an earlier version had none
        rows += fmt::format(R"({}["{}"], ["{}_local"])", rows.empty() ? "" : ", ", table.name, table.name);
      }
      return Data(rows);
    }
    if (statement.find("state = 1") != std::string_view::npos) return Data(R"(["b", 2, 70])");
    if (statement.find("db.totals") != std::string_view::npos) return Data(R"(["gone", "30"], ["b", "20"])");
    if (statement.find("db.loads") != std::string_view::npos) return Data(R"(["a", "10"], ["b", "21"])");
    return std::string();
  }
  const std::string& database() const override { return database_; }
  void Pause(int) override {}

  std::string engine = "MergeTree";
  std::vector<std::string> changes;
  Status failure;

 private:
  static std::string Data(const std::string& rows) { return R"({"data": [)" + rows + "]}"; }
  std::string database_ = "db";
};

TEST(StoredRuns, ListsCompleteRunsAndRemainsOfOthers) {
  Server server;
  const auto runs = ListStoredRuns(&server);
  ASSERT_TRUE(runs.ok()) << runs.status().message();
  ASSERT_EQ(runs->size(), 3u);
  EXPECT_EQ(runs->at(0).name, "gone");
  EXPECT_EQ(runs->at(0).ranks, 0u);
  EXPECT_EQ(runs->at(1).name, "b");
  EXPECT_EQ(runs->at(1).loaded_ns, 21);
  EXPECT_EQ(runs->at(1).ranks, 2u);
  EXPECT_EQ(runs->at(1).rows, 70u);
  EXPECT_EQ(runs->at(2).name, "a");
}

TEST(StoredRuns, TheLoadsGoFirst) {
  Server server;
  RunRemover remover(&server, "");
  ASSERT_TRUE(remover.Prepare().ok());
  ASSERT_TRUE(remover.Remove("it's").ok());
  ASSERT_EQ(server.changes.size(), StoreTables().size() - 1);
  EXPECT_EQ(server.changes.front(), "ALTER TABLE db.loads DROP PARTITION 'it\\'s'");
  EXPECT_EQ(server.changes.back(), "ALTER TABLE db.totals DROP PARTITION 'it\\'s'");
}

TEST(StoredRuns, OnACluster) {
  Server server;
  EXPECT_EQ(RunRemover(&server, "c").Prepare().code(), StatusCode::kFailedPrecondition);
  server.engine = "Distributed";
  EXPECT_EQ(RunRemover(&server, "").Prepare().code(), StatusCode::kFailedPrecondition);
  RunRemover remover(&server, "c");
  ASSERT_TRUE(remover.Prepare().ok());
  ASSERT_TRUE(remover.Remove("r").ok());
  EXPECT_EQ(server.changes.front(), "ALTER TABLE db.loads_local ON CLUSTER `c` DROP PARTITION 'r'");
}

TEST(StoredRuns, RefusalsSayWhatToDo) {
  Server server;
  RunRemover remover(&server, "");
  ASSERT_TRUE(remover.Prepare().ok());
  server.failure = Status(StatusCode::kPermissionDenied, "Cannot execute query in readonly mode");
  Status status = remover.Remove("r");
  EXPECT_EQ(status.code(), StatusCode::kPermissionDenied);
  EXPECT_EQ(status.message(), "the user needs the right to ALTER the tables of db: Cannot execute query in readonly mode");
  server.failure = FailedPrecondition("Table or Partition in db.kernels was not dropped.");
  status = remover.Remove("r");
  EXPECT_NE(status.message().find("max_partition_size_to_drop"), std::string::npos) << status.message();
}

}  // namespace
}  // namespace profd::analysis
