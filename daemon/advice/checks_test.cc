#include "daemon/advice/checks.h"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "daemon/advice/test_support.h"

namespace profd {
namespace {

using ::testing::HasSubstr;

std::string Joined(const std::vector<std::string>& texts) {
  std::string all;
  for (const std::string& text : texts) all += text + "\n";
  return all;
}

// What a check says of the job; none below its limit.
LiveFindings Said(const JobFacts& job, LiveFindings (*find)(const LiveInput&)) {
  const analysis::Limits limits;
  LiveFindings said;
  for (LiveFinding& finding : find({job, limits})) {
    if (finding.strength >= 1) said.push_back(std::move(finding));
  }
  return said;
}

TEST(LiveChecksTest, NothingIsWrongWithAJobThatIsWell) {
  const JobFacts job = WellJob();
  for (const LiveCheck& check : LiveChecks()) EXPECT_TRUE(Said(job, check.find).empty()) << check.id;
}

TEST(LiveChecksTest, NothingIsSaidOfAJobOfWhichNothingIsKnown) {
  JobFacts job;
  job.now_ns = kTestNow;
  job.ranks.resize(2);
  for (const LiveCheck& check : LiveChecks()) EXPECT_TRUE(Said(job, check.find).empty()) << check.id;
}

TEST(HangTest, ARankThatIsStoppedIsNamedBeforeThoseThatWaitForIt) {
  JobFacts job = WellJob();
  for (RankFacts& rank : job.ranks) rank.last_step_ns = kTestNow - 40 * kNsPerSecond;
  for (RankFacts& rank : job.ranks) rank.state = 'S';
  job.ranks[2].state = 'T';
  job.ranks[2].last_kernel_ns = kTestNow - 41 * kNsPerSecond;
  const LiveFindings said = Said(job, FindHang);
  ASSERT_EQ(said.size(), 1u);
  EXPECT_EQ(said[0].rank, &job.ranks[2]);
  EXPECT_EQ(said[0].step, 50);
  EXPECT_EQ(said[0].since_ns, kTestNow - 40 * kNsPerSecond);
  EXPECT_EQ(said[0].confidence, Confidence::kHigh);
  EXPECT_THAT(Joined(said[0].evidence), HasSubstr("stopped by a signal"));
  EXPECT_THAT(Joined(said[0].evidence), HasSubstr("41.0 s ago"));
  EXPECT_THAT(Joined(said[0].evidence), HasSubstr("4 of 4 ranks"));
}

TEST(HangTest, ARankFurthestBehindIsNamedWhereNoneIsStopped) {
  JobFacts job = WellJob();
  for (RankFacts& rank : job.ranks) rank.last_step_ns = kTestNow - 40 * kNsPerSecond;
  job.ranks[3].step = 49;
  const LiveFindings said = Said(job, FindHang);
  ASSERT_EQ(said.size(), 1u);
  EXPECT_EQ(said[0].rank, &job.ranks[3]);
}

// The others' last step ended earlier than its own, by a moment.
TEST(HangTest, ARankThatIsStoppedIsNamedWithTheFirstThatStands) {
  JobFacts job = WellJob();
  for (RankFacts& rank : job.ranks) rank.last_step_ns = kTestNow - 31 * kNsPerSecond;
  job.ranks[2].last_step_ns = kTestNow - 29 * kNsPerSecond;
  job.ranks[2].state = 'T';
  const LiveFindings said = Said(job, FindHang);
  ASSERT_EQ(said.size(), 1u);
  EXPECT_EQ(said[0].rank, &job.ranks[2]);
  // One that went on a moment ago is not.
  job.ranks[2].last_step_ns = kTestNow - kNsPerSecond;
  EXPECT_NE(Said(job, FindHang)[0].rank, &job.ranks[2]);
}

// hang.least_s is 30, hang.multiple 10 steps; between steps a job may do something else for four times as long.
TEST(HangTest, TimeDependsOnTheStepAndOnBeingInOne) {
  const auto hangs = [](double seconds, double step_ms, bool in_step) {
    JobFacts job = WellJob(1);
    job.ranks[0].step_ms = step_ms;
    job.ranks[0].in_step = in_step;
    job.ranks[0].last_step_ns = kTestNow - static_cast<int64_t>(seconds * 1e9);
    return !Said(job, FindHang).empty();
  };
  EXPECT_FALSE(hangs(29, 100, true));
  EXPECT_TRUE(hangs(31, 100, true));
  EXPECT_FALSE(hangs(99, 10'000, true));
  EXPECT_TRUE(hangs(101, 10'000, true));
  EXPECT_FALSE(hangs(119, 100, false));
  EXPECT_TRUE(hangs(121, 100, false));
}

TEST(SlowRankTest, TheOneThatIsWaitedForWithItsKernelsAndClock) {
  JobFacts job = WellJob();
  job.ranks[3].now = StepShares{88, 7, 2, 10};
  job.ranks[3].kernels = {{"MatMul", 250, 300, 0}};
  job.devices[3].clock_hz = 1.0e9;
  job.devices[3].throttle_reasons = {"temperature"};
  const LiveFindings said = Said(job, FindSlowRank);
  ASSERT_EQ(said.size(), 1u);
  EXPECT_EQ(said[0].rank, &job.ranks[3]);
  EXPECT_EQ(said[0].device, 3);
  EXPECT_DOUBLE_EQ(*said[0].cost_ms, 18);
  const std::string evidence = Joined(said[0].evidence);
  EXPECT_THAT(evidence, HasSubstr("1.25 times as long as on rank 0"));
  EXPECT_THAT(evidence, HasSubstr("NPU 3: its AI Cores run at 1000 of 1800 MHz, it is throttled (temperature), 60 degrees"));
}

// slow_rank.difference is 0.05 of the step.
TEST(SlowRankTest, OnBothSidesOfItsLimit) {
  JobFacts job = WellJob();
  job.ranks[1].now = StepShares{74.8, 20, 15.2, 10};
  EXPECT_TRUE(Said(job, FindSlowRank).empty());
  job.ranks[1].now = StepShares{75.3, 20, 14.7, 10};
  EXPECT_EQ(Said(job, FindSlowRank).size(), 1u);
}

// With kernels alone the others' wait is free time.
TEST(SlowRankTest, WithoutCommunicationByComputation) {
  JobFacts job = WellJob();
  for (RankFacts& rank : job.ranks) rank.now = StepShares{70, 0, 0, 30};
  EXPECT_TRUE(Said(job, FindSlowRank).empty());
  job.ranks[2].now = StepShares{88, 0, 0, 12};
  const LiveFindings said = Said(job, FindSlowRank);
  ASSERT_EQ(said.size(), 1u);
  EXPECT_EQ(said[0].rank, &job.ranks[2]);
  EXPECT_DOUBLE_EQ(*said[0].cost_ms, 18);
  EXPECT_EQ(said[0].confidence, Confidence::kMedium);
  EXPECT_THAT(said[0].what, HasSubstr("rank 2 computes 18.0 ms per step longer"));
  EXPECT_THAT(Joined(said[0].advice), HasSubstr("task_time = l1"));
  // One that is late because of its host is not distinguished from one that waits.
  job.ranks[2].now = StepShares{70, 0, 0, 60};
  EXPECT_TRUE(Said(job, FindSlowRank).empty());
}

TEST(SlowRankTest, WithoutActivityByStepsAlone) {
  JobFacts job = WellJob();
  for (RankFacts& rank : job.ranks) rank.now.reset();
  job.ranks[1].step = 49;
  EXPECT_TRUE(Said(job, FindSlowRank).empty());
  job.ranks[1].step = 48;
  const LiveFindings said = Said(job, FindSlowRank);
  ASSERT_EQ(said.size(), 1u);
  EXPECT_EQ(said[0].rank, &job.ranks[1]);
  EXPECT_EQ(said[0].confidence, Confidence::kLow);
}

TEST(SlowerStepsTest, WithTheStepThatItBeganWith) {
  JobFacts job = WellJob();
  for (RankFacts& rank : job.ranks) {
    rank.step_ms = 130;
    for (size_t i = 12; i < rank.steps.size(); ++i) rank.steps[i].duration_ns = 130 * kNsPerMs;
    rank.steps[5].duration_ns = 150 * kNsPerMs;  // one alone is not a change
  }
  const LiveFindings said = Said(job, FindSlowerSteps);
  ASSERT_EQ(said.size(), 1u);
  EXPECT_EQ(said[0].rank, nullptr);
  EXPECT_DOUBLE_EQ(*said[0].cost_ms, 30);
  EXPECT_EQ(said[0].step, 42);
  EXPECT_EQ(said[0].since_ns, job.ranks[0].steps[12].end_ns - 130 * kNsPerMs);
}

TEST(SlowerStepsTest, OnBothSidesOfItsLimit) {
  JobFacts job = WellJob();
  job.ranks[0].step_ms = 114;
  EXPECT_TRUE(Said(job, FindSlowerSteps).empty());
  job.ranks[0].step_ms = 116;
  EXPECT_EQ(Said(job, FindSlowerSteps).size(), 1u);
}

TEST(SlowerComputationTest, TheSameKernelsWithTheirClock) {
  JobFacts job = WellJob();
  job.ranks[1].kernels = {{"MatMul", 260, 300, 200}, {"New", 500, 300, 0}};
  job.devices[1].clock_hz = 1.2e9;
  const LiveFindings said = Said(job, FindSlowerComputation);
  ASSERT_EQ(said.size(), 1u);
  EXPECT_EQ(said[0].rank, &job.ranks[1]);
  EXPECT_THAT(said[0].what, HasSubstr("30 % longer"));
  EXPECT_NEAR(*said[0].cost_ms, 70 * 0.3 / 1.3, 1e-9);
  EXPECT_EQ(said[0].confidence, Confidence::kHigh);
  EXPECT_THAT(Joined(said[0].evidence), HasSubstr("most in MatMul: 260.0 us, before 200.0 us"));
  EXPECT_THAT(Joined(said[0].evidence), HasSubstr("1200 of 1800 MHz"));
}

TEST(SlowerComputationTest, OtherKernelsSayNothing) {
  JobFacts job = WellJob();
  job.ranks[1].kernels = {{"New", 500, 300, 0}};
  EXPECT_TRUE(Said(job, FindSlowerComputation).empty());
}

TEST(SlowerCommunicationTest, LongerThanBeforeWithTheCountersOfItsLinks) {
  JobFacts job = WellJob();
  job.transfer_ms = 40;
  for (RankFacts& rank : job.ranks) rank.now = StepShares{70, 40, 35, 10};
  job.devices[2].links = {{"HCCS link 3", {25, 4}}, {"HCCS link 4", {0.9, 0.9}}};
  const LiveFindings said = Said(job, FindSlowerCommunication);
  ASSERT_EQ(said.size(), 1u);
  EXPECT_EQ(said[0].rank, nullptr);
  EXPECT_THAT(said[0].what, HasSubstr("40.0 ms per step, 60 % longer"));
  EXPECT_DOUBLE_EQ(*said[0].cost_ms, 15);
  EXPECT_EQ(Joined(said[0].evidence), "NPU 2, HCCS link 3: 25.0 retries/s, 4.0 checksum errors/s\n");
  EXPECT_EQ(said[0].confidence, Confidence::kHigh);
}

// The limits are of a link, not of all links of a device.
TEST(SlowerCommunicationTest, FewRetriesOnEachOfManyLinksAreUsual) {
  JobFacts job = WellJob();
  for (int link = 1; link <= 7; ++link) job.devices[2].links[fmt::format("HCCS link {}", link)] = {0.9, 0.9};
  EXPECT_TRUE(Said(job, FindSlowerCommunication).empty());
}

// A rank elsewhere may be what is waited for.
TEST(SlowerCommunicationTest, IsLessSureWhereRanksAreOnOtherNodes) {
  JobFacts job = WellJob();
  job.transfer_ms = 40;
  EXPECT_EQ(Said(job, FindSlowerCommunication).at(0).confidence, Confidence::kMedium);
  job.world_size = 16;
  const LiveFindings said = Said(job, FindSlowerCommunication);
  EXPECT_EQ(said.at(0).confidence, Confidence::kLow);
  EXPECT_THAT(Joined(said.at(0).advice), HasSubstr("another node"));
}

TEST(SlowerCommunicationTest, LinksThatRepeatDataAreEnoughWhereTheyAreWaitedFor) {
  JobFacts job = WellJob();
  job.devices[0].roce_retransmits = 50;
  EXPECT_EQ(Said(job, FindSlowerCommunication).size(), 1u);
  // Longer by less than the limit: that is chance, and the wait is what they cost.
  job.transfer_ms = job.transfer_before_ms * 1.01;
  const LiveFindings said = Said(job, FindSlowerCommunication);
  EXPECT_THAT(said.at(0).what, HasSubstr("links repeat data"));
  EXPECT_DOUBLE_EQ(*said[0].cost_ms, job.ranks[0].now->wait_ms);
  for (RankFacts& rank : job.ranks) rank.now->wait_ms = 1;
  EXPECT_TRUE(Said(job, FindSlowerCommunication).empty());
}

TEST(HostTest, DataLoaderAndGarbageByTheirMarks) {
  JobFacts job = WellJob();
  job.ranks[0].now.reset();
  job.ranks[0].host = {.gc_ms = 10, .longest_gc_ms = 40, .dataloader_ms = 30, .longest_dataloader_ms = 31};
  EXPECT_DOUBLE_EQ(*Said(job, FindDataloader).at(0).cost_ms, 30);
  EXPECT_DOUBLE_EQ(*Said(job, FindGc).at(0).cost_ms, 10);
  // Shorter than one of them counts, or less than 3 % of the step.
  job.ranks[0].host = {.gc_ms = 10, .longest_gc_ms = 0.9, .dataloader_ms = 9, .longest_dataloader_ms = 9};
  EXPECT_TRUE(Said(job, FindDataloader).empty());
  EXPECT_TRUE(Said(job, FindGc).empty());
  job.ranks[0].host = {.gc_ms = 2.9, .longest_gc_ms = 40};
  EXPECT_TRUE(Said(job, FindGc).empty());
}

// It costs what the device has nothing to do for.
TEST(HostTest, WorkHiddenBehindTheDeviceCostsNothing) {
  JobFacts job = WellJob();
  job.ranks[0].host = {.gc_ms = 30, .longest_gc_ms = 40};
  EXPECT_DOUBLE_EQ(*Said(job, FindGc).at(0).cost_ms, 10);
  job.ranks[0].now->free_ms = 1;
  EXPECT_TRUE(Said(job, FindGc).empty());
}

TEST(HostTest, CompilationAfterTheFirstSteps) {
  JobFacts job = WellJob();
  job.ranks[0].now.reset();
  job.ranks[0].host.compile_ms = 40;
  EXPECT_EQ(Said(job, FindCompilation).size(), 1u);
  job.ranks[0].steps_done = 5;
  EXPECT_TRUE(Said(job, FindCompilation).empty());
  job = WellJob();
  job.ranks[0].now.reset();
  job.ranks[0].compile_api_ms = 40;
  job.ranks[0].compilations = 19;
  EXPECT_TRUE(Said(job, FindCompilation).empty());
  job.ranks[0].compilations = 20;
  EXPECT_EQ(Said(job, FindCompilation).size(), 1u);
}

TEST(HostTest, OperatorsOnTheAicpu) {
  JobFacts job = WellJob();
  job.ranks[1].aicpu_ms = 2.9;
  EXPECT_TRUE(Said(job, FindAicpu).empty());
  job.ranks[1].aicpu_ms = 3.1;
  EXPECT_EQ(Said(job, FindAicpu).at(0).rank, &job.ranks[1]);
}

TEST(FreeTimeTest, GrownOrMuchWithWhatTheHostWaitsFor) {
  JobFacts job = WellJob();
  job.ranks[1].now = StepShares{65, 25, 19, 16};
  job.host.cpu_waiting = 0.5;
  job.host.io_waiting = 0.1;
  const LiveFindings grown = Said(job, FindFreeTime);
  ASSERT_EQ(grown.size(), 1u);
  EXPECT_DOUBLE_EQ(*grown[0].cost_ms, 6);
  EXPECT_THAT(Joined(grown[0].evidence), HasSubstr("in 50 % of the time a process of the host waited for a CPU"));
  EXPECT_EQ(grown[0].evidence.size(), 1u);
  job = WellJob();
  job.ranks[1].now = job.ranks[1].before = StepShares{40, 25, 19, 41};
  const LiveFindings much = Said(job, FindFreeTime);
  ASSERT_EQ(much.size(), 1u);
  EXPECT_DOUBLE_EQ(*much[0].cost_ms, 41);
  EXPECT_EQ(much[0].confidence, Confidence::kLow);
}

TEST(FreeTimeTest, NotKnownWhereCommunicationIsNotRecorded) {
  JobFacts job = WellJob();
  for (RankFacts& rank : job.ranks) rank.now = rank.before = StepShares{40, 0, 0, 60};
  EXPECT_TRUE(Said(job, FindFreeTime).empty());
  job = WellJob(1);
  job.ranks[0].now = job.ranks[0].before = StepShares{40, 0, 0, 60};
  EXPECT_EQ(Said(job, FindFreeTime).size(), 1u);
}

TEST(MemoryTest, OnBothSidesOfItsLimit) {
  JobFacts job = WellJob();
  job.devices[1].memory_used_bytes = 64e9 * 0.949;
  EXPECT_TRUE(Said(job, FindFullMemory).empty());
  job.devices[1].memory_used_bytes = 64e9 * 0.951;
  const LiveFindings said = Said(job, FindFullMemory);
  ASSERT_EQ(said.size(), 1u);
  EXPECT_EQ(said[0].device, 1);
}

}  // namespace
}  // namespace profd
