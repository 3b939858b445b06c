#include "daemon/session/session_segments.h"

#include <gtest/gtest.h>

namespace profd {
namespace {

v1::SessionStatus SegmentStatus(const std::string& dump, int64_t started_ns, uint64_t bytes) {
  v1::SessionStatus status;
  status.set_state(v1::Session::STATE_INTERRUPTED);
  status.set_reason("of " + dump);
  status.set_dump_path("/dumps/" + dump);
  status.set_started_ns(started_ns);
  status.set_dump_bytes(bytes);
  status.set_records(bytes / 10);
  return status;
}

TEST(SessionSegments, ASessionIsShownFromItsFirstSegmentToItsLast) {
  v1::SessionStatus session = SegmentStatus("PROF_2", 2000, 50);
  *session.add_segments() = SegmentOf(session);
  AddSegment(SegmentStatus("PROF_1", 1000, 300), &session);
  v1::SessionStatus last = SegmentStatus("PROF_3", 3000, 10);
  last.set_state(v1::Session::STATE_DONE);
  AddSegment(last, &session);
  ASSERT_EQ(session.segments_size(), 3);
  EXPECT_EQ(session.segments(0).dump_path(), "/dumps/PROF_1");
  EXPECT_EQ(session.segments(2).dump_path(), "/dumps/PROF_3");
  EXPECT_EQ(session.started_ns(), 1000);
  EXPECT_EQ(session.dump_bytes(), 360u);
  EXPECT_EQ(session.records(), 36u);
  EXPECT_EQ(session.dump_path(), "/dumps/PROF_3");
  EXPECT_EQ(session.state(), v1::Session::STATE_DONE);
  EXPECT_EQ(session.reason(), "of PROF_3");
}

TEST(SessionSegments, ADumpThatGoesTakesItsBytesAndItsPath) {
  v1::SessionStatus session = SegmentStatus("PROF_1", 1000, 300);
  *session.add_segments() = SegmentOf(session);
  AddSegment(SegmentStatus("PROF_2", 2000, 50), &session);
  DropSegment("PROF_3", &session);
  EXPECT_EQ(session.segments_size(), 2);
  DropSegment("PROF_2", &session);
  EXPECT_EQ(session.segments_size(), 1);
  EXPECT_EQ(session.dump_bytes(), 300u);
  EXPECT_EQ(session.dump_path(), "/dumps/PROF_1");
  DropSegment("PROF_1", &session);
  EXPECT_EQ(session.dump_bytes(), 0u);
  EXPECT_EQ(session.dump_path(), "");
}

}  // namespace
}  // namespace profd
