#include "daemon/session/session_terms.h"

#include <gtest/gtest.h>

#include "daemon/session/testing/fake_node.h"

namespace profd {
namespace {

class TermsTest : public ::testing::Test {
 protected:
  TermsTest() { processes_.alive = {{10, {1000, 110}}, {11, {1000, 111}}}; }

  // About process 10.
  SessionJob JobOf10(bool bound) {
    SessionTargets targets{.job_id = "job", .bound = bound};
    TrainingProcess process{.pid = 10, .start_ticks = 110};
    targets.processes.push_back(process);
    return SessionJob(nullptr, targets, processes_, "session");
  }
  SessionTerms Begun(ProcessId starter = {}) {
    SessionTerms terms(spec_, starter, processes_, clock_);
    EXPECT_TRUE(terms.Begin().ok());
    return terms;
  }

  v1::SessionSpec spec_;
  testing::FakeProcesses processes_;
  ManualClock clock_;
};

TEST_F(TermsTest, WithoutAnyItGoesOn) {
  SessionTerms terms = Begun({11, 111});
  processes_.alive.clear();
  clock_.Advance(3600 * kNsPerSecond);
  const SessionJob job = JobOf10(false);
  EXPECT_EQ(terms.WhyOver(nullptr), std::nullopt);
  EXPECT_EQ(terms.WhyOver(&job), std::nullopt) << "the complete node is meant";
  EXPECT_EQ(terms.Renew(), std::nullopt);
  EXPECT_EQ(terms.left_ms(), 0);
}

TEST_F(TermsTest, EndsWithTheProcessThatItNames) {
  spec_.mutable_schedule()->set_end_with_pid(12);
  EXPECT_EQ(SessionTerms(spec_, {}, processes_, clock_).Begin().code(), StatusCode::kNotFound);
  spec_.mutable_schedule()->set_end_with_pid(11);
  SessionTerms terms = Begun();
  EXPECT_EQ(terms.end_pid_start(), 111u);
  EXPECT_EQ(terms.WhyOver(nullptr), std::nullopt);
  processes_.alive[11].start_ticks = 999;  // a later one of the same number
  EXPECT_EQ(terms.WhyOver(nullptr), "process 11 ended");
}

TEST_F(TermsTest, EndsWithTheProcessesThatItIsBoundTo) {
  SessionTerms terms = Begun();
  const SessionJob job = JobOf10(true);
  EXPECT_EQ(terms.WhyOver(&job), std::nullopt);
  processes_.alive.erase(10);
  EXPECT_EQ(terms.WhyOver(&job), "all processes of the job have ended");
}

TEST_F(TermsTest, ALeaseRunsOutOnceNothingRenewsIt) {
  spec_.mutable_lease()->set_lease_ms(2000);
  SessionTerms terms = Begun({11, 111});
  const SessionJob job = JobOf10(false);
  clock_.Advance(60 * kNsPerSecond);
  EXPECT_EQ(terms.WhyOver(&job), std::nullopt) << "its starter is alive";
  processes_.alive.erase(11);
  clock_.Advance(60 * kNsPerSecond);
  EXPECT_EQ(terms.WhyOver(&job), std::nullopt) << "a process of the job is alive";
  EXPECT_EQ(terms.left_ms(), 0);
  processes_.alive.erase(10);
  clock_.Advance(kNsPerSecond);
  EXPECT_EQ(terms.WhyOver(&job), std::nullopt);
  EXPECT_EQ(terms.left_ms(), 1000);
  EXPECT_EQ(terms.Renew(), 2000u);
  clock_.Advance(2 * kNsPerSecond - 1);
  EXPECT_EQ(terms.WhyOver(&job), std::nullopt);
  clock_.Advance(1);
  EXPECT_EQ(terms.WhyOver(&job), "lease expired: not renewed for 2000 ms after the caller (process 11) exited");
}

}  // namespace
}  // namespace profd
