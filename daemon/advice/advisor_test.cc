#include "daemon/advice/advisor.h"

#include <gtest/gtest.h>

#include "base/manual_executor.h"
#include "daemon/session/testing/fake_job_directory.h"
#include "profd/v1/profd.pb.h"

namespace profd {
namespace {

using attach::MarkKind;

class AdvisorTest : public ::testing::Test {
 protected:
  AdvisorTest() {
    clock_.Advance(1000 * kNsPerSecond);
    for (int rank = 0; rank < 2; ++rank) Attach(rank, 1000, "j");
    advisor_ = std::make_unique<Advisor>(
        Advisor::Deps{control_, jobs_, store_, clock_, [this](pid_t pid) { return pid == stopped_ ? 'T' : 'S'; },
                      [this](const AdviceChange& change) { changes_.push_back(change); }},
        ParseAdviceLimits({"hang.least_s=5"}).value());
    advisor_->Begin();
  }
  void Attach(int rank, uint32_t uid, const std::string& job) {
    TrainingProcess process{.pid = 100 + rank, .uid = uid, .job_id = job, .rank = rank, .devices = {rank},
                            .attach_id = static_cast<uint64_t>(rank) + 1};
    jobs_.Attach(process);
  }
  // Seconds of ten steps each, of all processes.
  void Run(int seconds) {
    for (int s = 0; s < seconds; ++s) {
      for (int i = 0; i < 10; ++i) {
        ++step_;
        for (const TrainingProcess& process : jobs_.processes) {
          jobs_.Hand(process.attach_id, {clock_.MonotonicRawNs(), step_, 1, MarkKind::kStepBegin, ""}, "", 0);
        }
        clock_.Advance(100 * kNsPerMs);
      }
      advisor_->Tick();
    }
  }
  void Stand(int seconds) {
    for (int s = 0; s < seconds; ++s) {
      clock_.Advance(kNsPerSecond);
      advisor_->Tick();
    }
  }
  v1::GetAdviceResponse Ask(const Peer& peer, bool ranks = false) {
    v1::GetAdviceRequest request;
    request.set_ranks(ranks);
    v1::GetAdviceResponse answer;
    EXPECT_TRUE(advisor_->Describe(peer, request, &answer).ok());
    return answer;
  }
  static Peer User(uint32_t uid) { return {.uid = uid}; }

  ManualClock clock_;
  ManualExecutor time_{clock_};
  Strand control_{time_.executor()};
  MetricStore store_;
  profd::testing::FakeJobDirectory jobs_;
  pid_t stopped_ = 0;
  std::unique_ptr<Advisor> advisor_;
  std::vector<AdviceChange> changes_;
  int64_t step_ = 0;
};

TEST_F(AdvisorTest, HangOfAJobIsSaidOfTheStoppedRankAndTakenBack) {
  Run(10);
  EXPECT_TRUE(changes_.empty());
  stopped_ = 101;
  Stand(10);
  ASSERT_EQ(changes_.size(), 1u);
  EXPECT_TRUE(changes_[0].raised);
  EXPECT_EQ(changes_[0].advice.check, "hang");
  EXPECT_EQ(changes_[0].advice.pid, 101);
  EXPECT_EQ(changes_[0].advice.step, step_);
  Run(15);
  ASSERT_EQ(changes_.size(), 2u);
  EXPECT_FALSE(changes_[1].raised);
}

TEST_F(AdvisorTest, UsersSeeTheirOwnJobs) {
  Run(10);
  Stand(10);
  EXPECT_EQ(Ask(User(1000)).advice_size(), 1);
  EXPECT_EQ(Ask(User(1001), true).advice_size(), 0);
  EXPECT_EQ(Ask(User(1001), true).ranks_size(), 0);
  const Peer viewer{.viewer = true};
  const v1::GetAdviceResponse answer = Ask(viewer, true);
  EXPECT_EQ(answer.advice_size(), 1);
  ASSERT_EQ(answer.ranks_size(), 2);
  EXPECT_EQ(answer.ranks(1).rank(), 1);
  EXPECT_EQ(answer.ranks(1).step(), step_);
  EXPECT_EQ(answer.ranks(1).step_ns(), 100'000'000u);
  EXPECT_FALSE(answer.ranks(1).has_shares());
}

TEST_F(AdvisorTest, WatchersAreCalledForEachChangeUntilTheyGo) {
  int called = 0;
  const uint64_t watch = advisor_->Watch([&] { ++called; });
  Run(10);
  Stand(10);
  EXPECT_EQ(called, 1);
  advisor_->Unwatch(watch);
  Run(15);
  EXPECT_EQ(called, 1);
}

TEST_F(AdvisorTest, AnEndedJobIsForgotten) {
  Run(10);
  Stand(10);
  for (const uint64_t attach_id : {1, 2}) jobs_.Detach(attach_id);
  Stand(1);
  ASSERT_EQ(changes_.size(), 2u);
  EXPECT_FALSE(changes_[1].raised);
  EXPECT_EQ(Ask(User(1000), true).ranks_size(), 0);
}

TEST_F(AdvisorTest, DoesNotEmptyTheRingsMoreOften) { EXPECT_FALSE(jobs_.hurries()); }

TEST(AdviceLimitsTest, WrongOneIsRefused) {
  EXPECT_FALSE(ParseAdviceLimits({"hang.least=5"}).ok());
  EXPECT_EQ(ParseAdviceLimits({"hang.least_s=5"}).value().At("hang", "least_s"), 5);
}

}  // namespace
}  // namespace profd
