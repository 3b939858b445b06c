#include "sim/app/step_plan.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <map>

namespace profd::sim::app {
namespace {

using testing::Contains;
using testing::ElementsAre;
using testing::Not;

constexpr char kJob[] = R"(
steps = 8
data_parallel = 2
[[layer]]
name = "block"
count = 2
gradient_mb = 1
[[layer.operator]]
type = "MatMulV2"
us = 100
backward_us = 200
[[layer.operator]]
type = "Relu"
core = "aivec"
us = 10
[[optimizer]]
type = "ApplyAdam"
us = 50
)";

Job Make(const std::string& problems = "", const std::string& text = kJob) {
  Result<Job> job = ParseJob(text + "\n[problems]\n" + problems);
  EXPECT_TRUE(job.ok()) << job.status().message();
  return *job;
}

std::vector<std::string> Names(const std::vector<Action>& actions, Action::Kind kind) {
  std::vector<std::string> names;
  for (const Action& action : actions) {
    if (action.kind == kind) names.push_back(action.name);
  }
  return names;
}
std::vector<Action> Of(const std::vector<Action>& actions, Action::Kind kind) {
  std::vector<Action> found;
  std::copy_if(actions.begin(), actions.end(), std::back_inserter(found),
               [kind](const Action& action) { return action.kind == kind; });
  return found;
}
int64_t LaunchedNs(const Job& job, uint32_t rank, int64_t step) {
  int64_t sum = 0;
  for (const Action& action : PlanStep(job, rank, step)) {
    if (action.kind == Action::kLaunch) sum += action.duration_ns;
  }
  return sum;
}

TEST(StepPlan, GoesForwardBackwardAndUpdates) {
  const Job job = Make();
  EXPECT_THAT(Names(PlanStep(job, 0, 0), Action::kLaunch),
              ElementsAre("block_0/MatMulV2", "block_0/Relu", "block_1/MatMulV2", "block_1/Relu",
                          "block_1/MatMulV2_grad", "block_0/MatMulV2_grad", "ApplyAdam"));
  const auto reductions = Of(PlanStep(job, 0, 0), Action::kCommunication);
  ASSERT_EQ(reductions.size(), 2u);
  EXPECT_EQ(reductions[0].name, "hcom_allReduce__block_1_0");
  EXPECT_EQ(reductions[0].stream, kCommunicate);
  EXPECT_EQ(reductions[0].group.name, "dp_0");
  EXPECT_EQ(reductions[0].bytes, 1'000'000u);
  // A ring of two moves every byte once, at 25 bytes/ns, after 10 us.
  EXPECT_EQ(reductions[0].duration_ns, 1'000'000 / 25 + 10'000);
}

TEST(StepPlan, DurationsVaryALittleAndAlwaysInTheSameWay) {
  const Job job = Make();
  EXPECT_EQ(LaunchedNs(job, 0, 1), LaunchedNs(job, 0, 1));
  EXPECT_NE(LaunchedNs(job, 0, 1), LaunchedNs(job, 0, 2));
  const int64_t nominal = 2 * (100'000 + 10'000 + 200'000) + 50'000;
  EXPECT_GE(LaunchedNs(job, 0, 1), nominal);
  EXPECT_LE(LaunchedNs(job, 0, 1), nominal + nominal / 50);
}

TEST(StepPlan, AllMembersOfAGroupDoTheSameInTheSameOrder) {
  const std::string text = R"(
tensor_parallel = 2
data_parallel = 2
pipeline_parallel = 2
microbatches = 3
activation_mb = 1
[[layer]]
count = 4
gradient_mb = 1
tensor_mb = 1
expert_mb = 1
[[layer.operator]]
type = "MatMulV2"
us = 1
backward_us = 1
)";
  const Job job = Make("sync_batch_norm = 2\nsmall_packets = 3\n", text);
  ASSERT_EQ(job.ranks(), 8u);
  std::map<std::string, std::map<uint32_t, std::vector<uint64_t>>> bytes;
  std::map<std::string, Stream> streams;
  for (uint32_t rank = 0; rank < 8; ++rank) {
    for (const Action& action : Of(PlanStep(job, rank, 0), Action::kCommunication)) {
      ASSERT_LT(action.group.rank, action.group.members);
      bytes[action.group.name][action.group.rank].push_back(action.bytes);
      // A group that two streams use could wait for itself.
      const auto known = streams.emplace(action.group.name, action.stream).first;
      EXPECT_EQ(known->second, action.stream) << action.group.name;
    }
  }
  EXPECT_EQ(bytes.size(), 4u + 4u + 4u + 8u);  // dp, ep, tp, and pp forward and backward
  for (const auto& [name, members] : bytes) {
    ASSERT_EQ(members.size(), 2u) << name;
    EXPECT_EQ(members.at(0), members.at(1)) << name;
  }
}

TEST(StepPlan, AStageHasItsLayersOnly) {
  const std::string text =
      "pipeline_parallel = 2\n[[layer]]\nname = \"a\"\ncount = 3\n[[layer.operator]]\ntype = "
      "\"Op\"\nus = 1\n";
  const Job job = Make("", text);
  EXPECT_THAT(Names(PlanStep(job, 0, 0), Action::kLaunch), ElementsAre("a_0/Op"));
  EXPECT_THAT(Names(PlanStep(job, 1, 0), Action::kLaunch), ElementsAre("a_1/Op", "a_2/Op"));
}

TEST(Problems, AicpuOperators) {
  const auto launched = Of(PlanStep(Make("aicpu_operators = 2"), 0, 0), Action::kLaunch);
  EXPECT_EQ(launched[1].task_type, prof::kTaskAicpu);
  EXPECT_NE(launched[2].task_type, prof::kTaskAicpu);
  EXPECT_GE(launched[0].duration_ns, 20 * 100'000);
}

TEST(Problems, DynamicShapes) {
  EXPECT_THAT(Names(PlanStep(Make("dynamic_shapes = 1"), 0, 0), Action::kPause),
              ElementsAre("compile MatMulV2"));
}

TEST(Problems, SyncStreams) {
  EXPECT_EQ(Of(PlanStep(Make(), 0, 0), Action::kSynchronize).size(), 1u);
  EXPECT_EQ(Of(PlanStep(Make("sync_streams = 2"), 0, 0), Action::kSynchronize).size(), 1u + 3u);
}

TEST(Problems, GcGaps) {
  const Job job = Make("gc_gaps = 40");
  EXPECT_THAT(Names(PlanStep(job, 0, 2), Action::kPause), Not(Contains("gc")));
  const auto pauses = Of(PlanStep(job, 0, 3), Action::kPause);
  ASSERT_EQ(pauses.size(), 1u);
  EXPECT_EQ(pauses[0].duration_ns, 40'000'000);
}

TEST(Problems, SmallPackets) {
  const auto parts = Of(PlanStep(Make("small_packets = 4"), 0, 0), Action::kCommunication);
  ASSERT_EQ(parts.size(), 8u);
  EXPECT_EQ(parts[0].bytes, 250'000u);
}

TEST(Problems, SlowLinks) {
  const auto first = [](const char* problems) {
    return Of(PlanStep(Make(problems), 0, 0), Action::kCommunication).at(0).duration_ns;
  };
  EXPECT_EQ(first("contention = 50"), 60'000 + 10'000);
  EXPECT_EQ(first("slow_link = 100"), 80'000 + 10'000);
  int retransmitted = 0;
  const Job job = Make("retransmission = 50");
  for (int64_t step = 0; step < 100; ++step) {
    const auto reductions = Of(PlanStep(job, 0, step), Action::kCommunication);
    retransmitted += reductions.at(0).duration_ns == 200'000 + 10'000;
    EXPECT_EQ(reductions.at(0).duration_ns,
              Of(PlanStep(job, 1, step), Action::kCommunication).at(0).duration_ns);
  }
  EXPECT_GT(retransmitted, 30);
  EXPECT_LT(retransmitted, 70);
}

TEST(Problems, SlowRankAndLostClock) {
  EXPECT_GT(LaunchedNs(Make("slow_rank = 50"), 1, 0), LaunchedNs(Make(), 1, 0) * 14 / 10);
  EXPECT_EQ(LaunchedNs(Make("slow_rank = 50"), 0, 0), LaunchedNs(Make(), 0, 0));
  EXPECT_EQ(LaunchedNs(Make("frequency_loss = 50"), 0, 3), LaunchedNs(Make(), 0, 3));
  EXPECT_GT(LaunchedNs(Make("frequency_loss = 50"), 0, 4), LaunchedNs(Make(), 0, 4) * 19 / 10);
}

TEST(Problems, TheOthers) {
  EXPECT_EQ(Of(PlanStep(Make("memory_storm = 9"), 0, 0), Action::kAllocate).size(), 9u);
  EXPECT_THAT(Names(PlanStep(Make("slow_data_loader = 30"), 0, 0), Action::kPause),
              ElementsAre("dataloader"));
  EXPECT_EQ(Of(PlanStep(Make("sync_batch_norm = 2"), 0, 0), Action::kCommunication).size(), 4u);
  EXPECT_THAT(Names(PlanStep(Make("unfused_patterns = 2"), 0, 0), Action::kLaunch),
              Contains("block_0/Relu_part1"));
  const auto launched = Of(PlanStep(Make("low_occupancy = 1"), 0, 0), Action::kLaunch);
  EXPECT_EQ(launched[0].block_dim, 1u);
  EXPECT_GE(launched[0].duration_ns, 800'000);
}

}  // namespace
}  // namespace profd::sim::app
