#include "client/libprofd/step_watch.h"

#include <gtest/gtest.h>

namespace profd::lib {
namespace {

using attach::SessionNotice;

class StepWatchTest : public ::testing::Test {
 protected:
  // "id+11" and "id-12" for the begin of 11 and the end of 12.
  std::string Feed(int64_t step, bool begin) {
    std::vector<attach::StepReport> reports;
    if (begin) now_ns_ += step_ns_;
    watch_.OnStep(step, begin, now_ns_, &reports);
    std::string text;
    for (const auto& report : reports) {
      text += report.session_id + (report.begin ? "+" : "-") + std::to_string(report.step) + " ";
    }
    return text;
  }
  std::string Begin(int64_t step) { return Feed(step, true); }
  std::string End(int64_t step) { return Feed(step, false); }
  StepWatch watch_;
  int64_t now_ns_ = 1;
  int64_t step_ns_ = 2 * StepWatch::kWarmUpNs;  // from one begin to the next
};

TEST_F(StepWatchTest, NothingIsWantedWithoutSessions) {
  EXPECT_FALSE(watch_.wants_marks());
  EXPECT_FALSE(watch_.wants_steps());
  EXPECT_EQ(Begin(1), "");
}

TEST_F(StepWatchTest, CollectorsAreDueOneStepBefore) {
  SessionNotice armed{"s", "armed", 11, 2, {}};
  armed.collect.emplace();
  watch_.OnNotice(armed, 7);
  Begin(9);
  EXPECT_FALSE(watch_.has_due());
  EXPECT_EQ(Begin(10), "");
  EXPECT_EQ(watch_.TakeDue(), std::vector<std::string>{"s"});
  EXPECT_EQ(Begin(11), "s+11 ");
  EXPECT_FALSE(watch_.has_due()) << "once";
  // Short steps: more of them.
  step_ns_ = StepWatch::kWarmUpNs / 3;
  armed.session_id = "short";
  armed.start_step = 17;
  watch_.OnNotice(armed, 11);
  Begin(12);
  Begin(13);
  EXPECT_FALSE(watch_.has_due());
  Begin(14);
  EXPECT_EQ(watch_.TakeDue(), std::vector<std::string>{"short"});
  step_ns_ = 2 * StepWatch::kWarmUpNs;
  armed.start_step = 11;
  // In the step before it, or later: at once.
  armed.session_id = "late";
  watch_.OnNotice(armed, 10);
  EXPECT_EQ(watch_.TakeDue(), std::vector<std::string>{"late"});
  // Steps that are not numbered one by one.
  armed.session_id = "gap";
  watch_.OnNotice(armed, 7);
  Begin(20);
  EXPECT_EQ(watch_.TakeDue(), std::vector<std::string>{"gap"});
}

TEST_F(StepWatchTest, TheFirstStepOfAllIsDueAtOnce) {
  for (int64_t first : {0, 1, 2}) {
    SessionNotice armed{"s" + std::to_string(first), "armed", first, 1, {}};
    armed.collect.emplace();
    watch_.OnNotice(armed, StepWatch::kNoStep);
  }
  EXPECT_EQ(watch_.TakeDue(), (std::vector<std::string>{"s0", "s1"}));
  Begin(1);
  EXPECT_EQ(watch_.TakeDue(), std::vector<std::string>{"s2"});
}

TEST_F(StepWatchTest, NothingIsDueWithoutARequestToCollect) {
  watch_.OnNotice({"s", "armed", 11, 2, {}}, 10);
  SessionNotice running{"r", "running", 11, 2, {}};
  running.collect.emplace();
  watch_.OnNotice(running, 10);
  Begin(10);
  Begin(11);
  EXPECT_FALSE(watch_.has_due());
}

TEST_F(StepWatchTest, BeginOfTheStartStepAndEndOfTheLast) {
  watch_.OnNotice({"s", "armed", 11, 2, {}});
  EXPECT_TRUE(watch_.wants_steps());
  EXPECT_FALSE(watch_.wants_marks());
  EXPECT_EQ(Begin(10) + End(10), "");
  EXPECT_FALSE(watch_.wants_marks());
  EXPECT_EQ(Begin(11), "s+11 ");
  EXPECT_TRUE(watch_.wants_marks());  // those of the step's first milliseconds, too
  watch_.OnNotice({"s", "running", 11, 2, {}});
  EXPECT_TRUE(watch_.wants_marks());
  EXPECT_EQ(End(11), "");
  EXPECT_EQ(Begin(12), "");
  EXPECT_TRUE(watch_.wants_steps());
  EXPECT_EQ(End(12), "s-12 ");
  EXPECT_FALSE(watch_.wants_steps());
  EXPECT_EQ(Begin(13) + End(13), "");
  watch_.OnNotice({"s", "ended", {}, 0, {}});
  EXPECT_FALSE(watch_.wants_marks());
}

TEST_F(StepWatchTest, WithoutStepsOnlyTheBegin) {
  watch_.OnNotice({"s", "armed", 3, 0, {}});
  EXPECT_EQ(Begin(3), "s+3 ");
  EXPECT_FALSE(watch_.wants_steps());
  EXPECT_EQ(End(3), "");
}

TEST_F(StepWatchTest, AMissedStartStepBeginsWithTheNext) {
  watch_.OnNotice({"s", "armed", 3, 1, {}});
  EXPECT_EQ(End(6), "");  // of a step that had begun before
  EXPECT_EQ(Begin(7), "s+7 ");
  EXPECT_EQ(End(7), "s-7 ");
}

TEST_F(StepWatchTest, ARunningSessionCountsCompleteSteps) {
  watch_.OnNotice({"s", "running", {}, 2, {}});
  EXPECT_TRUE(watch_.wants_marks());
  EXPECT_EQ(End(5), "");
  EXPECT_EQ(Begin(6) + End(6) + Begin(7), "");
  EXPECT_EQ(End(7), "s-7 ");
}

TEST_F(StepWatchTest, ASessionMayTakeStepsOnly) {
  attach::SessionNotice notice{"s", "running", {}, 1, {}};
  notice.marks = false;
  watch_.OnNotice(notice);
  EXPECT_FALSE(watch_.wants_marks());
  EXPECT_EQ(Begin(6), "");
  EXPECT_FALSE(watch_.wants_marks());
  EXPECT_EQ(End(6), "s-6 ");
  watch_.OnNotice({"t", "running", {}, 0, {}});
  EXPECT_TRUE(watch_.wants_marks()) << "another session does";
}

TEST_F(StepWatchTest, NumbersMayHaveGapsAndThreadsMayRepeatThem) {
  watch_.OnNotice({"s", "armed", 0, 2, {}});
  EXPECT_EQ(Begin(0), "s+0 ");
  EXPECT_EQ(Begin(0) + End(0) + End(0), "");
  EXPECT_EQ(Begin(10), "");
  EXPECT_EQ(End(10), "s-10 ");
}

TEST_F(StepWatchTest, ALoopThatNeverEndsItsStepsEndsThemWithTheNext) {
  watch_.OnNotice({"s", "armed", 5, 2, {}});
  EXPECT_EQ(Begin(5), "s+5 ");
  EXPECT_EQ(Begin(6), "");
  EXPECT_EQ(Begin(7), "s-6 ");
}

TEST_F(StepWatchTest, EachSessionCountsForItself) {
  watch_.OnNotice({"a", "armed", 1, 1, {}});
  watch_.OnNotice({"b", "armed", 2, 1, {}});
  EXPECT_EQ(Begin(1), "a+1 ");
  EXPECT_EQ(End(1), "a-1 ");
  EXPECT_EQ(Begin(2), "b+2 ");
  EXPECT_EQ(End(2), "b-2 ");
}

TEST_F(StepWatchTest, SessionsAreBounded) {
  for (size_t i = 0; i < 2 * StepWatch::kMaxSessions; ++i) {
    watch_.OnNotice({std::to_string(i), "armed", 0, 0, {}});
  }
  std::vector<attach::StepReport> reports;
  watch_.OnStep(0, true, 1, &reports);
  EXPECT_EQ(reports.size(), StepWatch::kMaxSessions);
  watch_.Clear();
  EXPECT_FALSE(watch_.wants_steps());
}

TEST_F(StepWatchTest, StacksAreWantedWhileASessionThatRequestsThemRuns) {
  EXPECT_EQ(watch_.wants_stacks(), 0);
  watch_.OnNotice({"s", "armed", 3, 0, {{"TORCH_CALL_STACK", "on"}}});
  watch_.OnNotice({"other", "running", {}, 0, {{"msproftx", "on"}}});
  EXPECT_EQ(watch_.wants_stacks(), 0);
  watch_.OnNotice({"s", "running", 3, 0, {{"TORCH_CALL_STACK", "on"}}});
  const int first = watch_.wants_stacks();
  EXPECT_NE(first, 0);
  watch_.OnNotice({"s", "running", 3, 0, {{"TORCH_CALL_STACK", "on"}}});
  EXPECT_EQ(watch_.wants_stacks(), first) << "the same session again";
  watch_.OnNotice({"t", "running", {}, 0, {{"TORCH_CALL_STACK", "on"}}});
  EXPECT_NE(watch_.wants_stacks(), first) << "it lacks what was sent before";
  watch_.OnNotice({"s", "ended", {}, 0, {}});
  EXPECT_NE(watch_.wants_stacks(), 0);
  watch_.OnNotice({"t", "ended", {}, 0, {}});
  EXPECT_EQ(watch_.wants_stacks(), 0);
}

}  // namespace
}  // namespace profd::lib
