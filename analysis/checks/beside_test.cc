// Checks of what is beside the operators: marks, the input pipeline, CPUs.
#include <gtest/gtest.h>

#include "analysis/checks/check.h"

namespace profd::analysis {
namespace {

constexpr int64_t kStepNs = 100'000'000;

// A rank with steps from `first` on.
struct Stepping : Rank {
  Stepping(int64_t first, int64_t count) {
    for (int64_t i = 0; i < count; ++i) steps.push_back({first + i, kStepNs * i, kStepNs * (i + 1), {}, {}, {}});
  }
};

// One of 20 ms in each step.
void MarkEachStep(std::string_view name, Rank* rank) {
  for (const Step& step : rank->steps) {
    rank->AddMark({step.start_ns + 1'000'000, step.start_ns + 21'000'000, rank->Text(name), kNoText, false});
  }
}

class ChecksBeside : public ::testing::Test {
 protected:
  CheckInput Input(const Rank& rank) {
    run_.ranks.clear();
    return {run_, rank, limits_};
  }
  analysis::Run run_;
  Limits limits_;
};

TEST_F(ChecksBeside, CompilationsBehindTheFirstSteps) {
  Stepping rank(0, 40);
  MarkEachStep("compile MatMulV2", &rank);
  const auto finding = CheckOperatorDispatch(Input(rank));
  ASSERT_TRUE(finding.has_value());
  EXPECT_NE(finding->evidence.en.find("30 marked ranges"), std::string::npos) << finding->evidence.en;
  EXPECT_DOUBLE_EQ(finding->cost_ms.value_or(0), 20.0 * 30 / 40);
  EXPECT_EQ(finding->at_ns, 10 * kStepNs + 1'000'000);
}

TEST_F(ChecksBeside, FewOrEarlyCompilationsAreNotReported) {
  Stepping early(0, 10);
  MarkEachStep("compile MatMulV2", &early);
  EXPECT_FALSE(CheckOperatorDispatch(Input(early)).has_value());
  Stepping few(100, 19);
  MarkEachStep("compile MatMulV2", &few);
  EXPECT_FALSE(CheckOperatorDispatch(Input(few)).has_value());
}

TEST_F(ChecksBeside, GarbageByItsRanges) {
  Stepping rank(100, 5);
  MarkEachStep("gc", &rank);
  rank.AddMark({0, 0, rank.Text("gc"), kNoText, true});
  const auto finding = CheckGc(Input(rank));
  ASSERT_TRUE(finding.has_value());
  EXPECT_DOUBLE_EQ(finding->cost_ms.value_or(0), 20);
  EXPECT_EQ(finding->rows.size(), 5u) << "an instant took no time";
  // The device was recorded in two of the steps only.
  rank.recorded = {kStepNs, 3 * kStepNs};
  EXPECT_DOUBLE_EQ(CheckGc(Input(rank))->cost_ms.value_or(0), 20);
  EXPECT_EQ(CheckGc(Input(rank))->rows.size(), 5u);
}

TEST_F(ChecksBeside, ProcessesFarFromTheirNpu) {
  const auto of = [this](const std::string& cpus, const std::string& local) {
    Rank rank;
    if (!cpus.empty()) rank.facts[std::string(kProcessCpus)] = cpus;
    if (!local.empty()) rank.facts[std::string(kLocalCpus)] = local;
    return CheckHostAffinity(Input(rank));
  };
  EXPECT_FALSE(of("0-31", "0-31").has_value());
  EXPECT_FALSE(of("3,5", "0-31,64-95").has_value());
  EXPECT_FALSE(of("0-32", "0-31").has_value()) << "nearly all are next to it";
  EXPECT_FALSE(of("", "0-31").has_value());
  EXPECT_FALSE(of("0-31", "").has_value());
  EXPECT_FALSE(of("0-99999999", "0-31").has_value()) << "no kernel's list";
  const auto unbound = of("0-63", "0-31");
  ASSERT_TRUE(unbound.has_value());
  EXPECT_EQ(unbound->priority, Priority::kInfo);
  const auto far = of("32-63", "0-31");
  ASSERT_TRUE(far.has_value());
  EXPECT_EQ(far->priority, Priority::kMedium);
  EXPECT_EQ(far->evidence.en, "it may run on CPUs 32-63; next to the NPU are 0-31");
}

// What counts is the thread that launches the kernels, where it is known.
TEST_F(ChecksBeside, ThreadsFarFromTheirNpu) {
  const auto of = [this](const std::string& process, const std::string& launcher) {
    Rank rank;
    rank.facts[std::string(kProcessCpus)] = process;
    rank.facts[std::string(kLaunchCpus)] = launcher;
    rank.facts[std::string(kLocalCpus)] = "0-31";
    return CheckHostAffinity(Input(rank));
  };
  EXPECT_FALSE(of("32-63", "4").has_value());
  const auto far = of("0-31", "40");
  ASSERT_TRUE(far.has_value());
  EXPECT_EQ(far->title.en, "The thread that launches kernels runs on CPUs far from its NPU");
  EXPECT_EQ(far->evidence.en, "it may run on CPUs 40; next to the NPU are 0-31");
  EXPECT_EQ(far->columns.front(), "cpus_of_launching_thread");
}

TEST_F(ChecksBeside, MindDataQueues) {
  Rank rank;
  rank.pipeline.host = {16, {0, 0, 0, 4}};
  rank.pipeline.get_next_ms = {30, 50};
  const auto finding = CheckDataloader(Input(rank));
  ASSERT_TRUE(finding.has_value());
  EXPECT_DOUBLE_EQ(finding->cost_ms.value_or(0), 40);
  EXPECT_NE(finding->evidence.en.find("Data processing"), std::string::npos);
  EXPECT_NE(finding->evidence.en.find("empty at 3 of 4 steps"), std::string::npos) << finding->evidence.en;
  rank.pipeline.host = {16, {8, 8, 0, 4}};
  EXPECT_FALSE(CheckDataloader(Input(rank)).has_value());
}

// Dataset.shuffle(buffer_size) has no num_parallel_workers.
TEST_F(ChecksBeside, AShuffleIsMadeFasterByItsBuffer) {
  Rank rank;
  rank.pipeline.host = {16, {0, 0, 0, 4}};
  rank.pipeline.operators.push_back({1, "Shuffle", 1, 10, {1}, std::nullopt, {2}, std::nullopt});
  rank.pipeline.operators.push_back({2, "TFReader", 4, 10, {9}, 1, {}, std::nullopt});
  const auto finding = CheckDataloader(Input(rank));
  ASSERT_TRUE(finding.has_value());
  ASSERT_EQ(finding->advice.size(), 1u);
  for (const std::string& advice : {finding->advice.front().en, finding->advice.front().zh}) {
    EXPECT_NE(advice.find("buffer_size"), std::string::npos) << advice;
    EXPECT_EQ(advice.find("num_parallel_workers"), std::string::npos) << advice;
  }
}

// Gaps lie between operators: a span of all tasks may begin before the first and end behind the last.
TEST_F(ChecksBeside, GapsAtTheBorderOfADatabase) {
  const auto gaps = [this](const Intervals& free, std::string_view group) {
    Rank rank;
    rank.span = Interval{0, 10 * kStepNs};
    rank.overlap[OverlapKind::kFree] = free;
    rank.slices.push_back({1, 2, rank.Text("aclrtLaunchKernel"), rank.LaneOf(group, "Thread 1")});
    const auto finding = CheckConjecturedGc(Input(rank));
    return finding ? finding->rows.size() : 0;
  };
  EXPECT_EQ(gaps({{0, 3 * kStepNs}, {4 * kStepNs, 7 * kStepNs}, {7 * kStepNs, 10 * kStepNs}}, "CANN"), 1u);
  EXPECT_EQ(gaps({{0, 3 * kStepNs}}, "CANN"), 0u);
  EXPECT_EQ(gaps({{4 * kStepNs, 7 * kStepNs}}, "Python"), 0u) << "no call of AscendCL was recorded";
}

}  // namespace
}  // namespace profd::analysis
