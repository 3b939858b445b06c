// Tables, rows and loads without a server; with one: tests/e2e/test_clickhouse.py.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <map>

#include "analysis/store/fetch.h"
#include "analysis/store/load.h"
#include "analysis/store/overview.h"
#include "analysis/store/pipeline_json.h"
#include "analysis/store/rows.h"
#include "analysis/store/tables.h"

namespace profd::analysis {
namespace {

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
    if (statement.find("system.tables") != std::string_view::npos) return Data(engine.empty() ? "[]" : "[[\"" + engine + "\"]]");
    if (statement.find("count()") != std::string_view::npos) return Data(Counts());
    return Data("[]");
  }
  const std::string& database() const override { return database_; }
  void Pause(int) override { ++pauses; }

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

 private:
  static std::string Data(const std::string& rows) {
    return R"({"meta": [{"name": "x", "type": "String"}], "data": )" + rows + R"(, "rows": 1, "statistics": {"elapsed": 0.5, "rows_read": 3, "bytes_read": 70}})";
  }
  std::string Counts() const {
    std::string rows;
    for (const StoreTable& table : StoreTables()) {
      const std::string text = RowsOf(std::string(table.name));
      rows += (rows.empty() ? "[[\"" : ", [\"") + std::string(table.name) + "\", \"" + std::to_string(std::max<int64_t>(0, std::ranges::count(text, '\n') - missing)) + "\"]";
    }
    return rows + "]";
  }
  std::string database_ = "db";
};

Run SmallRun() {
  Run run;
  auto rank = std::make_unique<Rank>();
  rank->rank = 3;
  const int32_t op = rank->OperatorOf(rank->Text("a\tb\n\\c"), rank->Text("Type"), kNoText);
  rank->executions.push_back({1000, 3000, op, rank->LaneOf("Ascend Hardware", "Stream 1")});
  run.ranks.push_back(std::move(rank));
  return run;
}

class StoreTest : public ::testing::Test {
 protected:
  StoreLoader Loader(const std::string& cluster = "") { return {&server_, {"run 1", cluster, &clock_, {}}}; }
  FakeServer server_;
  SystemClock clock_;
};

TEST(StoreText, RowsAreEscaped) {
  std::string out;
  RowText(&out).Text("a\tb\n\\c").Int(-5).FloatOrNull(std::nullopt).Float(0.1).Texts({"it's", "x"}).Floats({1, 2.5}).Ints(std::vector<uint32_t>{}).End();
  EXPECT_EQ(out, "a\\tb\\n\\\\c\t-5\t\\N\t0.1\t['it\\'s','x']\t[1,2.5]\t[]\n");
  EXPECT_EQ(Quoted("it's \\"), "'it\\'s \\\\'");
}

TEST(StoreText, Versions) {
  EXPECT_EQ(VersionOf("18.16.1"), std::pair(18, 16));
  EXPECT_EQ(VersionOf("24.8.1.1"), std::pair(24, 8));
  EXPECT_FALSE(VersionOf("PostgreSQL"));
}

TEST(StoreTables, CodecsWhereTheServerHasThem) {
  const auto text = [](const StoreLayout& layout) {
    std::string all;
    for (const std::string& each : CreateStatements(layout)) all += each + "\n";
    return all;
  };
  const std::string old = text({"db", "", 18});
  EXPECT_EQ(old.find("CODEC"), std::string::npos);
  EXPECT_NE(old.find("CREATE TABLE IF NOT EXISTS db.kernels (run String, rank Int32, load UInt64, at UInt32, start_ns Int64"), std::string::npos) << old;
  EXPECT_NE(old.find("ENGINE = MergeTree PARTITION BY run ORDER BY (run, rank, load, start_ns)"), std::string::npos);
  EXPECT_NE(text({"db", "", 24}).find("start_ns Int64 CODEC(Delta, ZSTD(1))"), std::string::npos);
  const std::string cluster = text({"db", "c", 18});
  EXPECT_NE(cluster.find("ReplicatedMergeTree('/clickhouse/tables/{shard}/db/kernels', '{replica}')"), std::string::npos) << cluster;
  EXPECT_NE(cluster.find("CREATE TABLE IF NOT EXISTS db.kernels ON CLUSTER `c` AS db.kernels_local ENGINE = Distributed(`c`, db, kernels_local, cityHash64(run, rank))"),
            std::string::npos);
}

