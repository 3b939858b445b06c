// Which rank's findings the advice has, and what it makes of what is not known.
#include "analysis/checks/advise.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "analysis/checks/translated_text.h"
#include "analysis/cluster/cluster_view.h"

namespace profd::analysis {
namespace {

using ::testing::HasSubstr;

class AdviseTest : public ::testing::Test {
 protected:
  // With one step of a computing and a free time in ms, and an operator on the AI CPU.
  static Rank* Add(analysis::Run* run, double computing, double free) {
    auto rank = std::make_unique<Rank>();
    rank->rank = static_cast<int>(run->ranks.size());
    rank->shares[1] = {computing, 30, 30, free};
    const int32_t op = rank->OperatorOf(rank->Text("Cast"), rank->Text("Cast"), rank->Text("AI_CPU"), kNoText);
    rank->executions.push_back({0, 50'000, op, rank->LaneOf("Ascend Hardware", "Stream 1")});
    run->ranks.push_back(std::move(rank));
    return run->ranks.back().get();
  }
  static void AddTransfer(Rank* rank, const char* transport, double size_mb, double time_ms) {
    Collective& made = rank->collectives.emplace_back();
    made.name = rank->Text("hcom_allReduce__1");
    made.transports.push_back({transport, size_mb, time_ms});
  }
  Json Find(const char* check, const analysis::Run* baseline = nullptr) const {
    for (const Json& each : Advise(run_, baseline, limits_, Language::kEnglish)) {
      if (each["check"] == check) return each;
    }
    return nullptr;
  }

  analysis::Run run_;
  Limits limits_;
};

TEST_F(AdviseTest, BesideAClusterTheLargestDifferenceDecides) {
  for (const double computing : {20, 40, 30}) Add(&run_, computing, 10);
  EXPECT_EQ(Find("aicpu")["rank"], 1);
  analysis::Run baseline;
  for (const double computing : {5, 39, 30}) Add(&baseline, computing, 10);
  EXPECT_EQ(Find("aicpu", &baseline)["rank"], 0);
}

// 0.005 of a mean of 0.1 ms are 5 %, in whatever unit they are counted (analysis 1.1).
TEST_F(AdviseTest, ARankThatDiffersByTheLimitIsLookedAt) {
  for (const double computing : {0.0975, 0.1, 0.1025}) Add(&run_, computing, 10);
  EXPECT_EQ(Find("aicpu")["rank"], 2);
  run_.ranks.back()->shares[1].computing = 0.1024;
  EXPECT_EQ(Find("aicpu")["rank"], 0);
}

// analysis 1.6: vec, mte2 and mte3 at 0.9 together.
TEST_F(AdviseTest, SharesThatAddUpToTheLimitReachIt) {
  Rank* const rank = Add(&run_, 20, 10);
  rank->ratio_names = {"aiv_vec", "aiv_mte2", "aiv_mte3"};
  const int32_t add = rank->OperatorOf(rank->Text("Add"), rank->Text("Add"), rank->Text("AI_VECTOR_CORE"), kNoText);
  Operator& op = rank->operators[static_cast<size_t>(add)];
  op.counted_ns = 1000;
  op.ratio_ns = {300, 300, 300};
  rank->executions.push_back({60'000, 61'000, add, rank->executions[0].lane});
  EXPECT_EQ(Find("ai_core_performance")["table"]["rows"][0][1], "bound");
  op.ratio_ns[0] = 299;
  EXPECT_EQ(Find("ai_core_performance")["table"]["rows"][0][1], "improvable");
}

TEST_F(AdviseTest, SmallPacketsWithoutRdmaAreLookedForWhereSdmaIsSlowest) {
  for (const double ms : {1.0, 3.0, 1.0}) {
    Rank* const rank = Add(&run_, 20, 10);
    AddTransfer(rank, "SDMA", 100, 5);
    for (int i = 0; i < 9; ++i) AddTransfer(rank, "SDMA", rank->rank == 1 ? 0.5 : 100, ms);
  }
  const Json packet = Find("packet");
  ASSERT_FALSE(packet.is_null());
  EXPECT_EQ(packet["rank"], 1);
}

TEST_F(AdviseTest, AVariableOfOneRankAloneIsFound) {
  for (int i = 0; i < 3; ++i) Add(&run_, 20, 10)->environment["ASCEND_LAUNCH_BLOCKING"] = i == 2 ? "1" : "0";
  const Json found = Find("environment");
  ASSERT_FALSE(found.is_null());
  EXPECT_EQ(found["rank"], 2);
  // Of several the first with most of them.
  for (int i = 0; i < 2; ++i) Add(&run_, 20, 10)->environment = {{"ASCEND_LAUNCH_BLOCKING", "1"}, {"HCCL_ALGO", "x"}};
  EXPECT_EQ(Find("environment")["rank"], 3);
}

TEST_F(AdviseTest, ARankOfWhichOnlyCommunicationIsKnownDoesNotDifferInComputing) {
  for (int i = 0; i < 2; ++i) Add(&run_, 50, 20);
  Rank* const unknown = Add(&run_, 0, 0);
  unknown->shares.clear();
  unknown->executions.clear();
  unknown->steps.push_back({1, 0, 100'000'000, {}, {}, {}});
  unknown->overlap[OverlapKind::kCommunication] = {{0, 30'000'000}};
  unknown->overlap[OverlapKind::kNotOverlapped] = {{0, 30'000'000}};
  AddTransfer(unknown, "SDMA", 100, 5);
  const Json found = Find("slow_rank");
  ASSERT_FALSE(found.is_null());
  EXPECT_EQ(found["table"]["rows"].size(), 2u) << found.dump();
  EXPECT_THAT(found["evidence"].get<std::string>(), ::testing::Not(HasSubstr("Computing differs")));
  const Cluster cluster(run_);
  const Json view = ClusterView(cluster);
  const Json& row = view["rank_times"][2];
  EXPECT_TRUE(row["computing_ms"].is_null()) << row.dump();
  EXPECT_TRUE(row["free_ms"].is_null()) << row.dump();
  EXPECT_EQ(row["uncovered_communication_ms"], 30);
}

// 5 of 100 us are 5 %, which is high priority (analysis 1.2).
TEST_F(AdviseTest, AnExactShareReachesItsPriority) {
  for (const int64_t cpu_ns : {5'000, 4'999}) {
    run_.ranks.clear();
    Rank* const rank = Add(&run_, 20, 10);
    rank->executions[0].end_ns = cpu_ns;
    const int32_t add = rank->OperatorOf(rank->Text("Add"), rank->Text("Add"), rank->Text("AI_VECTOR_CORE"), kNoText);
    rank->executions.push_back({10'000, 110'000 - cpu_ns, add, rank->executions[0].lane});
    EXPECT_EQ(Find("aicpu")["priority"], cpu_ns == 5'000 ? "high" : "medium");
  }
}

// 7.0.RC1 has no INT16 for Cast, and no COMPLEX64 for what no rule names; 8.0.0 has no rules (analysis 1.5).
TEST_F(AdviseTest, TypesThatTheVersionHasOnTheAiCpuOnly) {
  Rank* const rank = Add(&run_, 20, 10);
  rank->operators[0].input_types = rank->Text("FLOAT;INT16");
  const int32_t add = rank->OperatorOf(rank->Text("Add"), rank->Text("Add"), rank->Text("AI_CPU"), kNoText);
  rank->operators[static_cast<size_t>(add)].input_types = rank->Text("INT32;COMPLEX64");
  rank->executions.push_back({60'000, 90'000, add, rank->executions[0].lane});
  const auto advice_of = [&](const char* version) {
    rank->cann_version = version;
    return Find("aicpu")["advice"].dump();
  };
  EXPECT_THAT(advice_of("7.0.RC1"), ::testing::AllOf(HasSubstr("Cast: of INT16, CANN 7.0.RC1"), HasSubstr("Add: of COMPLEX64"),
                                                     ::testing::Not(HasSubstr("of FLOAT")), ::testing::Not(HasSubstr("of INT32"))));
  EXPECT_THAT(advice_of("8.0.RC1"), ::testing::AllOf(HasSubstr("Cast: of INT16"), ::testing::Not(HasSubstr("of COMPLEX64"))));
  EXPECT_THAT(advice_of("8.0.0"), ::testing::Not(HasSubstr(" of INT16")));
  EXPECT_THAT(advice_of(""), ::testing::Not(HasSubstr(" of INT16")));
}

// Equal makes BOOL and NonZero INT64, whatever their inputs are; other outputs are of the types of inputs (analysis 1.5).
TEST_F(AdviseTest, OutputsHaveTypesThatTheVersionHasOnTheAiCpuOnly) {
  Rank* const rank = Add(&run_, 20, 10);
  const auto add = [rank](const char* type, const char* output) {
    const int32_t number = rank->OperatorOf(rank->Text(type), rank->Text(type), rank->Text("AI_CPU"), kNoText);
    rank->operators[static_cast<size_t>(number)].output_types = rank->Text(output);
    rank->executions.push_back({60'000, 90'000, number, rank->executions[0].lane});
  };
  add("Equal", "BOOL;FLOAT");
  add("NonZero", "INT32");
  add("Add", "FLOAT;N/A;COMPLEX64");
  const auto advice_of = [&](const char* version) {
    rank->cann_version = version;
    return Find("aicpu")["advice"].dump();
  };
  EXPECT_THAT(advice_of("7.0.RC1"), ::testing::AllOf(HasSubstr("Equal: with an output of FLOAT, CANN 7.0.RC1 may compute it on the AI CPU only; try bool."),
                                                     HasSubstr("NonZero: with an output of INT32"), HasSubstr("try int64."), HasSubstr("Add: with an output of COMPLEX64"),
                                                     ::testing::Not(HasSubstr("output of BOOL")), ::testing::Not(HasSubstr("output of N/A"))));
  EXPECT_THAT(advice_of("7.0.0"), ::testing::AllOf(HasSubstr("Equal: with an output of FLOAT"), ::testing::Not(HasSubstr("NonZero: with an output")),
                                                   ::testing::Not(HasSubstr("COMPLEX64"))));
  EXPECT_THAT(advice_of("8.0.0"), ::testing::Not(HasSubstr("with an output of")));
}

// One name and shape, of which a later call takes other types.
TEST_F(AdviseTest, TypesOfEachCallOfAnAiCpuOperatorCount) {
  Rank* const rank = Add(&run_, 20, 10);
  rank->cann_version = "7.0.RC1";
  Operator& cast = rank->operators[0];
  cast.input_types = rank->Text("FLOAT");
  cast.output_types = rank->Text("FLOAT16");
  cast.AddTypes(cast.input_types, cast.output_types);
  EXPECT_TRUE(cast.other_types.empty());
  EXPECT_THAT(Find("aicpu")["advice"].dump(), ::testing::Not(HasSubstr("use float")));
  for (int i = 0; i < 2; ++i) cast.AddTypes(rank->Text("DOUBLE"), rank->Text("INT16"));
  EXPECT_EQ(cast.other_types.size(), 1u);
  EXPECT_THAT(Find("aicpu")["advice"].dump(), ::testing::AllOf(HasSubstr("use float"), HasSubstr("Cast: of DOUBLE"), HasSubstr("Cast: with an output of INT16")));
}

// analysis 1.3: a hint to record more where free time is more than 10 %.
TEST_F(AdviseTest, WhereOnlyTheDeviceWasRecordedTheHostShouldBe) {
  Rank* rank = Add(&run_, 60, 10);
  rank->only_device = true;
  EXPECT_THAT(Find("overall_summary")["advice"].at(0).get<std::string>(), HasSubstr("checks of schedule"));
  rank->shares[1].free = 10.1;
  EXPECT_THAT(Find("overall_summary")["advice"].at(0).get<std::string>(), HasSubstr("ProfilerActivity.CPU"));
  rank->only_device = false;
  EXPECT_THAT(Find("overall_summary")["advice"].at(0).get<std::string>(), HasSubstr("checks of schedule"));
}

TEST(TranslatedText, CountsHaveTheirNounInEnglish) {
  const auto text = [](size_t count) { return Translate({"{:operator} ran {} ms", "{} 个算子运行 {} ms"}, Counted{count}, 5); };
  EXPECT_EQ(text(1).en, "1 operator ran 5 ms");
  EXPECT_EQ(text(2).en, "2 operators ran 5 ms");
  EXPECT_EQ(text(1).zh, "1 个算子运行 5 ms");
  const auto verb = [](size_t count) { return Translate({"{:operator is|operators are} cut", "{} 个算子"}, Counted{count}); };
  EXPECT_EQ(verb(1).en, "1 operator is cut");
  EXPECT_EQ(verb(0).en, "0 operators are cut");
}

}  // namespace
}  // namespace profd::analysis
