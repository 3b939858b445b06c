#include "daemon/session/ended_session.h"

#include <gtest/gtest.h>

namespace profd {
namespace {

v1::Session View() {
  v1::Session view;
  view.set_session_id("s1");
  view.mutable_status()->set_state(v1::Session::STATE_DONE);
  for (int device = 0; device < 8; ++device) {
    for (const char* collector : {"hbm", "hccs", "pcie", "roce"}) {
      v1::Outcome& outcome = *view.mutable_status()->add_outcomes();
      outcome.set_collector(collector);
      outcome.set_device(device);
      outcome.set_records(1000);
    }
  }
  view.mutable_status()->add_segments()->set_dump_path("/dumps/PROF_1");
  return view;
}

TEST(EndedSession, GivesBackWhatItWasGiven) {
  const EndedSession ended(View());
  EXPECT_EQ(ended.Get().SerializeAsString(), View().SerializeAsString());
  EXPECT_EQ(ended.state(), v1::Session::STATE_DONE);
  EXPECT_TRUE(ended.Mentions("PROF_1"));
  EXPECT_FALSE(ended.Mentions("PROF_2"));
}

TEST(EndedSession, AnEditIsKept) {
  EndedSession ended(View());
  ended.Edit([](v1::Session& view) {
    view.mutable_status()->set_state(v1::Session::STATE_FAILED);
    view.mutable_status()->add_warnings("late");
  });
  EXPECT_EQ(ended.state(), v1::Session::STATE_FAILED);
  ASSERT_EQ(ended.Get().status().warnings_size(), 1);
  EXPECT_EQ(ended.Get().status().warnings(0), "late");
  EXPECT_EQ(ended.Get().status().outcomes_size(), 32);
}

// The reason it exists: hundreds of sessions of many devices are kept.
TEST(EndedSession, TakesAFractionOfTheMessagesMemory) {
  EXPECT_LT(EndedSession(View()).bytes() * 4, View().SpaceUsedLong());
}

}  // namespace
}  // namespace profd