TEST_F(StoreTest, TheRowThatCommitsIsTheLast) {
  StoreLoader loader = Loader();
  ASSERT_TRUE(loader.Prepare().ok());
  std::vector<RankLoad> done;
  ASSERT_TRUE(loader.Load(SmallRun(), 7, &done).ok());
  ASSERT_EQ(done.size(), 1u);
  EXPECT_EQ(done[0].who, "3");
  EXPECT_EQ(server_.sent.front().first, "INSERT INTO db.loads FORMAT TabSeparated");
  EXPECT_NE(server_.sent.front().second.find("\t3\t0\t"), std::string::npos) << server_.sent.front().second;
  EXPECT_EQ(server_.sent.back().first, "INSERT INTO db.loads FORMAT TabSeparated");
  EXPECT_NE(server_.sent.back().second.find("\t3\t1\t"), std::string::npos) << server_.sent.back().second;
  EXPECT_NE(server_.RowsOf("kernels").find("\t0\t1000\t3000\t-1\t0\ta\\tb\\n\\\\c\tType\t"), std::string::npos) << server_.RowsOf("kernels");
  EXPECT_TRUE(server_.RowsOf("kernels").starts_with("run 1\t3\t"));
}

TEST_F(StoreTest, WaitsAndCopiesHaveRows) {
  auto run = SmallRun();
  run.ranks[0]->waits.push_back({100, 200, 3, true});
  run.ranks[0]->copies.push_back({300, 400, 0});
  StoreLoader loader = Loader();
  ASSERT_TRUE(loader.Prepare().ok());
  std::vector<RankLoad> done;
  ASSERT_TRUE(loader.Load(run, 7, &done).ok());
  EXPECT_TRUE(server_.RowsOf("waits").ends_with("\t100\t200\t3\t1\n")) << server_.RowsOf("waits");
  EXPECT_TRUE(server_.RowsOf("copies").ends_with("\t300\t400\t0\n")) << server_.RowsOf("copies");
}

TEST_F(StoreTest, ABrokenLoadIsNotCommitted) {
  server_.fail_inserts_after = 3;
  StoreLoader loader = Loader();
  ASSERT_TRUE(loader.Prepare().ok());
  std::vector<RankLoad> done;
  const Status status = loader.Load(SmallRun(), 7, &done);
  EXPECT_EQ(status.code(), StatusCode::kUnavailable);
  EXPECT_TRUE(done.empty());
  EXPECT_EQ(std::ranges::count(server_.RowsOf("loads"), '\n'), 1);
}

TEST_F(StoreTest, MissingRowsAreNoticed) {
  server_.missing = 1;
  StoreLoader loader = Loader();
  ASSERT_TRUE(loader.Prepare().ok());
  std::vector<RankLoad> done;
  const Status status = loader.Load(SmallRun(), 7, &done);
  EXPECT_EQ(status.code(), StatusCode::kAborted);
  EXPECT_NE(status.message().find("load it again"), std::string::npos) << status.message();
  EXPECT_EQ(std::ranges::count(server_.RowsOf("loads"), '\n'), 1);
}

TEST_F(StoreTest, ABusyServerIsTriedAgain) {
  server_.fail_inserts_after = 0;
  server_.failure = "Too many parts (300). Merges are processing significantly slower than inserts.";
  StoreLoader loader = Loader();
  ASSERT_TRUE(loader.Prepare().ok());
  std::vector<RankLoad> done;
  EXPECT_FALSE(loader.Load(SmallRun(), 7, &done).ok());
  EXPECT_EQ(server_.pauses, 7);
}

TEST_F(StoreTest, AnotherKindOfTablesIsRefused) {
  server_.engine = "Distributed";
  EXPECT_EQ(Loader().Prepare().code(), StatusCode::kFailedPrecondition);
  EXPECT_TRUE(Loader("c").Prepare().ok());
  server_.engine = "MergeTree";
  EXPECT_TRUE(Loader().Prepare().ok());
  EXPECT_EQ(Loader("c").Prepare().code(), StatusCode::kFailedPrecondition);
  server_.version = "1.1.54385";
  EXPECT_EQ(Loader().Prepare().code(), StatusCode::kFailedPrecondition);
}

