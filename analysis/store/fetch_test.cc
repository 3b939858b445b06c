// What is read of a stored run, without a server; with one: tests/e2e/test_clickhouse.py.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <string>
#include <vector>

#include "analysis/store/fetch.h"
#include "analysis/store/overview.h"
#include "analysis/store/pipeline_json.h"
#include "analysis/store/store_test_support.h"

namespace profd::analysis {
namespace {

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
    asked.emplace_back(statement);
    for (const auto& [table, rows] : rows_) {
      if ((std::string(statement) + ' ').find(" FROM db." + table + ' ') != std::string_view::npos) return R"({"data": )" + rows + "}";
    }
    return std::string(R"({"data": []})");
  }
  std::vector<std::string> asked;

 private:
  std::map<std::string, std::string> rows_;
};

const std::map<std::string, std::string> kStored = {
    {"loads", R"([["3", 3, "7", 0, "node", "dump", "/d", "5"]])"},
    {"facts", R"([["7", "lanes", "[[\"CANN\", \"Thread 1\"]]"], ["7", "longest_communication_ns", "77"], ["7", "communication_sum_ns", "78"], ["7", "shares_of_intervals", "true"]])"},
    {"operators", R"([["7", 0, "op", "Type", "AI_CORE", "", "", "", [], 0, [], 1, 5, 5, 5, "NUMBER_TYPE_INT32", "NCHW;NCHW", "NHWC"]])"},
    {"kernels", R"([["7", 1000, 3000, 0, 0, 8, 0, [0], 0, "AI_CORE"]])"},
    {"slices", R"([["7", 0, 500, 1000, 0, "launch", "", 1]])"},
    {"waits", R"([["7", 100, 200, 3, 1]])"},
    {"copies", R"([["7", 300, 400, 0]])"},
};

Result<Run> Stored(const std::string& table, const std::string& rows) {
  std::map<std::string, std::string> tables = kStored;
  if (!table.empty()) tables[table] = rows;
  StoredTables server(tables);
  FetchRequest request;
  request.run = "run";
  request.complete = true;
  return FetchRun(&server, request);
}

TEST(StoreFetch, RowsThatAreOneRun) {
  const auto run = Stored("", "");
  ASSERT_TRUE(run.ok()) << run.status().message();
  ASSERT_EQ(run->ranks.at(0)->executions.size(), 1u);
  EXPECT_EQ(run->ranks.at(0)->TextOf(run->ranks.at(0)->executions[0].task), "AI_CORE");
  const Operator& op = run->ranks.at(0)->operators.at(0);
  EXPECT_EQ(run->ranks.at(0)->TextOf(op.output_types), "NUMBER_TYPE_INT32");
  EXPECT_EQ(run->ranks.at(0)->TextOf(op.input_formats), "NCHW;NCHW");
  EXPECT_EQ(run->ranks.at(0)->TextOf(op.output_formats), "NHWC");
  ASSERT_EQ(run->ranks.at(0)->slices.size(), 1u);
  EXPECT_TRUE(run->ranks.at(0)->slices[0].is_operator);
  EXPECT_EQ(run->ranks.at(0)->longest_communication_ns, 77);
  EXPECT_EQ(run->ranks.at(0)->communication_sum_ns, 78);
  EXPECT_TRUE(run->ranks.at(0)->shares_of_intervals);
  EXPECT_EQ(run->ranks.at(0)->flows.size(), 1u);
  ASSERT_EQ(run->ranks.at(0)->waits.size(), 1u);
  EXPECT_EQ(run->ranks.at(0)->waits[0].plane, 3);
  EXPECT_TRUE(run->ranks.at(0)->waits[0].behind_rdma);
  ASSERT_EQ(run->ranks.at(0)->copies.size(), 1u);
  EXPECT_EQ(run->ranks.at(0)->copies[0].end_ns, 400);
  EXPECT_TRUE(run->problems.empty());
}

