#include "analysis/find_points.h"

#include <gtest/gtest.h>

namespace profd::analysis {
namespace {

void Execute(Rank* rank, std::string_view name, int64_t start_ns, int64_t end_ns) {
  const int32_t op = rank->OperatorOf(rank->Text(name), rank->Text("Type"), rank->Text("AI_CORE"));
  rank->executions.push_back({start_ns, end_ns, op, 0});
}

void Reduce(Rank* rank, std::string_view name, int64_t start_ns, double ms) {
  Collective& made = rank->collectives.emplace_back();
  made.name = rank->Text(name);
  made.start_ns = start_ns;
  made.elapse_ms = ms;
}

constexpr int64_t kFirstNs = 1000;
constexpr int64_t kSecondNs = 2'000'000;

void TwoSteps(Rank* rank) {
  for (const int64_t at : {kFirstNs, kSecondNs}) {
    Step& step = rank->steps.emplace_back();
    step.number = static_cast<int>(rank->steps.size());
    step.start_ns = at;
    step.end_ns = at == kFirstNs ? kSecondNs : 2 * kSecondNs;
    Execute(rank, "GetNext_1", at + 10, at + 100);
    Execute(rank, "conv_forward", at + 200, at + 300);
    Execute(rank, "conv_backward", at + 400, at + 900);
    Execute(rank, "adam", at + 5000, at + 6000);
    Reduce(rank, "hcom_allReduce__1_0_1", at + 1000, 0.002);
  }
}

TEST(FindPoints, ForwardIsBehindTheBatchAndBackwardBeforeTheLastAllReduce) {
  Rank rank;
  TwoSteps(&rank);
  FindPoints(&rank);
  for (const Step& step : rank.steps) {
    ASSERT_TRUE(step.fp_ns && step.bp_ns);
    EXPECT_EQ(*step.fp_ns, step.start_ns + 200);
    EXPECT_EQ(*step.bp_ns, step.start_ns + 900);
    ASSERT_EQ(step.reduces.size(), 1u);
    EXPECT_EQ(step.reduces[0].start_ns, step.start_ns + 1000);
    EXPECT_EQ(step.reduces[0].end_ns, step.start_ns + 3000);
  }
  EXPECT_EQ(rank.TextOf(rank.fp_point), "conv_forward");
  EXPECT_EQ(rank.TextOf(rank.bp_point), "conv_backward");
}

TEST(FindPoints, WithoutCommunicationBackwardEndsWithTheLastOperator) {
  Rank rank;
  TwoSteps(&rank);
  rank.collectives.clear();
  FindPoints(&rank);
  EXPECT_EQ(*rank.steps[0].bp_ns, rank.steps[0].start_ns + 6000);
  EXPECT_TRUE(rank.steps[0].reduces.empty());
}

TEST(FindPoints, NoEndOfBackwardWhereOperationsOfCommunicationAreMissing) {
  const auto with_time = [](Rank* rank, int which) {
    if (which == 0) rank->longest_communication_ns = 1;
    if (which == 1) rank->overlap[OverlapKind::kCommunication].push_back({kFirstNs + 1000, kFirstNs + 3000});
    if (which == 2) rank->shares[1].communication = 0.002;
  };
  for (const int which : {0, 1, 2}) {
    Rank rank;
    TwoSteps(&rank);
    rank.collectives.clear();
    with_time(&rank, which);
    FindPoints(&rank);
    EXPECT_EQ(*rank.steps[0].fp_ns, rank.steps[0].start_ns + 200) << which;
    EXPECT_FALSE(rank.steps[0].bp_ns) << which;
    EXPECT_EQ(rank.bp_point, kNoText) << which;
    // A given operator is where it is.
    Rank given;
    TwoSteps(&given);
    given.collectives.clear();
    given.bp_point = given.Text("conv_backward");
    with_time(&given, which);
    FindPoints(&given);
    EXPECT_EQ(*given.steps[0].bp_ns, given.steps[0].start_ns + 900) << which;
  }
}

TEST(FindPoints, KeepsRecordedPoints) {
  Rank rank;
  TwoSteps(&rank);
  rank.steps[0].fp_ns = 1500;
  FindPoints(&rank);
  EXPECT_EQ(*rank.steps[0].fp_ns, 1500);
  EXPECT_FALSE(rank.steps[0].bp_ns);
  EXPECT_FALSE(rank.steps[1].fp_ns);
}

TEST(FindPoints, NothingWithoutSteps) {
  Rank rank;
  TwoSteps(&rank);
  rank.steps.clear();
  FindPoints(&rank);
  EXPECT_EQ(rank.fp_point, kNoText);
}

TEST(FindPoints, NothingWithoutOperators) {
  Rank rank;
  TwoSteps(&rank);
  rank.executions.clear();
  FindPoints(&rank);
  EXPECT_FALSE(rank.steps[0].fp_ns);
}

}  // namespace
}  // namespace profd::analysis
