// Scheduled recordings, in time that the test moves: when, of which jobs, and which are kept.
#include "daemon/session/scheduled_recording.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "daemon/session/testing/session_manager_fixture.h"

namespace profd {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::SizeIs;
using profd::testing::kAlice;
using profd::testing::kBob;

class ScheduledRecordingTest : public profd::testing::SessionManagerTest {
 protected:
  ScheduledRecordingTest() {
    config_.sampling_enabled = true;
    config_.sampling_every_minutes = 10;
    config_.sampling_steps = 2;
    config_.sampling_max_seconds = 20;
    config_.sampling_max_percent = 50;
    config_.sampling_options = {};
    config_.sampling_collectors = {"host_mem=10"};
  }
  ScheduledRecording& recording() {
    if (recording_ == nullptr) {
      recording_ = std::make_unique<ScheduledRecording>(
          ScheduledRecording::Deps{control_, clock_, manager_, records_, kept_dumps_, jobs_,
                                   [](pid_t) { return std::vector<uint32_t>{}; }},
          config_);
    }
    return *recording_;
  }
  // As the daemon does, for so long.
  void Pass(int64_t seconds) {
    for (; seconds > 0; --seconds) {
      time_.Advance(kNsPerSecond);
      live_.Tick();
      control_.Post([this] { recording().Tick(); });
      time_.RunReady();
      // Openings and closings of dumps are the writer's, on a thread of its own.
      time_.RunUntil([this] { return !Moving(); });
    }
  }
  std::vector<v1::Session> Sessions() {
    std::vector<v1::Session> list;
    const v1::ListSessionsResponse listed = records_.List(As(0, true), {});
    for (const v1::Session& one : listed.sessions()) list.push_back(one);
    return list;
  }
  bool Moving() {
    for (const v1::Session& one : Sessions()) {
      const auto state = one.status().state();
      if (state == v1::Session::STATE_STARTING || state == v1::Session::STATE_STOPPING) return true;
    }
    return false;
  }
  void AttachAlices() { jobs_.Add(Process(10, kAlice, 0, 1)); }