TEST_F(StoreTest, CostOfQueriesIsAddedUp) {
  ASSERT_TRUE(Loader().Prepare().ok());
  EXPECT_EQ(server_.cost().queries, 3u);
  EXPECT_EQ(server_.cost().rows, 9u);
  EXPECT_EQ(server_.cost().bytes, 210u);
  EXPECT_DOUBLE_EQ(server_.cost().seconds, 1.5);
}

class OneAnswer : public FakeServer {
 public:
  explicit OneAnswer(std::string text) : text_(std::move(text)) {}
  Result<std::string> Send(std::string_view, std::string_view) override { return text_; }

 private:
  std::string text_;
};

TEST(StoreQuery, CellsOfEveryKind) {
  OneAnswer server(R"({"data": [["a", "18446744073709551615", null, 1.5, ["x", "y"], [1, 2]], ["b", "-1", 2, 3, [], []]], "statistics": {}})");
  std::vector<StoreRow> rows;
  ASSERT_TRUE(server.Query("SELECT", [&rows](const StoreRow& row) {
    rows.push_back(row);
    return Status();
  }).ok());
  ASSERT_EQ(rows.size(), 2u);
  EXPECT_EQ(rows[0].Uint(1), 18446744073709551615u);
  EXPECT_TRUE(rows[0].IsNull(2));
  EXPECT_DOUBLE_EQ(rows[0].Float(3), 1.5);
  EXPECT_EQ(rows[0].List(4), (std::vector<std::string>{"x", "y"}));
  EXPECT_EQ(rows[0].Ints(5), (std::vector<int64_t>{1, 2}));
  EXPECT_EQ(rows[1].Int(1), -1);
  EXPECT_TRUE(rows[1].List(4).empty());
}

TEST(StoreQuery, ABrokenAnswerIsAnError) {
  OneAnswer server("{\"data\": [[\"a\"]Code: 241. Memory limit");
  const Status status = server.Query("SELECT", [](const StoreRow&) { return Status(); });
  EXPECT_NE(status.message().find("Memory limit"), std::string::npos) << status.message();
  OneAnswer text(R"({"data": [["x"]], "statistics": {}})");
  EXPECT_FALSE(text.Query("SELECT", [](const StoreRow& row) {
    static_cast<void>(row.Int(0));
    return Status();
  }).ok());
}

// Answers each table's query with its rows.
class StoredTables : public FakeServer {
 public:
  explicit StoredTables(std::map<std::string, std::string> rows) : rows_(std::move(rows)) {}
  Result<std::string> Send(std::string_view statement, std::string_view) override {
    for (const auto& [table, rows] : rows_) {
      if ((std::string(statement) + ' ').find(" FROM db." + table + ' ') != std::string_view::npos) return R"({"data": )" + rows + "}";
    }
    return std::string(R"({"data": []})");
  }

 private:
  std::map<std::string, std::string> rows_;
};

const std::map<std::string, std::string> kStored = {
    {"loads", R"([["3", 3, "7", 0, "node", "dump", "/d"]])"},
    {"facts", R"([["7", "lanes", "[[\"CANN\", \"Thread 1\"]]"]])"},
    {"operators", R"([["7", 0, "op", "Type", "AI_CORE", "", "", "", [], 0, [], 1, 5, 5, 5]])"},
    {"kernels", R"([["7", 1000, 3000, 0, 0, 8, 0, [0], 0]])"},
    {"slices", R"([["7", 0, 500, 1000, 0, "launch", ""]])"},
    {"waits", R"([["7", 100, 200, 3, 1]])"},
    {"copies", R"([["7", 300, 400, 0]])"},
};

Result<Run> Stored(const std::string& table, const std::string& rows) {
  std::map<std::string, std::string> tables = kStored;
  if (!table.empty()) tables[table] = rows;
  StoredTables server(tables);
  FetchOrder order;
  order.run = "run";
  order.complete = true;
  return FetchRun(&server, order);
}

