// What is printed of a session: its figures.
#include "client/session_view.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <sstream>

namespace profd::client {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

std::string Statistics(const v1::Session& session) {
  std::ostringstream out;
  PrintStatistics(out, session, false);
  return out.str();
}

TEST(SessionViewTest, SaysWhatTheNpusFiguresDoNotCover) {
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

}  // namespace
}  // namespace profd::client
