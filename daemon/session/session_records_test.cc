#include "daemon/session/session_records.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/manual_executor.h"

namespace profd {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

constexpr uint32_t kAnn = 1000;
constexpr uint32_t kBen = 2000;

class SessionRecordsTest : public ::testing::Test {
 protected:
  // With a dump of its own for each name.
  static v1::Session Ended(const std::string& id, uint32_t uid, const std::vector<std::string>& dumps = {}) {
    v1::Session session;
    session.set_session_id(id);
    session.mutable_owner()->set_uid(uid);
    session.mutable_status()->set_state(v1::Session::STATE_DONE);
    for (const std::string& dump : dumps) session.mutable_status()->add_segments()->set_dump_path("/dumps/" + dump);
    return session;
  }
  std::vector<std::string> Listed(const Peer& peer) const {
    std::vector<std::string> ids;
    const v1::ListSessionsResponse list = records_.List(peer, {});
    for (const v1::Session& session : list.sessions()) ids.push_back(session.session_id());
    return ids;
  }

  const Peer ann_{.uid = kAnn};
  const Peer ben_{.uid = kBen};
  const Peer root_{.uid = 0, .admin = true};
  ManualClock clock_;
  ManualExecutor time_{clock_};
  Strand control_{time_.executor()};
  DaemonConfig config_;
  SessionRecords records_{control_, clock_, config_, nullptr};
};

TEST_F(SessionRecordsTest, SessionsOfOthersDoNotExist) {
  records_.AddEnded(Ended("a", kAnn));
  records_.AddEnded(Ended("b", kBen));
  EXPECT_TRUE(records_.Get(ann_, "a").ok());
  EXPECT_EQ(records_.Get(ben_, "a").status().ToString(), SessionRecords::NoSession("a").ToString());
  EXPECT_EQ(records_.Find(ben_, "a"), nullptr);
  EXPECT_THAT(Listed(ben_), ElementsAre("b"));
  EXPECT_THAT(Listed(root_), ElementsAre("a", "b"));
  // A viewer sees what it does not own.
  const Peer viewer{.viewer = true};
  EXPECT_TRUE(records_.Get(viewer, "a").ok());
  EXPECT_EQ(records_.Find(viewer, "a"), nullptr);
  EXPECT_THAT(Listed(viewer), ElementsAre("a", "b"));
}

TEST_F(SessionRecordsTest, AnIdIsTakenOnce) {
  records_.AddEnded(Ended("a", kAnn));
  records_.AddEnded(Ended("a", kBen));
  records_.AddEnded(Ended("", kBen));
  EXPECT_THAT(Listed(ben_), ElementsAre());
  EXPECT_EQ(records_.active(), 0u);
  EXPECT_EQ(records_.UidOf("a"), std::nullopt) << "it has ended";
}

// Those of earlier daemons, which come newest first, are before all of this one's.
TEST_F(SessionRecordsTest, TheOldestGoFirst) {
  config_.keep_finished = 3;
  records_.AddEnded(Ended("first", kAnn));
  records_.AddFound(Ended("earlier", kAnn));
  records_.AddFound(Ended("before that", kAnn));
  EXPECT_THAT(Listed(ann_), ElementsAre("before that", "earlier", "first"));
  records_.AddEnded(Ended("second", kAnn));
  EXPECT_THAT(Listed(ann_), ElementsAre("earlier", "first", "second"));
  config_.keep_finished = 1;
  records_.AddEnded(Ended("third", kAnn));
  EXPECT_THAT(Listed(ann_), ElementsAre("third"));
}

TEST_F(SessionRecordsTest, ADumpThatRetentionRemovesIsMissed) {
  records_.AddFound(Ended("a", kAnn, {"PROF_1", "PROF_2", "PROF_3"}));
  records_.OnDumpRemoved("PROF_4", kReasonTotal);
  records_.OnDumpRemoved("PROF_1", kReasonTotal);
  records_.OnDumpRemoved("PROF_3", kReasonRequest);
  const v1::Session session = records_.Get(ann_, "a").value_or({});
  ASSERT_EQ(session.status().segments_size(), 1);
  EXPECT_EQ(session.status().segments(0).dump_path(), "/dumps/PROF_2");
  ASSERT_EQ(session.status().warnings_size(), 1);
  EXPECT_THAT(session.status().warnings(0), HasSubstr("PROF_1 was removed by retention"));
}

TEST_F(SessionRecordsTest, ListsByJobAndNotWhatHasEnded) {
  v1::Session session = Ended("a", kAnn);
  session.mutable_spec()->mutable_target()->set_job_id("job");
  records_.AddEnded(session);
  v1::ListSessionsRequest request;
  request.set_job_id("other");
  EXPECT_EQ(records_.List(ann_, request).sessions_size(), 0);
  request.set_job_id("job");
  EXPECT_EQ(records_.List(ann_, request).sessions_size(), 1);
  request.set_active_only(true);
  EXPECT_EQ(records_.List(ann_, request).sessions_size(), 0);
}

}  // namespace
}  // namespace profd
