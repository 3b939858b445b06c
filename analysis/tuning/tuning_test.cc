// Expected values are those of the requirement's own samples (analysis 8.2, 8.3).
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "analysis/tuning/lenient_json.h"
#include "analysis/tuning/verify.h"

namespace profd::analysis {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

constexpr std::string_view kOperators = R"json({"report_20240101120000123_140001": [
 {"basic": {"tuning_name": "tune_bert", "tuning_time(s)": 44}},
 {"OPAT": {"opat_tuning_result": "tuning successful",
  "repo_modified_operators": [
   {"op_name": "bert/self/Softmax_OPAT_0", "op_type": "SoftmaxV2", "tune_performance": {"Format": {
     "performance_after_tune(us)": 26.876, "performance_before_tune(us)": 58.781, "performance_improvement": "118.71%", "update_mode": "add"}}},
   {"op_name": "bert/MatMulbert/add", "op_type": ["MatMulV2", "Add"], "tune_performance": {"Schedule": {
     "performance_after_tune(us)": 15.71, "performance_before_tune(us)": 16.71, "performance_improvement": "6.37%", "update_mode": "add"}}}],
  "repo_summary": {"repo_add_num": 2, "repo_hit_num": 10, "repo_reserved_num": 10, "repo_unsatisfied_num": 1, "repo_update_num": 0, "total_num": 13}}}],
"report_20240101120000123_140001": [{"basic": {"tuning_name": "second"}},
 {"OPAT": {"opat_tuning_result": "tuning failed", "tuning_failed_operators": ["res4a_branch1"]}}]}
)json";

// As it stands in the requirement: without a comma between the lists, and without the brace around it.
constexpr std::string_view kSubgraphs = R"json("report_20240101130000123_1": [ { "basic": { "tuning_name": "tune_graph", "tuning_time(s)": 19 } },
 { "SGAT": { "model_baseline_performance(ms)": 5.600486, "model_performance_improvement": "55.11%", "model_result_performance(ms)": 3.610442,
 "repo_modified_subgraphs": { "add_repo_subgraphs": [ { "performance_after_tune(ms)": 3.573203, "performance_before_tune(ms)": 5.58434,
 "performance_improvement": "56.28%", "repo_key": "1024942313106047484" } ] "update_repo_subgraphs": [ { "performance_after_tune(ms)": 2.573203,
 "performance_before_tune(ms)": 4.58434, "performance_improvement": "78.15%", "repo_key": "1024942313106057586" } ] },
 "repo_summary": { "repo_add_num": 1, "repo_hit_num": 1, "repo_reserved_num": 0, "repo_unsatisfied_num": 120, "repo_update_num": 1, "total_num": 121 } } } ],
 "report_20240101130000123_1": [ ....... .......)json";

std::vector<std::string> Whats(const TuningFile& file) {
  std::vector<std::string> whats;
  for (const Problem& problem : file.problems) whats.push_back(problem.what);
  return whats;
}

TEST(TuningResultTest, OperatorsOfTasksWithTheSameKey) {
  const TuningFile file = ParseTuningResult(kOperators);
  EXPECT_TRUE(file.complete);
  EXPECT_THAT(Whats(file), IsEmpty());
  ASSERT_EQ(file.tasks.size(), 2u);
  EXPECT_EQ(file.tasks[0].key, file.tasks[1].key);
  const TuningTask& task = file.tasks[0];
  EXPECT_EQ(task.name, "tune_bert");
  EXPECT_EQ(task.seconds, 44);
  EXPECT_EQ(task.State(), "successful");
  ASSERT_EQ(task.operators.size(), 2u);
  EXPECT_EQ(task.operators[0].mode, "Format");
  EXPECT_EQ(task.operators[0].update, "add");
  EXPECT_NEAR(*task.operators[0].gain.Percent(), 118.7119, 1e-4);
  EXPECT_NEAR(*task.operators[1].gain.Percent(), 6.3654, 1e-4);
  EXPECT_THAT(task.operators[1].types, ElementsAre("MatMulV2", "Add"));
  EXPECT_EQ(task.summary.total, 13);
  EXPECT_EQ(file.tasks[1].State(), "failed");
  EXPECT_THAT(file.tasks[1].failed, ElementsAre("res4a_branch1"));
  EXPECT_EQ(file.tasks[1].seconds, std::nullopt);
}

TEST(TuningResultTest, SubgraphsAsTheRequirementPrintsThem) {
  const TuningFile file = ParseTuningResult(kSubgraphs);
  EXPECT_FALSE(file.complete);
  ASSERT_EQ(file.tasks.size(), 2u);
  const TuningTask& task = file.tasks[0];
  ASSERT_TRUE(task.model);
  EXPECT_NEAR(*task.model->Percent(), 55.1191, 1e-4);
  ASSERT_EQ(task.subgraphs.size(), 2u);
  EXPECT_NEAR(*task.subgraphs[0].gain.Percent(), 56.2839, 1e-4);
  EXPECT_NEAR(*task.subgraphs[1].gain.Percent(), 78.1570, 1e-4);
  EXPECT_EQ(task.subgraphs[1].update, "update");
  EXPECT_EQ(task.subgraphs[1].key, "1024942313106057586");
  // Cut, not rounded, they fit; the counts do not: 1 + 1 + 120.
  EXPECT_THAT(Whats(file), ElementsAre("total_num is 121, but added 1 + hit 1 + unsatisfied 120 is 122", "1 comma is missing",
                                       HasSubstr("this is not a value")));
  EXPECT_EQ(file.tasks[1].State(), "incomplete");
}

