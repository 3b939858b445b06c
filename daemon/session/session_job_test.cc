// Requests about training processes: which they mean, what they are notified of, steps, marks, ends.
#include "daemon/session/session_manager.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "daemon/session/testing/session_manager_fixture.h"

namespace profd {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::StartsWith;
using profd::testing::kAlice;
using profd::testing::kBob;
using profd::testing::SessionManagerTest;
using profd::testing::FakeJobDirectory;

TEST_F(SessionManagerTest, AnUnknownJobStartsNothing) {
  AttachTwo();
  Result<v1::Session> session = Start(As(kAlice), Spec("other"));
  EXPECT_EQ(session.status().code(), StatusCode::kNotFound);
  EXPECT_THAT(session.status().message(), HasSubstr("job (2 processes)"));
  EXPECT_EQ(Start(As(kBob), Spec("job")).status().code(), StatusCode::kNotFound);
  EXPECT_EQ(Dumps(), 0u);
}

TEST_F(SessionManagerTest, ProcessesOfTheJobAreNotifiedAndMarked) {
  AttachTwo();
  std::string id = Started(As(kAlice), Spec("job"));
  Jobs([&](FakeJobDirectory& jobs) {
    jobs.Hand(1, MarkNow(attach::MarkKind::kMark), "load", 3);
    jobs.Keep(2, MarkNow(attach::MarkKind::kRangePush), "forward");
    Mark old = MarkNow(attach::MarkKind::kMark);
    old.time_ns = 1;
    jobs.Hand(1, old, "before the session", 0);
  });
  v1::Session session = Stop(id);
  EXPECT_EQ(session.status().state(), v1::Session::STATE_DONE);
  EXPECT_EQ(session.status().marks(), 2u);
  EXPECT_EQ(session.status().dropped_marks(), 3u);
  ASSERT_EQ(session.status().processes_size(), 2);
  EXPECT_EQ(session.status().processes(1).pid(), 11);
  EXPECT_TRUE(session.status().processes(1).attached());
  EXPECT_THAT(jobs_.Heard(), ElementsAre("1 running", "2 running", "1 ended", "2 ended"));
  std::string marks = ReadText(session.status().dump_path() + "/host/profd/marks.tsv");
  EXPECT_THAT(marks, StartsWith(std::string(kMarksHeading)));
  EXPECT_THAT(marks, AllOf(HasSubstr("\t10\t0\t77\tmark\tload\t0\t\n"),
                           HasSubstr("\t11\t1\t77\tpush\tforward\t0\t\n"),
                           ::testing::Not(HasSubstr("before the session"))));
  Result<Manifest> manifest =
      ParseManifest(ReadText(session.status().dump_path() + "/profd_manifest.json"));
  ASSERT_TRUE(manifest.ok());
  EXPECT_EQ(manifest->marks, 2u);
  EXPECT_EQ(manifest->dropped_marks, 3u);
  EXPECT_EQ(manifest->processes.size(), 2u);
  time_.RunReady();
  EXPECT_EQ(jobs_.watchers(), 0u);
}

TEST_F(SessionManagerTest, LatecomersJoin) {
  AttachTwo();
  std::string id = Started(As(kAlice), Spec("job"));
  Alive(12, kAlice);
  Jobs([&](FakeJobDirectory& jobs) {
    jobs.Attach(Process(12, kAlice, 2, 3));
    jobs.Attach(Process(20, kBob, 3, 4));  // not of this job: another user's
    jobs.Hand(3, MarkNow(attach::MarkKind::kMark), "late", 0);
  });
  v1::Session session = Stop(id);
  EXPECT_EQ(session.status().processes_size(), 3);
  EXPECT_EQ(session.status().marks(), 1u);
  EXPECT_THAT(jobs_.Heard(), ElementsAre("1 running", "2 running", "3 running", "1 ended",
                                         "2 ended", "3 ended"));
}

TEST_F(SessionManagerTest, StartsAtAStepAndEndsAfterSteps) {
  AttachTwo();
  v1::SessionSpec request = Spec("job");
  request.mutable_schedule()->set_start_step(11);
  request.mutable_schedule()->set_steps(2);
  Result<v1::Session> ordered = Start(As(kAlice), request);
  ASSERT_TRUE(ordered.ok()) << ordered.status().ToString();
  EXPECT_EQ(ordered->status().state(), v1::Session::STATE_SCHEDULED);
  EXPECT_EQ(ordered->spec().schedule().start_step(), 11);
  EXPECT_EQ(Dumps(), 0u);
  EXPECT_THAT(jobs_.Heard(), ElementsAre("1 armed", "2 armed"));
  EXPECT_EQ(jobs_.sent()[0].notice.start_step, 11);
  std::string id = ordered->session_id();
  Jobs([](FakeJobDirectory& jobs) {
    jobs.Step(1, 10, true);
    jobs.Step(2, 11, true);  // not the counting process
  });
  EXPECT_EQ(Show(id).status().state(), v1::Session::STATE_SCHEDULED);
  Jobs([](FakeJobDirectory& jobs) { jobs.Step(1, 11, true); });
  Until(id, v1::Session::STATE_RUNNING);
  Jobs([](FakeJobDirectory& jobs) {
    jobs.Step(1, 11, false);
    jobs.Step(1, 12, true);
  });
  EXPECT_EQ(Show(id).status().steps_done(), 1u);
  EXPECT_EQ(Show(id).status().state(), v1::Session::STATE_RUNNING);
  Jobs([](FakeJobDirectory& jobs) { jobs.Step(1, 12, false); });
  v1::Session session = Until(id, v1::Session::STATE_DONE);
  EXPECT_EQ(session.status().reason(), "2 steps (11..12)");
  EXPECT_EQ(session.status().steps_done(), 2u);
}

TEST_F(SessionManagerTest, TheProcessReportsWhenItsStepsAreOver) {
  AttachTwo();
  v1::SessionSpec request = Spec("job");
  request.mutable_schedule()->set_steps(3);
  std::string id = Started(As(kAlice), request);
  Jobs([&](FakeJobDirectory& jobs) {
    jobs.Report(1, {"another session", 7, false});
    jobs.Report(2, {id, 7, false});  // does not count
  });
  EXPECT_EQ(Show(id).status().state(), v1::Session::STATE_RUNNING);
  Jobs([&](FakeJobDirectory& jobs) { jobs.Report(1, {id, 7, false}); });
  EXPECT_EQ(Until(id, v1::Session::STATE_DONE).status().reason(), "3 steps");
}

TEST_F(SessionManagerTest, StepsAreCountedByMarksToo) {
  AttachTwo();
  v1::SessionSpec request = Spec("job");
  request.mutable_schedule()->set_steps(1);
  std::string id = Started(As(kAlice), request);
  Jobs([&](FakeJobDirectory& jobs) {
    jobs.Hand(2, MarkNow(attach::MarkKind::kStepBegin, 1), "", 0);
    jobs.Hand(2, MarkNow(attach::MarkKind::kStepEnd, 1), "", 0);
  });
  EXPECT_EQ(Show(id).status().steps_done(), 0u);  // rank 0 counts
  Jobs([&](FakeJobDirectory& jobs) {
    jobs.Hand(1, MarkNow(attach::MarkKind::kStepBegin, 5), "", 0);
    jobs.Hand(1, MarkNow(attach::MarkKind::kStepEnd, 5), "", 0);
  });
  EXPECT_EQ(Until(id, v1::Session::STATE_DONE).status().reason(), "1 step (5..5)");
}

TEST_F(SessionManagerTest, TheNextRankCountsWhenTheFirstGoes) {
  AttachTwo();
  v1::SessionSpec request = Spec("job");
  request.mutable_schedule()->set_start_step(3);
  std::string id = Started(As(kAlice), request);
  Jobs([](FakeJobDirectory& jobs) {
    jobs.Detach(1);
    jobs.Step(2, 3, true);
  });
  Until(id, v1::Session::STATE_RUNNING);
  Stop(id);
  id = Started(As(kAlice), [] {
    v1::SessionSpec again = Spec("job");
    again.mutable_schedule()->set_start_step(9);
    return again;
  }());
  Jobs([](FakeJobDirectory& jobs) { jobs.Detach(2); });
  v1::Session session = Until(id, v1::Session::STATE_DONE);
  EXPECT_EQ(session.status().reason(), "no attached process is left to begin step 9 before it started");
  EXPECT_EQ(session.status().dump_path(), "");
}

TEST_F(SessionManagerTest, ReportsHowManyRanksThereWillBe) {
  TrainingProcess process = Process(10, kAlice, 0, 1);
  process.world_size = 2;
  jobs_.Add(process);
  std::string id = Started(As(kAlice), Spec("job"));
  EXPECT_EQ(Show(id).status().expected_ranks(), 2u);
}

TEST_F(SessionManagerTest, EndsWithTheLastProcessOfTheJob) {
  AttachTwo();
  std::string id = Started(As(kAlice), Spec("job"));
  Dies(10);
  Tick();
  EXPECT_EQ(Show(id).status().state(), v1::Session::STATE_RUNNING);
  Dies(11);
  Tick();
  EXPECT_EQ(Until(id, v1::Session::STATE_DONE).status().reason(), "all processes of the job have ended");
}

TEST_F(SessionManagerTest, ASessionOfTheNodeDoesNotEndWithAJob) {
  AttachTwo();
  v1::SessionSpec request = Spec("job");
  request.mutable_target()->set_all(true);
  std::string id = Started(As(kAlice), request);
  Dies(10);
  Dies(11);
  Tick();
  EXPECT_EQ(Show(id).status().state(), v1::Session::STATE_RUNNING);
}

}  // namespace
}  // namespace profd
