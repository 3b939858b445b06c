#include "daemon/session/session_schedule.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <utility>

#include "base/clock.h"
#include "daemon/session/testing/fake_node.h"
#include "profd/v1/profd.pb.h"

namespace profd {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;

constexpr int64_t kWall = 1'767'225'600'000'000'000;

class SessionTermsTest : public ::testing::Test {
 protected:
  SessionTermsTest() {
    peer_.uid = 1000;
    peer_.pid = 99;
    processes_.alive = {{10, {1000, 70}}, {20, {2000, 140}}, {40, {2000, 280}}, {99, {1000, 693}}};
    processes_.hidden = 40;
  }
  // As it is admitted, and the process whose life renews the lease.
  struct Terms {
    v1::SessionSpec spec;
    ProcessId starter;
  };
  Result<Terms> Admit() const {
    Terms terms{request_, {}};
    Result<ProcessId> starter = AdmitTerms({config_, peer_, kWall, processes_}, &terms.spec);
    if (!starter.ok()) return starter.status();
    terms.starter = *starter;
    return terms;
  }
  std::string Problem() const { return Admit().status().ToString(); }

  DaemonConfig config_;
  Peer peer_;
  testing::FakeProcesses processes_;
  v1::SessionSpec request_;
};

TEST_F(SessionTermsTest, Defaults) {
  Result<Terms> terms = Admit();
  ASSERT_TRUE(terms.ok()) << Problem();
  EXPECT_FALSE(IsScheduled(terms->spec));
  EXPECT_FALSE(NeedsSteps(terms->spec));
  EXPECT_EQ(PriorityOf(terms->spec), 5u);
}

TEST_F(SessionTermsTest, StartsToCome) {
  request_.mutable_schedule()->set_start_in_ms(1500);
  EXPECT_EQ(Admit().value_or({}).spec.schedule().start_at_ns(), kWall + 1'500'000'000);
  request_.mutable_schedule()->clear_start_in_ms();
  request_.mutable_schedule()->set_start_at_ns(kWall + 5);
  EXPECT_EQ(Admit().value_or({}).spec.schedule().start_at_ns(), kWall + 5);
  request_.mutable_schedule()->clear_start_at_ns();
  request_.mutable_target()->set_job_id("j");
  request_.mutable_schedule()->set_start_step(0);
  EXPECT_EQ(StartStepOf(Admit().value_or({}).spec), 0);
  EXPECT_TRUE(IsScheduled(Admit().value_or({}).spec));
}

TEST_F(SessionTermsTest, ALittleLateIsNow) {
  request_.mutable_schedule()->set_start_at_ns(kWall - 999'999'999);
  EXPECT_TRUE(Admit().ok()) << Problem();
  request_.mutable_schedule()->set_start_at_ns(kWall - 1'000'000'000);
  EXPECT_THAT(Problem(), HasSubstr("1.0 s ago"));
}

TEST_F(SessionTermsTest, NotTooFarAhead) {
  config_.max_start_delay_s = 10;
  request_.mutable_schedule()->set_start_in_ms(10'000);
  EXPECT_TRUE(Admit().ok());
  request_.mutable_schedule()->set_start_in_ms(10'001);
  EXPECT_THAT(Problem(), HasSubstr("at most 10s ahead here (limits.max_start_delay_s)"));
  request_.mutable_schedule()->clear_start_in_ms();
  request_.mutable_schedule()->set_start_at_ns(kWall + 10 * kNsPerSecond);
  EXPECT_TRUE(Admit().ok());
  request_.mutable_schedule()->set_start_at_ns(kWall + 10 * kNsPerSecond + 1);
  EXPECT_THAT(Problem(), HasSubstr("at most 10s (limits.max_start_delay_s)"));
}

TEST_F(SessionTermsTest, AStartToComeHasNoPast) {
  request_.mutable_schedule()->set_start_in_ms(1);
  EXPECT_TRUE(Admit().ok()) << Problem();
  request_.mutable_schedule()->set_since_ms(1000);
  EXPECT_THAT(Problem(), HasSubstr("since_ms: goes with a start now"));
}

TEST_F(SessionTermsTest, AllProblemsAtOnce) {
  request_.mutable_schedule()->set_start_step(-1);
  request_.mutable_schedule()->set_steps(2);
  request_.mutable_lease()->set_lease_ms(999);
  request_.set_priority(10);
  (*request_.mutable_metadata())["no name"] = "x";
  (*request_.mutable_metadata())["long"] = std::string(1025, 'x');
  EXPECT_THAT(Problem(), AllOf(HasSubstr("start_step = -1"), HasSubstr("needs job_id or pids"),
                               HasSubstr("lease_ms = 999"), HasSubstr("priority = 10"),
                               HasSubstr("no name"), HasSubstr("1025 bytes")));
}

// What is kept of a session is bounded.
TEST_F(SessionTermsTest, ASpecHasALimit) {
  request_.set_options_json(std::string(127 << 10, ' '));
  EXPECT_TRUE(Admit().ok()) << Problem();
  request_.set_options_json(std::string(128 << 10, ' '));
  EXPECT_THAT(Problem(), HasSubstr("at most 131072"));
}

TEST_F(SessionTermsTest, ZeroStepsAreRefused) {
  request_.mutable_target()->set_job_id("j");
  request_.mutable_schedule()->set_steps(0);
  EXPECT_THAT(Problem(), HasSubstr("steps = 0: must be above zero"));
  request_.mutable_schedule()->set_steps(1);
  EXPECT_TRUE(NeedsSteps(Admit().value_or({}).spec));
}

TEST_F(SessionTermsTest, MetadataOfSixtyFourEntries) {
  for (int i = 0; i < 64; ++i) (*request_.mutable_metadata())["k" + std::to_string(i)] = "v";
  EXPECT_EQ(Admit().value_or({}).spec.metadata_size(), 64);
  (*request_.mutable_metadata())["more"] = "v";
  EXPECT_THAT(Problem(), HasSubstr("65 entries"));
}

TEST_F(SessionTermsTest, LeaseIsTiedToTheStarter) {
  request_.mutable_lease()->set_lease_ms(1000);
  EXPECT_EQ(Admit().value_or({}).starter.pid, 99);
  EXPECT_EQ(Admit().value_or({}).starter.start_ticks, 693u);
  request_.mutable_lease()->set_starter_pid(10);
  EXPECT_EQ(Admit().value_or({}).starter.pid, 10);
  request_.mutable_lease()->set_starter_pid(20);
  EXPECT_EQ(Admit().status().code(), StatusCode::kPermissionDenied);
  request_.mutable_lease()->set_starter_pid(30);
  EXPECT_THAT(Problem(), HasSubstr("no such process"));
  request_.mutable_lease()->set_starter_pid(40);
  EXPECT_THAT(Problem(), HasSubstr("starter_pid = 40: hidden, to watch who starts a session; "
                                   "a session without a lease (detached) is not watched"));
  request_.mutable_lease()->set_starter_pid(10);
  request_.mutable_lease()->clear_lease_ms();
  EXPECT_THAT(Problem(), HasSubstr("lease_ms = 0: must be 1s"));
}

// Else no session could be started without naming a lease where durations are limited to less than a minute.
TEST_F(SessionTermsTest, ALeaseOfAMinuteIsNeverTooLong) {
  config_.max_duration_s = 10;
  request_.mutable_lease()->set_lease_ms(60'000);
  EXPECT_TRUE(Admit().ok()) << Problem();
  request_.mutable_lease()->set_lease_ms(60'001);
  EXPECT_THAT(Problem(), HasSubstr("lease_ms = 60001: must be 1s..1m"));
  config_.max_duration_s = 120;
  request_.mutable_lease()->set_lease_ms(120'000);
  EXPECT_TRUE(Admit().ok()) << Problem();
  request_.mutable_lease()->set_lease_ms(120'001);
  EXPECT_THAT(Problem(), HasSubstr("must be 1s..2m"));
}

TEST_F(SessionTermsTest, PriorityAndPreemptionAreTheAdministrators) {
  request_.set_priority(5);
  EXPECT_TRUE(Admit().ok());
  request_.set_priority(6);
  EXPECT_EQ(Admit().status().code(), StatusCode::kPermissionDenied);
  EXPECT_THAT(Admit().status().message(), HasSubstr("priority = 6: only administrators may request more than 5"));
  peer_.admin = true;
  EXPECT_EQ(PriorityOf(Admit().value_or({}).spec), 6u);
  // The minimum is not a default.
  request_.set_priority(0);
  EXPECT_EQ(PriorityOf(Admit().value_or({}).spec), 0u);
  request_.set_preempt(true);
  EXPECT_TRUE(Admit().ok());
  peer_.admin = false;
  request_.set_priority(1);
  EXPECT_EQ(Admit().status().code(), StatusCode::kPermissionDenied);
}

TEST_F(SessionTermsTest, WhatIsNotAllowedHidesNoOtherProblem) {
  request_.set_priority(6);
  request_.mutable_schedule()->set_steps(0);
  EXPECT_EQ(Admit().status().code(), StatusCode::kPermissionDenied);
  EXPECT_THAT(Admit().status().message(), HasSubstr("only administrators may request more than 5\nsteps = 0: must be above zero"));
}

TEST(JoinProblems, PermissionsFirstThenInvalidAllTogether) {
  EXPECT_TRUE(JoinProblems({}, {}).ok());
  EXPECT_EQ(JoinProblems({}, InvalidArgument("b")).message(), "b");
  using Joined = std::pair<StatusCode, std::string>;
  const auto joined = [](const Status& a, const Status& b) {
    const Status both = JoinProblems(a, b);
    return Joined(both.code(), both.message());
  };
  EXPECT_EQ(joined(InvalidArgument("a"), InvalidArgument("b")), Joined(StatusCode::kInvalidArgument, "a\nb"));
  EXPECT_EQ(joined(InvalidArgument("a"), PermissionDenied("b")), Joined(StatusCode::kPermissionDenied, "b\na"));
  EXPECT_EQ(joined(PermissionDenied("a"), InvalidArgument("b")), Joined(StatusCode::kPermissionDenied, "a\nb"));
  EXPECT_EQ(joined(Unimplemented("a"), InvalidArgument("b")), Joined(StatusCode::kInvalidArgument, "b\na"));
  EXPECT_EQ(joined(FailedPrecondition("a"), InvalidArgument("b")), Joined(StatusCode::kInvalidArgument, "b\na"));
}

TEST(JoinProblems, TogetherTheyFitIntoATrailer) {
  const Status many(StatusCode::kInvalidArgument,
                    std::vector<struct Problem>(500, {.field = "devices", .text = std::string(200, 'x')}));
  const std::string joined = JoinProblems(many, many).message();
  EXPECT_LE(joined.size(), 3000u);
  EXPECT_THAT(joined, ::testing::EndsWith(" more"));
}

TEST(StepCounter, FromAStepOn) {
  StepCounter counter(11, 2);
  EXPECT_FALSE(counter.Begins(10));
  EXPECT_TRUE(counter.Begins(11));
  counter.Open(11);
  counter.OnEnd(11);
  EXPECT_FALSE(counter.over());
  counter.OnBegin(12);
  EXPECT_FALSE(counter.over());
  counter.OnEnd(12);
  counter.OnEnd(12);  // a report and a mark of the same end
  EXPECT_TRUE(counter.over());
  EXPECT_EQ(counter.done(), 2u);
  EXPECT_EQ(counter.Text(), "2 steps (11..12)");
}

TEST(StepCounter, TheNextBeginEndsTheLast) {
  StepCounter counter(11, 1);
  counter.Open(11);
  counter.OnBegin(12);
  EXPECT_TRUE(counter.over());
  EXPECT_EQ(counter.Text(), "1 step (11..11)");
  StepCounter from_now(std::nullopt, 2);
  from_now.Open(std::nullopt);
  from_now.OnBegin(5);
  from_now.OnBegin(6);
  EXPECT_FALSE(from_now.over());
  from_now.OnBegin(7);
  EXPECT_TRUE(from_now.over());
  EXPECT_EQ(from_now.Text(), "2 steps (5..6)");
}

TEST(StepCounter, StepsFromTheFirstOnMayHaveGaps) {
  StepCounter counter(15, 2);
  EXPECT_TRUE(counter.Begins(20));
  counter.Open(20);
  counter.OnBegin(20);  // a report and a mark of the same begin
  EXPECT_FALSE(counter.over());
  counter.OnEnd(20);
  EXPECT_FALSE(counter.over());
  counter.OnBegin(30);
  EXPECT_FALSE(counter.over());
  counter.OnEnd(30);
  EXPECT_TRUE(counter.over());
  EXPECT_EQ(counter.Text(), "2 steps (20..30)");
}

TEST(StepCounter, ResumedItGoesByTheNumbersOfTheSteps) {
  StepCounter counter(15, 10);
  counter.Restore(2);
  counter.Open(std::nullopt);
  counter.OnBegin(23);
  counter.OnEnd(23);
  EXPECT_FALSE(counter.over());
  counter.OnBegin(24);
  counter.OnEnd(24);
  EXPECT_TRUE(counter.over());
}

TEST(StepCounter, OnlyCompleteStepsCount) {
  StepCounter counter(std::nullopt, 2);
  counter.OnBegin(4);
  counter.Open(std::nullopt);
  counter.OnEnd(4);  // began before
  EXPECT_EQ(counter.done(), 0u);
  counter.OnBegin(5);
  counter.OnEnd(5);
  EXPECT_FALSE(counter.over());
  counter.OnBegin(15);  // numbers need not be consecutive
  counter.OnEnd(15);
  EXPECT_TRUE(counter.over());
}

TEST(StepCounter, TheProcessMaySayThatTheLastHasEnded) {
  StepCounter counter(std::nullopt, 3);
  counter.OnLastEnd();  // of something before
  EXPECT_FALSE(counter.over());
  counter.Open(std::nullopt);
  counter.OnLastEnd();
  EXPECT_TRUE(counter.over());
  EXPECT_EQ(counter.done(), 3u);
  EXPECT_EQ(counter.Text(), "3 steps");
  StepCounter endless(std::nullopt, 0);
  endless.Open(std::nullopt);
  endless.OnLastEnd();
  EXPECT_FALSE(endless.over());
}

// Some of what lay between was lost: 43..48 would be six steps.
TEST(StepCounter, StepsThatWereNotSeenHaveNoNumbers) {
  StepCounter counter(std::nullopt, 5);
  counter.Open(std::nullopt);
  counter.OnBegin(43);
  counter.OnEnd(48);
  counter.OnLastEnd();
  EXPECT_TRUE(counter.over());
  EXPECT_EQ(counter.Text(), "5 steps");
  StepCounter known(11, 3);
  known.Open(11);
  known.OnEnd(13);
  known.OnLastEnd();
  EXPECT_EQ(known.Text(), "3 steps (11..13)");
}

TEST(StepCounter, WithoutARequestItOnlyCounts) {
  StepCounter counter(std::nullopt, 0);
  counter.Open(std::nullopt);
  for (int step = 0; step < 3; ++step) {
    counter.OnBegin(step);
    counter.OnEnd(step);
  }
  EXPECT_EQ(counter.done(), 3u);
  EXPECT_FALSE(counter.over());
}

}  // namespace
}  // namespace profd