TEST(TuningResultTest, KeepsCompleteItemsBeforeACut) {
  const TuningFile complete = ParseTuningResult(kOperators);
  size_t before = 0;
  const size_t end = kOperators.rfind('}') + 1;
  for (size_t size = 0; size < end; ++size) {
    const TuningFile cut = ParseTuningResult(kOperators.substr(0, size));
    EXPECT_FALSE(cut.complete) << size;
    size_t count = 0;
    for (const TuningTask& task : cut.tasks) count += task.operators.size();
    EXPECT_GE(count, before);
    before = count;
    for (size_t i = 0; i < count; ++i) {
      EXPECT_EQ(cut.tasks[0].operators[i].name, complete.tasks[0].operators[i].name);
      EXPECT_EQ(cut.tasks[0].operators[i].gain.before, complete.tasks[0].operators[i].gain.before);
    }
    if (!cut.tasks.empty() && !cut.tasks[0].complete) {
      EXPECT_EQ(cut.tasks[0].State(), "incomplete");
    }
  }
  EXPECT_EQ(before, 2u);
  EXPECT_TRUE(ParseTuningResult(kOperators.substr(0, end)).complete);
}

TEST(TuningResultTest, ObjectsBehindTheFirst) {
  const std::string two = std::string(kOperators) + std::string(kOperators);
  TuningFile file = ParseTuningResult(two);
  EXPECT_TRUE(file.complete);
  EXPECT_THAT(Whats(file), IsEmpty());
  EXPECT_EQ(file.tasks.size(), 4u);
  file = ParseTuningResult("{\"report_1_1\": []}\n, {\"report_1_2\": []}");
  EXPECT_EQ(file.tasks.size(), 1u);
  EXPECT_THAT(Whats(file), ElementsAre("line 2: what is behind the object is left out"));
}

// A byte order mark in front, and NaN as Python writes it: it costs the operator its times.
TEST(TuningResultTest, ReadsOnBehindNumbersThatAreNone) {
  std::string text = "\xEF\xBB\xBF" + std::string(kOperators);
  text.replace(text.find("15.71"), 5, "NaN");
  text.replace(text.find("44}"), 2, "-Infinity");
  const TuningFile file = ParseTuningResult(text);
  EXPECT_TRUE(file.complete);
  EXPECT_THAT(Whats(file), ElementsAre(HasSubstr("has no times before and after")));
  ASSERT_EQ(file.tasks.size(), 2u);
  EXPECT_EQ(file.tasks[0].seconds, std::nullopt);
  ASSERT_FALSE(file.tasks[0].operators.empty());
  EXPECT_EQ(file.tasks[0].operators[0].gain.after, 26.876);
  EXPECT_EQ(file.tasks[1].State(), "failed");
}

TEST(TuningResultTest, ReportsInconsistentFiles) {
  std::string text(kOperators);
  text.replace(text.find("118.71%"), 7, "118.75%");
  text.replace(text.find("\"total_num\": 13"), 15, "\"total_num\": 14");
  text.replace(text.find("\"repo_update_num\": 0"), 20, "\"repo_update_num\": 3");
  text.replace(text.find("15.71"), 5, "0.000");
  const TuningFile file = ParseTuningResult(text);
  EXPECT_TRUE(file.complete);
  EXPECT_EQ(file.tasks[0].operators.size(), 2u);
  EXPECT_THAT(Whats(file), ElementsAre(HasSubstr("written as 118.75 %, but 58.781 -> 26.876 is 118.71 %"), "the time after tuning is 0",
                                       HasSubstr("total_num is 14"), HasSubstr("repo_hit_num is 10")));
}

// 6.3654 rounds to 6.37 and is cut to 6.36; both are within 0.01, 6.35 is not.
TEST(TuningResultTest, ImprovementsAreComparedWithinAHundredth) {
  for (const auto& [written, fits] : {std::pair("6.36%", true), std::pair("6.38%", true), std::pair("6.35%", false)}) {
    std::string text(kOperators);
    text.replace(text.find("6.37%"), 5, written);
    EXPECT_EQ(ParseTuningResult(text).problems.empty(), fits) << written;
  }
}

