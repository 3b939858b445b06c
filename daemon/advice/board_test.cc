#include "daemon/advice/board.h"

#include <gtest/gtest.h>

#include <set>
#include <string>
#include <utility>

#include "daemon/advice/test_support.h"

namespace profd {
namespace {

constexpr int64_t kWall = 1'700'000'000 * kNsPerSecond;

// A board whose time continues by a second with each look.
class AdviceBoardTest : public ::testing::Test {
 protected:
  std::vector<AdviceChange> Look(const std::vector<JobFacts>& jobs) {
    now_ns_ += kNsPerSecond;
    return board_.Update(jobs, now_ns_, kWall + now_ns_);
  }
  // How many of so many looks changed something; the last change.
  int Look(const std::vector<JobFacts>& jobs, int seconds) {
    int count = 0;
    for (int i = 0; i < seconds; ++i) {
      const std::vector<AdviceChange> changes = Look(jobs);
      count += static_cast<int>(changes.size());
      if (!changes.empty()) last_ = changes.back();
    }
    return count;
  }
  // 3 ms of 100 are the limit.
  static JobFacts WithAicpu(double ms, int rank = 1) {
    JobFacts job = WellJob();
    job.ranks[static_cast<size_t>(rank)].aicpu_ms = ms;
    return job;
  }

