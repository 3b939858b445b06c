// What is printed of a session: its figures, what limits removed.
#include "client/session_view.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <sstream>

#include "client/test_support.h"

namespace profd::client {
namespace {

using ::testing::AllOf;
using ::testing::ContainsRegex;
using ::testing::HasSubstr;
using ::testing::Not;

std::string Statistics(const v1::Session& session) {
  std::ostringstream out;
  PrintStatistics(out, session, false);
  return out.str();
}

TEST(SessionViewTest, ShowsWhatTheNpusFiguresDoNotCover) {
  v1::Session session;
  v1::SessionStatus& status = *session.mutable_status();
  status.add_statistics()->set_device(3);
  for (int64_t second : {1000, 1026}) {
    v1::Segment& segment = *status.add_segments();
    segment.set_started_ns(second * kNsPerSecond);
    segment.set_ended_ns((second + 20) * kNsPerSecond);
  }
  EXPECT_THAT(Statistics(session), HasSubstr("these do not cover the 6.0 s between its segments, when profd did not run"));
  status.mutable_segments()->DeleteSubrange(0, 1);
  EXPECT_THAT(Statistics(session), Not(HasSubstr("do not cover")));
}

class ShowTest : public ProfctlTest {};

// Retention removes the oldest; the manifests of the others, and their numbers, stay as they are.
TEST_F(ShowTest, SegmentsHaveTheirOwnNumbers) {
  v1::SessionStatus& status = *daemon_.sessions["s2"].mutable_status();
  for (uint32_t number : {3u, 5u}) {
    v1::Segment& segment = *status.add_segments();
    segment.set_number(number);
    segment.set_state(v1::Session::STATE_INTERRUPTED);
  }
  const auto shown = [this] {
    EXPECT_EQ(Run({"show", "s2"}), 0) << err();
    return out();
  };
  EXPECT_THAT(shown(), AllOf(ContainsRegex("\n  3 +interrupted"), ContainsRegex("\n  5 +interrupted")));
  v1::Segment& first = *status.mutable_segments(0);
  first.clear_number();
  status.mutable_segments(1)->clear_number();
  EXPECT_THAT(shown(), AllOf(ContainsRegex("\n  1 +interrupted"), ContainsRegex("\n  2 +interrupted"))) << "of a daemon before";
  first.set_number(2);
  status.mutable_segments()->RemoveLast();
  EXPECT_THAT(shown(), ContainsRegex("\n  2 +interrupted")) << "it is not all of the session";
  first.set_number(1);
  EXPECT_THAT(shown(), Not(HasSubstr("SEGMENT")));
}

TEST(SessionViewTest, NamesTheBytesWhereNoLostRecordIsKnown) {
  v1::Session session;
  EXPECT_EQ(DroppedText(session), "0 dropped");
  session.mutable_status()->set_dropped_bytes(138'547);  // 135.3 KiB
  EXPECT_EQ(DroppedText(session), "135.3 KiB dropped");
  session.mutable_status()->set_dropped_records(3);
  EXPECT_EQ(DroppedText(session), "3 dropped");
}

TEST(SessionViewTest, ShowsWhatWasRemovedAndWhy) {
  v1::Session session;
  v1::SessionStatus& status = *session.mutable_status();
  v1::EffectiveOption& limit = *status.add_effective_options();
  limit.set_key("storage_limit");
  limit.set_value("35MB");
  limit.set_note("90 % of the free space");
  EXPECT_EQ(RemovedText(session), "");
  status.set_removed_records(1000);
  EXPECT_EQ(RemovedText(session), "1000 records, the oldest, to stay within storage_limit 35MB, 90 % of the free space");
  limit.set_asked("35MB");
  EXPECT_EQ(RemovedText(session), "1000 records, the oldest, to stay within storage_limit 35MB");
  status.set_removed_for_space(400);
  EXPECT_EQ(RemovedText(session),
            "1000 records, the oldest: 400 because the volume was nearly full (dump.min_free_mb), 600 to stay within storage_limit 35MB");
  status.set_removed_for_space(1000);
  EXPECT_EQ(RemovedText(session), "1000 records, the oldest, because the volume was nearly full (dump.min_free_mb)");
  EXPECT_EQ(RemovedText(7, 0, ""), "7 records, the oldest, to stay within the dump's limit");
}

// One rule for the list and for what the end of a session reports.
TEST(SessionViewTest, ASessionThatNoProcessServedIsPartialOnceItHasEnded) {
  v1::Session session;
  v1::SessionStatus& status = *session.mutable_status();
  const auto add = [&status](const char* collector, v1::Outcome::Result result) {
    v1::Outcome& outcome = *status.add_outcomes();
    outcome.set_collector(collector);
    outcome.set_result(result);
  };
  add("hccs", v1::Outcome::RESULT_RUNNING);
  add("task_time", v1::Outcome::RESULT_NEEDS_PROCESS);
  add("ddr", v1::Outcome::RESULT_UNSUPPORTED);
  status.set_state(v1::Session::STATE_RUNNING);
  EXPECT_THAT(StateCell(session).text, Not(HasSubstr("partial")));
  status.set_state(v1::Session::STATE_DONE);
  EXPECT_THAT(StateCell(session).text, Not(HasSubstr("partial"))) << "task_time is on by default";
  EXPECT_EQ(ToJson(session)["partial"], false);
  v1::EffectiveOption& option = *status.add_effective_options();
  option.set_key("task_time");
  option.set_asked("l1");
  EXPECT_EQ(StateCell(session).text, "done, partial");
  EXPECT_EQ(ToJson(session)["partial"], true);
}

}  // namespace
}  // namespace profd::client
