// Requests about processes and their steps; the plan of what is collected: session_plan_test.cc.
#include "daemon/session/session_planner.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "daemon/session/testing/session_manager_fixture.h"

namespace profd {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using profd::testing::kAlice;

class SessionPlannerTest : public profd::testing::SessionManagerTest {};

TEST_F(SessionPlannerTest, AllProblemsOfARequestComeTogether) {
  AttachTwo();
  v1::SessionSpec request = Spec("job");
  request.mutable_target()->add_ranks(9);
  request.set_priority(10);
  request.set_label(std::string(200, 'x'));
  EXPECT_THAT(planner_.Plan(As(kAlice), request).status().message(),
              AllOf(HasSubstr("no rank 9"), HasSubstr("priority = 10"), HasSubstr("label")));
}

// "no process is attached" would hide the mistake: that rank's processes cannot be attached.
TEST_F(SessionPlannerTest, AMissingRankIsTheProblemNotWhatItsProcessesWouldGive) {
  AttachTwo();
  v1::SessionSpec request = Spec("job");
  request.clear_collectors();
  request.set_options_json(R"({"msproftx":"on"})");
  request.mutable_target()->add_ranks(9);
  const Status refused = planner_.Plan(As(kAlice), request).status();
  EXPECT_EQ(refused.code(), StatusCode::kInvalidArgument);
  EXPECT_THAT(refused.message(), HasSubstr("no rank 9 on this node (here are 0, 1)"));
}

TEST_F(SessionPlannerTest, StepsNeedAProcessThatHasNotPassedThem) {
  v1::SessionSpec request = Spec("job");
  request.mutable_schedule()->set_start_step(5);
  jobs_.Add(Process(10, kAlice, 0, 0));
  EXPECT_EQ(planner_.Plan(As(kAlice), request).status().code(), StatusCode::kFailedPrecondition);
  TrainingProcess process = Process(11, kAlice, 1, 2);
  process.step = 5;
  jobs_.Add(process);
  Status passed = planner_.Plan(As(kAlice), request).status();
  EXPECT_EQ(passed.code(), StatusCode::kFailedPrecondition);
  EXPECT_THAT(passed.message(), HasSubstr("has begun step 5 already; the next one is 6"));
  request.mutable_schedule()->set_start_step(6);
  EXPECT_TRUE(planner_.Plan(As(kAlice), request).ok());
}

// `profctl run --start-step 5 --steps 2`: its command is held until the answer is there, so that it cannot have attached.
TEST_F(SessionPlannerTest, StepsOfACommandThatIsHeldAreCountedOnceItAttaches) {
  for (const char* job : {"", "job"}) {
    v1::SessionSpec request = Spec(job);
    request.mutable_target()->set_all(true);
    request.mutable_target()->add_pids(10);
    request.mutable_schedule()->set_start_step(5);
    request.mutable_schedule()->set_steps(2);
    EXPECT_EQ(planner_.Plan(As(kAlice), request).status().code(), StatusCode::kFailedPrecondition) << job;
    request.mutable_schedule()->set_end_with_pid(10);
    EXPECT_TRUE(planner_.Plan(As(kAlice), request).ok()) << job;
    request.mutable_schedule()->clear_start_step();
    EXPECT_TRUE(planner_.Plan(As(kAlice), request).ok()) << job;
  }
}

TEST_F(SessionPlannerTest, StartsSoManyStepsAfterThePresentOne) {
  TrainingProcess process = Process(10, kAlice, 0, 1);
  process.step = 200;
  jobs_.Add(process);
  v1::SessionSpec request = Spec("job");
  request.mutable_schedule()->set_start_in_steps(20);
  Result<Session::Request> planned = planner_.Plan(As(kAlice), request);
  ASSERT_TRUE(planned.ok()) << planned.status().ToString();
  EXPECT_EQ(planned->spec.schedule().start_step(), 220);
}

// Rings are read ten times a second while no session runs: short steps pass meanwhile.
TEST_F(SessionPlannerTest, AStepThatIsStillInTheRingHasBegun) {
  TrainingProcess process = Process(10, kAlice, 0, 1);
  process.step = 200;
  jobs_.Add(process);
  jobs_.Keep(1, MarkNow(attach::MarkKind::kStepBegin, 204), "");
  v1::SessionSpec request = Spec("job");
  request.mutable_schedule()->set_start_step(204);
  EXPECT_THAT(planner_.Plan(As(kAlice), request).status().message(), HasSubstr("has begun step 204 already; the next one is 205"));
  jobs_.Keep(1, MarkNow(attach::MarkKind::kStepBegin, 205), "");
  request.mutable_schedule()->set_start_in_steps(20);
  const Result<Session::Request> plan = planner_.Plan(As(kAlice), request);
  ASSERT_TRUE(plan.ok()) << plan.status().ToString();
  EXPECT_EQ(plan->spec.schedule().start_step(), 225);
}

TEST_F(SessionPlannerTest, StepsAfterThePresentOneNeedAPresentOne) {
  AttachTwo();
  v1::SessionSpec request = Spec("job");
  request.mutable_schedule()->set_start_in_steps(20);
  EXPECT_THAT(planner_.Plan(As(kAlice), request).status().message(),
              HasSubstr("process 10 has begun no step yet"));
}

}  // namespace
}  // namespace profd