TEST(StoreFetch, RowsThatAreOneRun) {
  const auto run = Stored("", "");
  ASSERT_TRUE(run.ok()) << run.status().message();
  EXPECT_EQ(run->ranks.at(0)->executions.size(), 1u);
  EXPECT_EQ(run->ranks.at(0)->flows.size(), 1u);
  ASSERT_EQ(run->ranks.at(0)->waits.size(), 1u);
  EXPECT_EQ(run->ranks.at(0)->waits[0].plane, 3);
  EXPECT_TRUE(run->ranks.at(0)->waits[0].behind_rdma);
  ASSERT_EQ(run->ranks.at(0)->copies.size(), 1u);
  EXPECT_EQ(run->ranks.at(0)->copies[0].end_ns, 400);
}

TEST(StoreFetch, RanksWithoutANumberAreAsTheyWereRead) {
  // The latest load first, as the server is asked.
  StoredTables server(std::map<std::string, std::string>{std::pair("loads", R"([["n/npu0#3", -1, "9", 0, "n", "c", "/c"], ["n/npu0#2", -1, "8", 0, "n", "b", "/b"], ["n/npu0", -1, "7", 0, "n", "a", "/a"]])")});
  FetchOrder order;
  order.run = "run";
  const auto run = FetchRun(&server, order);
  ASSERT_TRUE(run.ok()) << run.status().message();
  ASSERT_EQ(run->ranks.size(), 3u);
  for (size_t i = 0; i < 3; ++i) EXPECT_EQ(run->ranks[i]->path, std::string("/") + "abc"[i]);
}

TEST(StoreFetch, DevicesThatNoJobUses) {
  const std::string loads = R"([["n/npu2", -1, "9", 2, "n", "dump", "/c"], ["n/npu1", -1, "8", 1, "n", "dump", "/b"], ["0", 0, "7", 0, "n", "dump", "/a"]])";
  StoredTables server({{"loads", loads}, {"collectives WHERE run = 'run' AND rank = -1", R"([["8"]])"}});
  FetchOrder order;
  order.run = "run";
  order.only = {"overall"};
  const auto run = FetchRun(&server, order);
  ASSERT_TRUE(run.ok()) << run.status().message();
  // The second has operations of communication.
  ASSERT_EQ(run->ranks.size(), 2u);
  EXPECT_EQ(run->ranks[0]->path, "/a");
  EXPECT_EQ(run->ranks[1]->path, "/b");
}

// A run of so many ranks and rows.
Result<Run> Large(int ranks, uint64_t steps, uint64_t collectives, const FetchOrder& order) {
  std::string loads = "[";
  for (int rank = 0; rank < ranks; ++rank) loads += (rank > 0 ? ", " : "") + fmt::format(R"(["{0}", {0}, "{1}", 0, "n", "made", ""])", rank, rank + 1);
  StoredTables server({{"loads WHERE run = 'run' AND state = 1 ORDER", loads + "]"},
                       {"steps WHERE run = 'run' AND load GLOBAL", fmt::format("[[{}]]", steps)},
                       {"collectives WHERE run = 'run' AND load GLOBAL", fmt::format("[[{}]]", collectives)},
                       {"links WHERE run = 'run' AND load GLOBAL", "[[0]]"}});
  return FetchRun(&server, order);
}

TEST(StoreFetch, AsManyRanksAsThereIsMemoryFor) {
  FetchOrder order;
  order.run = "run";
  order.beside = true;
  const auto run = Large(4096, 4'096'000, 4'096'000, order);
  ASSERT_TRUE(run.ok()) << run.status().message();
  EXPECT_EQ(run->ranks.size(), 4096u);
  const auto refused = Large(65, 1000, kMostFetchedRows, order);
  EXPECT_EQ(refused.status().code(), StatusCode::kResourceExhausted);
  EXPECT_NE(refused.status().message().find("1000 steps, 16000000 collectives"), std::string::npos) << refused.status().message();
  // Without a look at ranks beside each other, the server adds up their communication.
  order.beside = false;
  order.only = {"communication"};
  EXPECT_TRUE(Large(65, 1000, kMostFetchedRows, order).ok());
}

TEST(StoreFetch, RowsOfWhatIsNotThere) {
  for (const auto& [table, rows] : {std::pair("kernels", R"([["7", 1000, 3000, 0, -1, 8, 0, [], 0]])"), std::pair("kernels", R"([["7", 1000, 3000, 1, 0, 8, 0, [], 0]])"),
                                    std::pair("kernels", R"([["7", 3000, 1000, 0, 0, 8, 0, [], 0]])"),
                                    std::pair("copies", R"([["7", 1000, 3000, 1]])"), std::pair("slices", R"([["7", 0, 500, 1000, -1, "launch", ""]])"), std::pair("slices", R"([["7", 0, 1000, 500, 0, "launch", ""]])")}) {
    const auto run = Stored(table, rows);
    ASSERT_FALSE(run.ok()) << rows;
    EXPECT_EQ(run.status().code(), StatusCode::kDataLoss);
    EXPECT_NE(run.status().message().find("load the run again"), std::string::npos) << run.status().message();
  }
}

TEST(StoreFetch, TimesBeyondAllYears) {
  for (const char* rows : {R"([["7", "-9000000000000000000", "3000", 0, 0, 8, 0, [], 0]])", R"([["7", 1000, "9000000000000000000", 0, 0, 8, 0, [], 0]])"}) {
    EXPECT_EQ(Stored("kernels", rows).status().code(), StatusCode::kDataLoss);
  }
  EXPECT_EQ(Stored("steps", R"([["7", 1, 1, 1000, 2000, null, null, 0, 0, 0, 0, 0, ["r"], ["9000000000000000000"], [1500]]])").status().code(), StatusCode::kDataLoss);
}

TEST(StoreFetch, FactsThatDoNotFit) {
  const auto run = Stored("facts", R"([["7", "count_ns", "1e300"], ["7", "cube_cores", "3000000000"], ["7", "lanes", "[[\"a\", \"b\"]]"],
      ["7", "pipeline", "{\"processors\": -1e30, \"get_ms\": [1e300]}"], ["7", "span", "[0, 1e40]"], ["7", "vector_cores", "48"]])");
  ASSERT_TRUE(run.ok()) << run.status().message();
  const Rank& rank = *run->ranks.at(0);
  EXPECT_EQ(rank.count_ns, 0);
  EXPECT_EQ(rank.cube_cores, 0);
  EXPECT_EQ(rank.vector_cores, 48);
  EXPECT_FALSE(rank.span);
  EXPECT_FALSE(rank.pipeline.processors);
  EXPECT_EQ(rank.pipeline.get_ms, std::vector<double>{1e300});
}

TEST(StoreOverviewTest, TotalsWithoutARow) {
  StoredTables server({});
  EXPECT_EQ(StoreOverview(&server, "run", {}).status().code(), StatusCode::kNotFound);
}

TEST(StoreOverviewTest, AnOperatorWithoutATime) {
  StoredTables server({{"totals", "[[1, 2, 3, 9.0, 4.5, 1.5, 0.6, 2.4]]"}, {"operators", R"([[3.5, "AI_CORE", 1, null, null, null, null]])"}});
  const Result<Json> overview = StoreOverview(&server, "run", {});
  ASSERT_TRUE(overview.ok()) << overview.status().message();
  EXPECT_EQ((*overview)["operator_types"][0]["share"], 0.0);
}

TEST(StorePipeline, ThereAndBack) {
  Pipeline pipeline;
  pipeline.device = Pipeline::Queue{std::nullopt, {1, 0, 2.5}};
  pipeline.host = Pipeline::Queue{8, {}};
  pipeline.host_is_iterator = true;
  pipeline.push_ms = {0.5};
  pipeline.processors = 96;
  pipeline.cpu = Pipeline::CpuUse{{40, 41}, {5, 6}};
  pipeline.operators.push_back({4, "Batch", 2, std::nullopt, {1}, 7, {5, 6}, Pipeline::CpuUse{{20}, {3.5}}});
  const Pipeline back = PipelineOf(PipelineJson(pipeline).dump());
  EXPECT_EQ(PipelineJson(back), PipelineJson(pipeline));
  EXPECT_EQ(back.operators.at(0).parent, 7);
  EXPECT_EQ(back.cpu.value().user, (std::vector<double>{40, 41}));
  EXPECT_EQ(back.operators.at(0).cpu.value().sys, std::vector<double>{3.5});
  EXPECT_TRUE(PipelineOf("[1]").empty());
}

}  // namespace
}  // namespace profd::analysis
