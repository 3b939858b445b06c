// Checks that put ranks, or executions of the same operators, beside each other.
#include <gtest/gtest.h>

#include "analysis/checks/check.h"

namespace profd::analysis {
namespace {

// Of each step computing and free time, ms; a step without any is not there.
void AddRank(Run* run, const std::map<int64_t, std::pair<double, double>>& steps) {
  auto rank = std::make_unique<Rank>();
  rank->rank = static_cast<int>(run->ranks.size());
  for (const auto& [step, ms] : steps) rank->shares[step] = {ms.first, 0, 0, ms.second};
  run->ranks.push_back(std::move(rank));
}

std::string SlowRankIn(const Run& run) {
  const Limits limits;
  const Cluster cluster(run);
  CheckInput input{run, *run.ranks.front(), limits};
  input.cluster = &cluster;
  const auto finding = CheckSlowRank(input);
  return finding ? finding->evidence.en : "";
}

TEST(SlowRankTest, ComparesRanksInTheSameStep) {
  profd::analysis::Run run;
  AddRank(&run, {{1, {10, 0}}, {2, {50, 0}}, {3, {20, 0}}});
  AddRank(&run, {{1, {11, 0}}, {2, {51, 0}}, {3, {26, 0}}, {4, {90, 0}}});
  EXPECT_EQ(SlowRankIn(run), "Computing differs by 6.000 ms between ranks: 26.000 ms on rank 1 in step 3, 20.000 ms on rank 0 in step 3");
}

TEST(SlowRankTest, ComparesMeansWhereNoStepIsCommon) {
  profd::analysis::Run run;
  AddRank(&run, {{1, {10, 0}}, {2, {20, 0}}});
  AddRank(&run, {{3, {30, 0}}, {4, {10, 0}}});
  EXPECT_EQ(SlowRankIn(run), "Computing differs by 5.000 ms between ranks: 20.000 ms on rank 1, 15.000 ms on rank 0");
}

// Those cut by the begin of the recording look short.
TEST(SlowRankTest, PassesOverStepsThatWereRecordedInPart) {
  profd::analysis::Run run;
  AddRank(&run, {{1, {2, 98}}, {2, {50, 50}}});
  AddRank(&run, {{1, {50, 50}}, {2, {50, 50}}});
  for (const auto& rank : run.ranks) rank->steps = {{1, 0, 100, {}, {}, {}}, {2, 100, 200, {}, {}, {}}};
  run.ranks[0]->recorded = Interval{98, 200};
  EXPECT_EQ(SlowRankIn(run), "No rank is slow");
}

// Kernels alone (task_time=l0): the rank that computes less looks free while it waits for the other.
TEST(SlowRankTest, FreeTimeIsNotComparedWithoutCommunication) {
  profd::analysis::Run run;
  AddRank(&run, {{1, {10, 30}}});
  AddRank(&run, {{1, {30, 10}}});
  const std::string computing = "Computing differs by 20.000 ms between ranks: 30.000 ms on rank 1 in step 1, 10.000 ms on rank 0 in step 1";
  const std::string free = "Free time differs by 20.000 ms between ranks: 30.000 ms on rank 0 in step 1, 10.000 ms on rank 1 in step 1";
  EXPECT_EQ(SlowRankIn(run), computing + ". " + free) << "of a tool's table";
  for (const auto& rank : run.ranks) rank->source = "dump";
  EXPECT_EQ(SlowRankIn(run), computing);
  run.ranks[0]->shares[1].communication = 1;
  EXPECT_EQ(SlowRankIn(run), computing + ". " + free);
}

// As many kernels with steps and without are as slow.
TEST(KernelCompareTest, ComparesRanksWhereASideHasNoSteps) {
  profd::analysis::Run run;
  profd::analysis::Run other;
  AddRank(&run, {});
  AddRank(&other, {{1, {1, 0}}, {2, {1, 0}}});
  for (const profd::analysis::Run* of : {&run, &other}) {
    Rank& rank = *of->ranks.front();
    const int32_t op = rank.OperatorOf(rank.Text("a"), rank.Text("Mul"), kNoText);
    rank.executions = {{0, 1'000'000, op}, {1'000'000, 2'000'000, op}};
  }
  const Limits limits;
  CheckInput input{run, *run.ranks.front(), limits};
  input.compared = {run.ranks.front().get()};
  input.compared_with = {other.ranks.front().get()};
  const auto bare = CheckKernelCompare(input);
  ASSERT_TRUE(bare.has_value());
  EXPECT_EQ(bare->cost_ms, 0.0);
  EXPECT_EQ(bare->rows.front()[12], 1.0);
  AddRank(&run, {{1, {1, 0}}});  // without kernels, it is none of those compared
  input.compared.push_back(run.ranks.back().get());
  EXPECT_EQ(CheckKernelCompare(input)->rows.front()[12], 1.0);
  EXPECT_EQ(CheckKernelCompare(input)->cost_ms, std::nullopt);
  run.ranks.front()->shares[1] = {2, 0, 0, 0};
  EXPECT_EQ(CheckKernelCompare(input)->cost_ms, 1.0) << "2 ms of a step beside 1 ms";
}

// "a", "b", "a", ...: sequences of both overlap themselves and each other.
TEST(FusibleOperatorsTest, EachExecutionCountsOnce) {
  profd::analysis::Run run;
  Rank rank;
  const int32_t ops[] = {rank.OperatorOf(rank.Text("a"), kNoText, kNoText), rank.OperatorOf(rank.Text("b"), kNoText, kNoText)};
  for (int64_t i = 0; i < 40; ++i) rank.executions.push_back({100'000 * i, 100'000 * i + 10'000, ops[i % 2]});
  const Limits limits;
  const auto finding = CheckFusibleOperators({run, rank, limits});
  ASSERT_TRUE(finding.has_value());
  EXPECT_EQ(finding->evidence.en, "2 sequences repeat; from begin to end 3.910 ms, of which the device was busy for 0.400 ms");
  // 10 operators from 0, 2, ... 30, and from 1, 3, ... 29, as the vendor's table has them.
  ASSERT_EQ(finding->rows.size(), 2u);
  EXPECT_EQ(finding->rows[0][5], 16);
  EXPECT_EQ(finding->rows[1][5], 15);
}

// The device is not busy for longer than from begin to end.
TEST(FusibleOperatorsTest, TimeOfSeveralStreamsCountsOnce) {
  profd::analysis::Run run;
  Rank rank;
  const int32_t op = rank.OperatorOf(rank.Text("a"), kNoText, kNoText);
  for (int64_t i = 0; i < 40; ++i) rank.executions.push_back({100'000 * (i / 4), 100'000 * (i / 4) + 5'000, op});
  const Limits limits;
  const auto finding = CheckFusibleOperators({run, rank, limits});
  ASSERT_TRUE(finding.has_value());
  EXPECT_EQ(finding->evidence.en, "1 sequence repeats; from begin to end 0.905 ms, of which the device was busy for 0.050 ms");
}

}  // namespace
}  // namespace profd::analysis