  StateStore store_of_pins_{tmp_ / "kept"};
  DumpRetention retention_{DumpRetention::Deps{control_, clock_, store_of_pins_, states_, tmp_ / "kept-root"}, {}};
  DumpRequests kept_dumps_{control_, records_, remover_, &retention_};
  std::unique_ptr<ScheduledRecording> recording_;
};

TEST_F(ScheduledRecordingTest, AMinuteAfterTheJobAndThenByTime) {
  AttachAlices();
  Pass(59);
  EXPECT_THAT(Sessions(), IsEmpty());
  Pass(2);
  ASSERT_THAT(Sessions(), SizeIs(1));
  const v1::Session first = Sessions()[0];
  EXPECT_EQ(first.owner().uid(), kAlice);
  EXPECT_EQ(first.spec().label(), "sampling");
  EXPECT_EQ(first.spec().target().job_id(), "job");
  EXPECT_EQ(first.spec().schedule().duration_ms(), 20'000u);
  EXPECT_FALSE(first.spec().schedule().has_steps()) << "the process has reported none";
  Pass(25);
  EXPECT_EQ(Show(first.session_id()).status().state(), v1::Session::STATE_DONE);
  Pass(500);
  EXPECT_THAT(Sessions(), SizeIs(1));
  Pass(100);
  EXPECT_THAT(Sessions(), SizeIs(2));
  EXPECT_EQ(recording().counts().started, 2u);
}

TEST_F(ScheduledRecordingTest, BySteps) {
  config_.sampling_every_minutes = 0;
  config_.sampling_every_steps = 100;
  TrainingProcess process = Process(10, kAlice, 0, 1);
  process.step = 7;
  jobs_.Add(process);
  Pass(61);
  ASSERT_THAT(Sessions(), SizeIs(1));
  EXPECT_EQ(Sessions()[0].spec().schedule().steps(), 2u);
  Pass(300);
  EXPECT_THAT(Sessions(), SizeIs(1)) << "no 100 steps since";
  jobs_.Detach(1);
  process.step = 107;
  jobs_.Add(process);
  Pass(2);
  EXPECT_THAT(Sessions(), SizeIs(2));
}

// From the start of one recording to that of the next, however far the job came meanwhile.
TEST_F(ScheduledRecordingTest, ByStepsOrByTime) {
  config_.sampling_every_steps = 100;
  TrainingProcess process = Process(10, kAlice, 0, 1);
  process.step = 7;
  const auto reaches = [&](int64_t step) {
    jobs_.Detach(1);
    process.step = step;
    jobs_.Add(process);
  };
  jobs_.Add(process);
  Pass(61);
  ASSERT_THAT(Sessions(), SizeIs(1));
  Pass(30);
  reaches(50);
  Pass(30);
  EXPECT_THAT(Sessions(), SizeIs(1)) << "43 steps and a minute since";
  reaches(107);
  Pass(2);
  EXPECT_THAT(Sessions(), SizeIs(2)) << "100 steps";
  Pass(590);
  EXPECT_THAT(Sessions(), SizeIs(2));
  Pass(15);
  EXPECT_THAT(Sessions(), SizeIs(3)) << "ten minutes";
}

TEST_F(ScheduledRecordingTest, AJobThatIsProfiledAnywayIsLeftAlone) {
  AttachAlices();
  Pass(1);
  const std::string own = Started(As(kAlice), Spec("job"));
  Pass(70);
  EXPECT_THAT(Sessions(), SizeIs(1));
  EXPECT_EQ(recording().counts().busy, 1u);
  Stop(own);
  Pass(61);
  EXPECT_THAT(Sessions(), SizeIs(2));
}

TEST_F(ScheduledRecordingTest, ASessionToComePostponesOnlyWhatWouldReachIntoIt) {
  TrainingProcess process = Process(10, kAlice, 0, 1);
  process.step = 7;
  jobs_.Add(process);
  v1::SessionSpec at_a_time = Spec("job");
  at_a_time.mutable_schedule()->set_start_in_ms(3600'000);
  Started(As(kAlice), at_a_time);
  v1::SessionSpec at_a_step = Spec("job");
  at_a_step.mutable_schedule()->set_start_step(10);  // 8 and 9 would be a recording's
  const std::string step_session = Started(As(kAlice), at_a_step);
  Pass(61);
  EXPECT_EQ(recording().counts().started, 1u) << "neither has begun";
  EXPECT_EQ(recording().counts().busy, 0u);
  // The next one, ten minutes later, would reach into the step, or into the time.
  Pass(500);
  Stop(step_session);
  at_a_step.mutable_schedule()->set_start_step(9);
  const std::string near = Started(As(kAlice), at_a_step);
  Pass(110);
  EXPECT_EQ(recording().counts().started, 1u);
  EXPECT_GE(recording().counts().busy, 1u);
  Stop(near);
  at_a_time.mutable_schedule()->set_start_in_ms(60'000);
  Started(As(kAlice), at_a_time);
  Pass(61);
  EXPECT_EQ(recording().counts().started, 1u) << "less than max_seconds before it";
}

TEST_F(ScheduledRecordingTest, RulesOfJobs) {
  config_.sampling_jobs = {"job off", "other* every_minutes=1 steps=5"};
  AttachAlices();
  TrainingProcess bobs = Process(20, kBob, 0, 2);
  bobs.job_id = "other-1";
  bobs.step = 1;
  jobs_.Add(bobs);
  Pass(61);
  ASSERT_THAT(Sessions(), SizeIs(1));
  EXPECT_EQ(Sessions()[0].owner().uid(), kBob);
  EXPECT_EQ(Sessions()[0].spec().schedule().steps(), 5u);
  Pass(61);
  EXPECT_THAT(Sessions(), SizeIs(2));
}

// A recording of 20 s, at most a tenth of the time: the next one 180 s after its end at the earliest.
TEST_F(ScheduledRecordingTest, TheShareOfTimeIsBounded) {
  config_.sampling_every_minutes = 1;
  config_.sampling_max_percent = 10;
  AttachAlices();
  Pass(61);
  ASSERT_THAT(Sessions(), SizeIs(1));
  Pass(20 + 175);
  EXPECT_THAT(Sessions(), SizeIs(1));
  Pass(15);
  EXPECT_THAT(Sessions(), SizeIs(2));
}

TEST_F(ScheduledRecordingTest, TheOldestGo) {
  config_.sampling_every_minutes = 1;
  config_.sampling_keep = 2;
  AttachAlices();
  Pass(61 + 3 * 60 + 30);
  EXPECT_EQ(recording().counts().started, 4u);
  time_.RunUntil([this] { return Sessions().size() <= 2; });
  ASSERT_THAT(Sessions(), SizeIs(2));
  for (const v1::Session& one : Sessions()) EXPECT_GT(one.status().started_ns(), 0);
  EXPECT_EQ(Dumps(), 2u);
}

TEST_F(ScheduledRecordingTest, SoDoThoseThatTheListHasForgotten) {
  config_.sampling_keep = 2;
  v1::SessionSpec spec;
  spec.mutable_target()->set_job_id("job");
  spec.set_label("sampling");
  const auto add = [&](const std::string& name, const std::string& session, uint32_t uid) {
    retention_.Opened(NewDump(name, session, uid, spec));
    retention_.Closed(name, DumpState::kDone, 1);
  };
  add("PROF_1", "oldest", kAlice);
  add("PROF_2", "older", kAlice);
  add("PROF_3", "old", kAlice);
  add("PROF_4", "old", kAlice);  // its second segment
  add("PROF_5", "other", kBob);
  spec.set_label("mine");
  add("PROF_6", "own", kAlice);
  AttachAlices();
  Pass(61 + 25);
  EXPECT_EQ(recording().counts().started, 1u);
  EXPECT_THAT(Sessions(), SizeIs(1));
  EXPECT_THAT(remover_.removed, ElementsAre("PROF_2", "PROF_1")) << "the newest two stay";
}

TEST_F(ScheduledRecordingTest, ARefusalIsCountedAndTriedAgain) {
  config_.max_sessions_per_uid = 1;
  AttachAlices();
  Started(As(kAlice), Spec());
  Pass(61);
  EXPECT_EQ(recording().counts().failed, 1u);
  EXPECT_EQ(recording().counts().started, 0u);
}

TEST_F(ScheduledRecordingTest, OffByDefault) {
  EXPECT_FALSE(DaemonConfig().sampling_enabled);
  config_.sampling_enabled = false;
  AttachAlices();
  Pass(120);
  EXPECT_THAT(Sessions(), IsEmpty());
}

TEST(SamplingRuleTest, Texts) {
  const SamplingRule usual{"*", false, 30, 0, 3};
  Result<SamplingRule> rule = ParseSamplingRule("llm-* every_steps=500", usual);
  ASSERT_TRUE(rule.ok());
  EXPECT_TRUE(rule->Matches("llm-7b"));
  EXPECT_FALSE(rule->Matches("cnn"));
  EXPECT_EQ(rule->every_minutes, 30);
  EXPECT_EQ(rule->every_steps, 500);
  EXPECT_EQ(rule->steps, 3);
  EXPECT_TRUE(ParseSamplingRule("debug off", usual)->off);
  for (const char* wrong : {"", "job", "job steps=0", "job steps=1001", "job every_minutes=x", "job sometimes"}) {
    EXPECT_EQ(ParseSamplingRule(wrong, usual).status().code(), StatusCode::kInvalidArgument) << wrong;
  }
  EXPECT_EQ(SamplingOptions({"task_time=l1", "hccl=on"}, {}).value_or(""), R"({"task_time":"l1","hccl":"on"})");
  EXPECT_EQ(SamplingOptions({"task_time"}, {}).status().code(), StatusCode::kInvalidArgument);
  EXPECT_THAT(SamplingOptions({"gpu=1"}, {}).status().message(), HasSubstr("gpu"));
  // options.md: a collector named llc is enough for it.
  EXPECT_TRUE(SamplingOptions({"llc_profiling=write"}, {"hbm", "llc=20"}).ok());
  EXPECT_THAT(SamplingOptions({"llc_profiling=write"}, {"hbm"}).status().message(), HasSubstr("does nothing"));
  EXPECT_THAT(ParseSamplingRule("job steps=0", usual).status().message(), HasSubstr("from 1 to 1000"));
}

}  // namespace
}  // namespace profd