TEST(StoreFetch, BetweenWhichRanksAMessageWent) {
  const auto between = [](const std::string& ends) {
    const auto run = Stored("collectives", R"([["7", 100, "send", "send", "g", 1, 0, 0, 0, 0, 0, [], [], [], [], [], 1, 1, 1, [], [], [], [], [], )" + ends + "]]");
    EXPECT_TRUE(run.ok()) << run.status().message();
    return run.ok() ? run->ranks.at(0)->collectives.at(0).between : kUnknownEnds;
  };
  EXPECT_EQ(between("2, 5"), std::pair(2, 5));
  EXPECT_EQ(between("-1, -1"), kUnknownEnds);
  EXPECT_EQ(between("5, 2"), kUnknownEnds) << "who may write there could have written anything";
}

// As a table: the question which loads there are, without those that rows are counted by.
const std::string kLoadsAsked = "loads WHERE run = 'run' AND state = 1 ORDER";

TEST(StoreFetch, RanksWithoutANumberAreAsTheyWereRead) {
  // The latest load first, as the server is asked.
  StoredTables server(std::map<std::string, std::string>{std::pair(kLoadsAsked, R"([["n/npu0#3", -1, "9", 0, "n", "c", "/c", 1], ["n/npu0#2", -1, "8", 0, "n", "b", "/b", 1], ["n/npu0", -1, "7", 0, "n", "a", "/a", 1]])")});
  FetchRequest request;
  request.run = "run";
  const auto run = FetchRun(&server, request);
  ASSERT_TRUE(run.ok()) << run.status().message();
  ASSERT_EQ(run->ranks.size(), 3u);
  for (size_t i = 0; i < 3; ++i) EXPECT_EQ(run->ranks[i]->path, std::string("/") + "abc"[i]);
}

TEST(StoreFetch, DevicesThatNoJobUses) {
  const std::string loads = R"([["n/npu2", -1, "9", 2, "n", "dump", "/c", 1], ["n/npu1", -1, "8", 1, "n", "dump", "/b", 1], ["0", 0, "7", 0, "n", "dump", "/a", 1]])";
  StoredTables server({{kLoadsAsked, loads}, {"collectives WHERE run = 'run' AND rank = -1", R"([["8"]])"}});
  FetchRequest request;
  request.run = "run";
  request.only = {"overall"};
  const auto run = FetchRun(&server, request);
  ASSERT_TRUE(run.ok()) << run.status().message();
  // The second has operations of communication.
  ASSERT_EQ(run->ranks.size(), 2u);
  EXPECT_EQ(run->ranks[0]->path, "/a");
  EXPECT_EQ(run->ranks[1]->path, "/b");
}

// A run of so many ranks and rows; `of_each`: a rank has in all tables. `asked`: how often for operations of communication.
Result<Run> Large(int ranks, uint64_t steps, uint64_t collectives, const FetchRequest& request, int64_t* asked = nullptr, uint64_t of_each = 0) {
  std::string loads = "[";
  for (int rank = 0; rank < ranks; ++rank) loads += (rank > 0 ? ", " : "") + fmt::format(R"(["{0}", {0}, "{1}", 0, "n", "made", "", "{2}"])", rank, rank + 1, of_each);
  StoredTables server({{kLoadsAsked, loads + "]"},
                       {"steps WHERE run = 'run' AND load GLOBAL", fmt::format("[[{}]]", steps)},
                       {"collectives WHERE run = 'run' AND load GLOBAL", fmt::format("[[{}]]", collectives)},
                       {"links WHERE run = 'run' AND load GLOBAL", "[[0]]"}});
  auto run = FetchRun(&server, request);
  const auto is_one = [](const std::string& each) { return each.find("FROM db.collectives  WHERE") != std::string::npos; };
  if (asked != nullptr) *asked = std::ranges::count_if(server.asked, is_one);
  return run;
}

TEST(StoreFetch, AsManyRanksAsThereIsMemoryFor) {
  FetchRequest request;
  request.run = "run";
  request.beside = true;
  int64_t asked = 0;
  const auto run = Large(4096, 4'096'000, 4'096'000, request, &asked);
  ASSERT_TRUE(run.ok()) << run.status().message();
  EXPECT_EQ(run->ranks.size(), 4096u);
  EXPECT_EQ(asked, 64);
  // An answer is of fewer ranks where they have more rows.
  EXPECT_TRUE(Large(128, 128'000, 15'000'000, request, &asked).ok());
  EXPECT_EQ(asked, 128);
  const auto refused = Large(65, 1000, kMostFetchedRows, request);
  EXPECT_EQ(refused.status().code(), StatusCode::kResourceExhausted);
  EXPECT_NE(refused.status().message().find("1000 steps, 16000000 collectives"), std::string::npos) << refused.status().message();
  EXPECT_NE(refused.status().message().find("with --only"), std::string::npos) << refused.status().message();
  // advise and report have no other analyses.
  request.complete = true;
  const auto of_all = Large(65, 1000, kMostFetchedRows, request);
  EXPECT_NE(of_all.status().message().find("--ranks; profctl analyze --overview"), std::string::npos) << of_all.status().message();
  request.complete = false;
  // Without a look at ranks beside each other, the server adds up their communication.
  request.beside = false;
  request.only = {"communication"};
  EXPECT_TRUE(Large(65, 1000, kMostFetchedRows, request).ok());
}

TEST(StoreFetch, AllRowsOfSmallRanksInOneAnswer) {
  FetchRequest request;
  request.run = "run";
  request.complete = true;
  int64_t asked = 0;
  for (const auto& [of_each, answers] : {std::pair<uint64_t, int64_t>(1000, 4), {50'000, 50}, {100'001, 200}, {10'000'000, 200}}) {
    const auto run = Large(200, 0, 0, request, &asked, of_each);
    ASSERT_TRUE(run.ok()) << run.status().message();
    EXPECT_EQ(run->ranks.size(), 200u);
    EXPECT_EQ(asked, answers) << of_each;
  }
}

TEST(StoreFetch, ReportsProblemsOfTheLoad) {
  const auto run = Stored("facts", R"([["7", "lanes", "[[\"CANN\", \"Thread 1\"]]"], ["7", "problem.PROF_1/hbm.data", "it is shorter"]])");
  ASSERT_TRUE(run.ok()) << run.status().message();
  ASSERT_EQ(run->problems.size(), 1u);
  EXPECT_EQ(run->problems[0].where, "PROF_1/hbm.data");
  EXPECT_EQ(run->problems[0].what, "it is shorter");
}

TEST(StoreFetch, RowsOfWhatIsNotThere) {
  for (const auto& [table, rows] : {std::pair("kernels", R"([["7", 1000, 3000, 0, -1, 8, 0, [], 0, ""]])"), std::pair("kernels", R"([["7", 1000, 3000, 1, 0, 8, 0, [], 0, ""]])"),
                                    std::pair("kernels", R"([["7", 3000, 1000, 0, 0, 8, 0, [], 0, ""]])"),
                                    std::pair("copies", R"([["7", 1000, 3000, 1]])"), std::pair("slices", R"([["7", 0, 500, 1000, -1, "launch", "", 0]])"), std::pair("slices", R"([["7", 0, 1000, 500, 0, "launch", "", 0]])")}) {
    const auto run = Stored(table, rows);
    ASSERT_FALSE(run.ok()) << rows;
    EXPECT_EQ(run.status().code(), StatusCode::kDataLoss);
    EXPECT_NE(run.status().message().find("load the run again"), std::string::npos) << run.status().message();
  }
}

TEST(StoreFetch, SharesOfADumpCutAndWhole) {
  const auto run = Stored("steps", R"([["7", 1, 1, 1000, 2000, null, null, 1, 5, 0, 0, 5, [], [], [], 12, 0, 0, 1, [8, 0, 0, 4]], ["7", 2, 1, 2000, 3000, null, null, 1, 5, 0, 0, 5, [], [], [], null, null, null, null, []]])");
  ASSERT_TRUE(run.ok()) << run.status().message();
  const auto& shares = run->ranks.at(0)->shares;
  EXPECT_EQ(shares.at(1).computing, 5);
  EXPECT_EQ(shares.at(1).begun, (std::array<double, 4>{8, 0, 0, 4}));
  EXPECT_EQ(shares.at(2).begun, std::nullopt);
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
  StoredTables server({{"steps", "[]"}, {"totals", "[[1, 2, 9.0, 4.5, 1.5, 0.6, 2.4]]"}, {"operators", R"([[3.5, "AI_CORE", 1, null, null, null, null]])"}});
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