  AdviceBoard board_;
  int64_t now_ns_ = kTestNow;
  AdviceChange last_;
};

// live.raise_s is 3, live.clear_s 10.
TEST_F(AdviceBoardTest, RaisesAConditionOnceAndClearsItWhenItEnds) {
  EXPECT_EQ(Look({WithAicpu(5)}, 3), 0);
  EXPECT_EQ(Look({WithAicpu(5)}, 1), 1);
  EXPECT_TRUE(last_.raised);
  EXPECT_EQ(last_.advice.check, "aicpu");
  EXPECT_EQ(last_.advice.rank, 1);
  EXPECT_EQ(last_.advice.pid, 101);
  EXPECT_EQ(last_.advice.since_ns, kWall + kTestNow + kNsPerSecond);
  EXPECT_EQ(last_.advice.raised_ns, kWall + kTestNow + 4 * kNsPerSecond);
  EXPECT_EQ(Look({WithAicpu(5)}, 100), 0);
  EXPECT_EQ(board_.Raised().size(), 1u);
  EXPECT_EQ(Look({WellJob()}, 9), 0);
  EXPECT_EQ(Look({WellJob()}, 1), 1);
  EXPECT_FALSE(last_.raised);
  EXPECT_TRUE(board_.Raised().empty());
}

TEST_F(AdviceBoardTest, ShortConditionsAreNotRaised) {
  for (int i = 0; i < 50; ++i) {
    EXPECT_EQ(Look({WithAicpu(5)}, 2), 0);
    EXPECT_EQ(Look({WellJob()}, 1), 0);
  }
}

TEST_F(AdviceBoardTest, TimesWithoutEndAreLong) {
  analysis::Limits limits;
  ASSERT_TRUE(limits.Set("live.clear_s=1e18").ok());
  board_.SetLimits(limits);
  EXPECT_EQ(Look({WithAicpu(5)}, 4), 1);
  EXPECT_EQ(Look({WellJob()}, 100), 0);
  EXPECT_EQ(board_.Raised().size(), 1u);
  ASSERT_TRUE(limits.Set("live.raise_s=1e18").ok());
  board_ = AdviceBoard(limits);
  EXPECT_EQ(Look({WithAicpu(5)}, 100), 0);
}

TEST_F(AdviceBoardTest, AConditionAroundItsLimitStaysRaised) {
  Look({WithAicpu(5)}, 4);
  for (int i = 0; i < 50; ++i) {
    EXPECT_EQ(Look({WithAicpu(2.2)}, 15), 0);  // above 0.7 of the limit
    EXPECT_EQ(Look({WellJob()}, 5), 0);
  }
  EXPECT_EQ(board_.raised_total()[8], 1u);
}

TEST_F(AdviceBoardTest, BetweenBothLimitsNothingIsRaised) { EXPECT_EQ(Look({WithAicpu(2.9)}, 100), 0); }

TEST_F(AdviceBoardTest, FigureIsTheLatestBeginningTheFirst) {
  Look({WithAicpu(5)}, 4);
  Look({WithAicpu(9)}, 4);
  const LiveAdvice& advice = *board_.Raised().at(0);
  EXPECT_DOUBLE_EQ(*advice.cost_ms, 9);
  EXPECT_EQ(advice.since_ns, kWall + kTestNow + kNsPerSecond);
}

TEST_F(AdviceBoardTest, AnEndedJobIsClearedAtOnce) {
  Look({WithAicpu(5)}, 4);
  EXPECT_EQ(Look({}, 1), 1);
  EXPECT_FALSE(last_.raised);
}

// live.most_per_job is 6.
TEST_F(AdviceBoardTest, SoManyOfAJobTheRestIsCounted) {
  JobFacts job = WellJob(8);
  for (RankFacts& rank : job.ranks) rank.aicpu_ms = 5;
  EXPECT_EQ(Look({job}, 20), 6);
  EXPECT_EQ(board_.suppressed_total(), 2u);
  // Another job has a number of its own.
  JobFacts other = WithAicpu(5);
  other.job_id = "other";
  EXPECT_EQ(Look({job, other}, 20), 1);
}

// Six ranks of eight are shown when the job hangs.
TEST_F(AdviceBoardTest, WhatIsMoreImportantTakesThePlaceOfWhatIsLess) {
  JobFacts job = WellJob(8);
  for (RankFacts& rank : job.ranks) rank.aicpu_ms = 5;
  EXPECT_EQ(Look({job}, 20), 6);
  for (RankFacts& rank : job.ranks) rank.last_step_ns = kTestNow - 40 * kNsPerSecond;
  const std::vector<AdviceChange> changes = Look({job});
  ASSERT_EQ(changes.size(), 2u);
  EXPECT_EQ(std::pair(changes[0].advice.check, changes[0].raised), std::pair(std::string_view("aicpu"), false));
  EXPECT_EQ(changes[0].advice.rank, 5);
  EXPECT_EQ(std::pair(changes[1].advice.check, changes[1].raised), std::pair(std::string_view("hang"), true));
  EXPECT_EQ(board_.suppressed_total(), 3u);
}

// The number of a node is reached with 22 jobs of six each; the last one hangs.
TEST_F(AdviceBoardTest, AHangIsRaisedOnAFullNode) {
  std::vector<JobFacts> jobs(22, WellJob(6));
  for (size_t i = 0; i < jobs.size(); ++i) {
    jobs[i].job_id = std::to_string(i);
    for (RankFacts& rank : jobs[i].ranks) rank.aicpu_ms = 5;
  }
  EXPECT_EQ(Look(jobs, 20), static_cast<int>(AdviceBoard::kMaxRaised));
  jobs.push_back(WellJob());
  for (RankFacts& rank : jobs.back().ranks) rank.last_step_ns = kTestNow - 40 * kNsPerSecond;
  const std::vector<AdviceChange> changes = Look(jobs);
  ASSERT_EQ(changes.size(), 2u);
  EXPECT_EQ(changes[1].advice.check, "hang");
  EXPECT_EQ(board_.Raised().size(), AdviceBoard::kMaxRaised);
}

TEST_F(AdviceBoardTest, HangIsSaidAtOnceAndAlone) {
  JobFacts job = WithAicpu(5);
  for (RankFacts& rank : job.ranks) rank.last_step_ns = kTestNow - 40 * kNsPerSecond;
  EXPECT_EQ(Look({job}, 1), 1);
  EXPECT_EQ(last_.advice.check, "hang");
  EXPECT_EQ(Look({job}, 20), 0);
}

TEST_F(AdviceBoardTest, OneHangOfAJobWhicheverRankItNames) {
  JobFacts job = WellJob();
  for (RankFacts& rank : job.ranks) rank.last_step_ns = kTestNow - 40 * kNsPerSecond;
  EXPECT_EQ(Look({job}, 1), 1);
  EXPECT_EQ(last_.advice.pid, job.ranks[0].pid);
  job.ranks[2].state = 'T';
  EXPECT_EQ(Look({job}, 20), 0);
  ASSERT_EQ(board_.Raised().size(), 1u);
  EXPECT_EQ(board_.Raised()[0]->pid, job.ranks[2].pid);
  EXPECT_EQ(board_.Raised()[0]->rank, job.ranks[2].rank);
}

TEST_F(AdviceBoardTest, ConditionsRaisedBeforeAHangAreNotTakenBackAndNotShown) {
  Look({WithAicpu(5)}, 4);
  EXPECT_EQ(board_.Raised().size(), 1u);
  JobFacts job = WellJob();
  JobFacts other = WithAicpu(5);
  other.job_id = "other";
  for (RankFacts& rank : job.ranks) rank.last_step_ns = kTestNow - 40 * kNsPerSecond;
  EXPECT_EQ(Look({job, other}, 30), 2) << "the hang, and the other job's";
  std::set<std::pair<std::string, std::string>> shown;
  for (const LiveAdvice* advice : board_.Raised()) shown.emplace(advice->job_id, advice->check);
  EXPECT_EQ(shown, (std::set<std::pair<std::string, std::string>>{{job.job_id, "hang"}, {"other", "aicpu"}}));
}

TEST_F(AdviceBoardTest, OneCauseOfFreeTimeOneAdvice) {
  JobFacts job = WellJob(1);
  job.ranks[0].host = {.dataloader_ms = 45, .longest_dataloader_ms = 46};
  job.ranks[0].now = StepShares{40, 10, 10, 50};
  EXPECT_EQ(Look({job}, 20), 1);
  EXPECT_EQ(last_.advice.check, "dataloader");
}

TEST_F(AdviceBoardTest, ProcessesWithoutAJobAreEachOneOfTheirOwn) {
  std::vector<JobFacts> jobs = {WellJob(1), WellJob(1)};
  for (size_t i = 0; i < jobs.size(); ++i) {
    jobs[i].job_id.clear();
    jobs[i].ranks[0].pid = 500 + static_cast<pid_t>(i);
    jobs[i].ranks[0].step_ms = 200;
  }
  EXPECT_EQ(Look(jobs, 10), 2);
  EXPECT_EQ(Look({jobs[1]}, 1), 1);
  EXPECT_EQ(last_.advice.pid, 500);
}

TEST_F(AdviceBoardTest, ConditionsAreBounded) {
  std::vector<JobFacts> jobs(300, WellJob());  // of four ranks each
  for (size_t i = 0; i < jobs.size(); ++i) {
    jobs[i].job_id = "job" + std::to_string(i);
    for (RankFacts& rank : jobs[i].ranks) rank.aicpu_ms = 5;
  }
  EXPECT_EQ(Look(jobs, 5), static_cast<int>(AdviceBoard::kMaxRaised));
}

}  // namespace
}  // namespace profd