TEST(TuningResultTest, BoundsHold) {
  std::string deep = R"({"report_1_1": )";
  for (int i = 0; i < 100'000; ++i) deep += '[';
  const TuningFile file = ParseTuningResult(deep);
  EXPECT_FALSE(file.complete);
  EXPECT_THAT(Whats(file), ElementsAre(HasSubstr("more than 64 levels")));
  EXPECT_THAT(Whats(ParseTuningResult("{}")), ElementsAre(HasSubstr("not a result of AOE")));
  EXPECT_THAT(Whats(ParseTuningResult("hello")), ElementsAre(HasSubstr("ends in line 1")));
  std::string many = R"({"report_1_1": [{"OPAT": {"tuning_failed_operators": [)";
  for (size_t i = 0; i <= kMostTuningRows; ++i) many += "\"x\",";
  EXPECT_EQ(ParseTuningResult(many + "]}}]}").left_out, 1u);
}

TEST(TuningResultTest, NamesOfFiles) {
  std::string timestamp;
  int64_t pid = 0;
  EXPECT_TRUE(IsTuningResultName("aoe_result_opat_20240101120000123_pid4242.json", &timestamp, &pid));
  EXPECT_EQ(timestamp, "20240101120000123");
  EXPECT_EQ(pid, 4242);
  EXPECT_TRUE(IsTuningResultName("aoe_result_sgat_20240101120000123_7.json", nullptr, nullptr));
  for (const char* other : {"aoe_result_opat_x_pid1.json", "aoe_result_opat_1.json", "aoe_result_xxxx_1_1.json", "aoe_result_opat_1_pid.json"}) {
    EXPECT_FALSE(IsTuningResultName(other, nullptr, nullptr)) << other;
  }
}

TEST(TuningResultTest, CsvHasARowForEachStrategyAndSubgraph) {
  TuningResults results;
  results.files = {ParseTuningResult(kOperators), ParseTuningResult(kSubgraphs)};
  const std::string csv = TuningCsv(results);
  EXPECT_THAT(csv, HasSubstr(",tune_bert,successful,operator,bert/MatMulbert/add,MatMulV2;Add,Schedule,add,16.71,15.71,6.365\n"));
  EXPECT_THAT(csv, HasSubstr(",tune_graph,successful,subgraph,1024942313106047484,,,add,5584.34,3573.203,56.284\n"));
  EXPECT_THAT(csv, HasSubstr(",second,failed,failed operator,res4a_branch1,"));
}

Run RunOf(std::vector<std::pair<std::string, int64_t>> operators_us, int64_t step_us) {
  Run run;
  auto rank = std::make_unique<Rank>();
  const int32_t lane = rank->LaneOf("Ascend Hardware", "Stream 1");
  int64_t now = 0;
  for (const auto& [name, us] : operators_us) {
    const int32_t op = rank->OperatorOf(rank->Text(name), rank->Text(name.substr(name.rfind('/') + 1)), rank->Text("AI_CORE"));
    rank->executions.push_back({now, now + us * 1000, op, lane, 0, 0});
    now += us * 1000;
  }
  for (int i = 0; i < 3; ++i) rank->steps.push_back({i, i * step_us * 1000, (i + 1) * step_us * 1000, {}, {}, {}});
  run.ranks.push_back(std::move(rank));
  return run;
}

TEST(TuningVerifyTest, PromisesAgainstProfiles) {
  const auto tuned = [](std::string name, std::string type, double before, double after) {
    return TunedOperator{std::move(name), {std::move(type)}, "Schedule", "add", {before, after, std::nullopt}};
  };
  TuningResults results;
  TuningTask& task = results.files.emplace_back().tasks.emplace_back();
  task.operators = {tuned("a/MatMul_OPAT_0", "MatMul", 100, 50), tuned("b/Add", "Add", 100, 50), tuned("c/Mul", "Mul", 100, 50),
                    tuned("d/Sub", "Sub", 100, 50), tuned("x/y", "Relu", 100, 50), tuned("gone", "Gone", 100, 50)};
  const Json found = VerifyTuning(RunOf({{"a/MatMul", 100}, {"b/Add", 100}, {"c/Mul", 100}, {"d/Sub", 100}, {"e/Relu", 100}}, 600),
                                  RunOf({{"a/MatMul", 50}, {"b/Add", 80}, {"c/Mul", 99}, {"d/Sub", 120}, {"e/Relu", 50}}, 400), results);
  std::vector<std::string> verdicts, by;
  for (const Json& each : found["operators"]) {
    verdicts.push_back(each["verdict"]);
    by.push_back(each["found_by"].is_null() ? "" : each["found_by"]);
  }
  EXPECT_THAT(verdicts, ElementsAre("seen", "partly", "not_seen", "slower", "seen", "not_in_profile"));
  EXPECT_THAT(by, ElementsAre("name", "name", "name", "name", "type", ""));
  EXPECT_EQ(found["operators"][0]["gain_percent"], 100.0);
  EXPECT_DOUBLE_EQ(found["step"]["gain_percent"].get<double>(), 50.0);
  EXPECT_EQ(found["counts"]["seen"], 2u);
}

}  // namespace
}  // namespace profd::analysis
