// Tables, rows and loads without a server; with one: tests/e2e/test_clickhouse.py.
#include <gtest/gtest.h>

#include <algorithm>

#include "analysis/store/load.h"
#include "analysis/store/rows.h"
#include "analysis/store/store_test_support.h"
#include "analysis/store/tables.h"

namespace profd::analysis {
namespace {

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
  StoreLoader Loader(const std::string& cluster = "") { return {&server_, {"run 1", cluster, &clock_, {}, "/var/loads/"}}; }
  Status Load(const profd::analysis::Run& run) {
    done_.clear();
    StoreLoader loader = Loader();
    RETURN_IF_ERROR(loader.Prepare());
    return loader.Load(run, 7, &done_);
  }

  FakeServer server_;
  SystemClock clock_;
  std::vector<RankLoad> done_;
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
  EXPECT_GT(old.find("db.loads "), old.find("db.findings "));
  const std::string cluster = text({"db", "c", 18});
  EXPECT_NE(cluster.find("ReplicatedMergeTree('/clickhouse/tables/{shard}/db/kernels', '{replica}')"), std::string::npos) << cluster;
  EXPECT_NE(cluster.find("CREATE TABLE IF NOT EXISTS db.kernels ON CLUSTER `c` AS db.kernels_local ENGINE = Distributed(`c`, db, kernels_local, cityHash64(run, rank))"),
            std::string::npos);
}

TEST_F(StoreTest, TheRowThatCommitsIsTheLast) {
  ASSERT_TRUE(Load(SmallRun()).ok());
  ASSERT_EQ(done_.size(), 1u);
  EXPECT_EQ(done_[0].who, "3");
  EXPECT_EQ(server_.sent.front().first, "INSERT INTO db.loads FORMAT TabSeparated");
  EXPECT_NE(server_.sent.front().second.find("\t3\t0\t"), std::string::npos) << server_.sent.front().second;
  EXPECT_EQ(server_.sent.back().first, "INSERT INTO db.loads FORMAT TabSeparated");
  EXPECT_NE(server_.sent.back().second.find("\t3\t1\t"), std::string::npos) << server_.sent.back().second;
  EXPECT_NE(server_.RowsOf("kernels").find("\t0\t1000\t3000\t-1\t0\ta\\tb\\n\\\\c\tType\t"), std::string::npos) << server_.RowsOf("kernels");
  EXPECT_TRUE(server_.RowsOf("kernels").starts_with("run 1\t3\t"));
}

TEST_F(StoreTest, WaitsCopiesStepsAndMessagesHaveRows) {
  auto run = SmallRun();
  run.ranks[0]->collectives.emplace_back().between = {2, 5};
  run.ranks[0]->waits.push_back({100, 200, 3, true});
  run.ranks[0]->copies.push_back({300, 400, 0});
  run.ranks[0]->shares[1].begun = {8, 0, 0.5, 4};
  ASSERT_TRUE(Load(run).ok());
  EXPECT_TRUE(server_.RowsOf("waits").ends_with("\t100\t200\t3\t1\n")) << server_.RowsOf("waits");
  EXPECT_TRUE(server_.RowsOf("copies").ends_with("\t300\t400\t0\n")) << server_.RowsOf("copies");
  EXPECT_TRUE(server_.RowsOf("steps").ends_with("\t[8,0,0.5,4]\n")) << server_.RowsOf("steps");
  EXPECT_TRUE(server_.RowsOf("collectives").ends_with("\t[]\t2\t5\n")) << server_.RowsOf("collectives");
}

// Whose load replaces whose.
TEST_F(StoreTest, OfWhichRanksSharesAreOfIntervals) {
  const auto is_written = [this](const std::string& source, bool has_table) {
    auto run = SmallRun();
    run.ranks[0]->source = source;
    run.ranks[0]->steps.push_back({1, 0, 5000, {}, {}, {}});
    if (has_table) run.ranks[0]->shares[1] = {1, 0, 0, 1};
    server_.sent.clear();
    EXPECT_TRUE(Load(run).ok());
    return server_.RowsOf("facts").find("\tshares_of_intervals\ttrue\n") != std::string::npos;
  };
  EXPECT_TRUE(is_written("PyTorch, text", false));
  EXPECT_FALSE(is_written("PyTorch, text", true));
  EXPECT_FALSE(is_written("dump", false));
}

TEST_F(StoreTest, RanksWithoutANumber) {
  const auto who = [this](const std::string& host, int64_t start_ns, const std::string& path) {
    auto run = SmallRun();
    Rank& rank = *run.ranks.front();
    rank.rank.reset();
    rank.host = host;
    rank.path = path;
    rank.executions.front() = {start_ns, start_ns + 5, 0, 0};
    const Status loaded = Load(run);
    EXPECT_TRUE(loaded.ok()) << loaded.message();
    return done_.empty() ? std::string() : done_.front().who;
  };
  constexpr int64_t kDay = 1'796'000'000'123'456'789;
  EXPECT_EQ(who("n1", kDay, "/a"), "n1/npu0");
  EXPECT_EQ(who("", kDay, "/a"), "npu0 at 1796000000.123456789");
  EXPECT_EQ(who("", kDay, "/copy/of/a"), who("", kDay, "/a"));
  EXPECT_NE(who("", kDay + 1, "/a"), who("", kDay, "/a"));
  // Without a time of any clock, too.
  EXPECT_EQ(who("", 1000, "/no/such/a"), "npu0 of /no/such/a");
  EXPECT_EQ(who("", 1000, "/no/such/../such/a"), "npu0 of /no/such/a");
  EXPECT_EQ(who("", 1000, "/var/loads/PROF_1"), "npu0 of PROF_1");
}

TEST_F(StoreTest, StoresProblemsWithTheRank) {
  auto run = SmallRun();
  run.ranks.push_back(std::make_unique<Rank>());
  run.ranks.front()->path = "/var/loads/PROF_1";
  run.ranks.back()->path = "/var/loads/PROF_10";
  run.ranks.back()->rank = 4;
  run.problems = {{"PROF_10/hbm.data", "it is shorter"}, {"activity", "rows are left out"}};
  ASSERT_TRUE(Load(run).ok());
  const std::string facts = server_.RowsOf("facts");
  const size_t problem = facts.find("\tproblem.PROF_10/hbm.data\tit is shorter\n");
  ASSERT_NE(problem, std::string::npos) << facts;
  EXPECT_TRUE(facts.substr(facts.rfind('\n', problem) + 1).starts_with("run 1\t4\t")) << facts;
  EXPECT_NE(facts.find("\tproblem.activity\trows are left out\n"), std::string::npos) << facts;
  const std::string loads = server_.RowsOf("loads");
  EXPECT_NE(loads.find("\tPROF_1\t"), std::string::npos) << loads;
  EXPECT_EQ(loads.find("/var/loads"), std::string::npos) << loads;
}

TEST_F(StoreTest, ABrokenLoadIsNotCommitted) {
  server_.fail_inserts_after = 3;
  EXPECT_EQ(Load(SmallRun()).code(), StatusCode::kUnavailable);
  EXPECT_TRUE(done_.empty());
  EXPECT_EQ(std::ranges::count(server_.RowsOf("loads"), '\n'), 1);
}

TEST_F(StoreTest, MissingRowsAreNoticed) {
  server_.missing = 1;
  const Status status = Load(SmallRun());
  EXPECT_EQ(status.code(), StatusCode::kAborted);
  EXPECT_NE(status.message().find("load it again"), std::string::npos) << status.message();
  EXPECT_EQ(std::ranges::count(server_.RowsOf("loads"), '\n'), 1);
}

TEST_F(StoreTest, ABusyServerIsTriedAgain) {
  server_.fail_inserts_after = 0;
  server_.failure = "Too many parts (300). Merges are processing significantly slower than inserts.";
  EXPECT_FALSE(Load(SmallRun()).ok());
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

TEST_F(StoreTest, TablesThatAreThereAreLeftAlone) {
  ASSERT_TRUE(Loader().Prepare().ok());
  EXPECT_EQ(server_.Changes(), StoreTables().size() + 1);
  server_.statements.clear();
  server_.has_tables = true;
  ASSERT_TRUE(Loader().Prepare().ok());
  ASSERT_TRUE(Loader("c").Prepare().ok());
  EXPECT_EQ(server_.Changes(), 0u);
}

TEST_F(StoreTest, TablesOfAnotherVersionAreRefused) {
  server_.has_tables = true;
  server_.without = "lane";
  const Status status = Loader().Prepare();
  EXPECT_EQ(status.code(), StatusCode::kFailedPrecondition);
  EXPECT_EQ(status.message(), "table db.kernels has no column lane: it was made by another version of profd; load into another database");
  EXPECT_EQ(server_.Changes(), 0u);
}

TEST_F(StoreTest, NoLoadWaitsForAReplicaThatIsAway) {
  server_.replica_is_away = true;
  StoreLoader loader = Loader("c");
  ASSERT_TRUE(loader.Prepare().ok());
  ASSERT_GT(server_.waits.size(), 2u);
  EXPECT_EQ(server_.waits.front(), TableChanger::kClusterSeconds);
  EXPECT_TRUE(std::ranges::all_of(server_.waits.begin() + 1, server_.waits.end(), [](int wait_s) { return wait_s == 0; }));
  EXPECT_NE(loader.Note().find("not all servers of cluster c answered"), std::string::npos) << loader.Note();
  // Deletions, too, are left to it.
  std::vector<RankLoad> done;
  for (int number = 0; number < 2; ++number) {
    server_.sent.clear();
    StoreLoader again = Loader("c");
    server_.loads_of_before = number;
    ASSERT_TRUE(again.Prepare().ok());
    ASSERT_TRUE(again.Load(SmallRun(), 7, &done).ok());
    server_.statements.clear();
    ASSERT_TRUE(again.CleanUp().ok());
    EXPECT_EQ(server_.Changes(), number * StoreTables().size());
  }
}

TEST_F(StoreTest, AShardThatWasAddedGetsItsTables) {
  server_.has_tables = true;
  server_.no_table = "no server of a shard can be used: There is no table db.loads_local on server: 10.0.0.3:9000";
  server_.shard_without_tables = 3;
  EXPECT_TRUE(Loader("c").Prepare().ok());
  EXPECT_EQ(server_.Changes(), 2 * StoreTables().size() + 1);
  EXPECT_EQ(server_.pauses, 2);
  // One that stays without is an error that names it.
  server_.shard_without_tables = 1000;
  const Status status = Loader("c").Prepare();
  EXPECT_EQ(status.code(), StatusCode::kUnavailable);
  EXPECT_NE(status.message().find("10.0.0.3:9000"), std::string::npos) << status.message();
}

TEST_F(StoreTest, CostOfQueriesIsAddedUp) {
  ASSERT_TRUE(Loader().Prepare().ok());
  EXPECT_EQ(server_.cost().queries, 4u);
  EXPECT_EQ(server_.cost().rows, 12u);
  EXPECT_EQ(server_.cost().bytes, 280u);
  EXPECT_DOUBLE_EQ(server_.cost().seconds, 2.0);
}

}  // namespace
}  // namespace profd::analysis
