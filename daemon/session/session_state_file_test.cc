#include "daemon/session/session_state_file.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace profd {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

// As another version of profd may have written it: with a field that this one does not know.
constexpr const char* kStored = R"({
  "version": 2, "session_id": "0123456789ab", "later": 1,
  "peer": {"pid": 7, "uid": 1000, "gid": 100, "groups": [4, 5], "admin": true},
  "spec": {"target": {"job_id": "job", "ranks": [1]}},
  "targets": {"bound": true, "devices": [3],
              "processes": [{"pid": 10, "start_ticks": "110", "uid": 1000, "job_id": "job", "rank": 1, "attached": true}],
              "unknown": [{"pid": 20}]}})";

TEST(SessionStateFile, SaysOfWhomAndOfWhatTheSessionIs) {
  state::StoredSession stored;
  ASSERT_TRUE(ParseStateFile(kStored, &stored));
  const Peer peer = PeerOf(stored);
  EXPECT_EQ(peer.pid, 7);
  EXPECT_EQ(peer.uid, 1000u);
  EXPECT_EQ(peer.gid, 100u);
  EXPECT_THAT(peer.groups, ElementsAre(4u, 5u));
  EXPECT_TRUE(peer.admin);
  const SessionTargets targets = TargetsOf(stored, true);
  EXPECT_EQ(targets.job_id, "job");
  EXPECT_EQ(targets.uid, 1000u);
  EXPECT_TRUE(targets.bound);
  EXPECT_THAT(targets.ranks, ElementsAre(1));
  EXPECT_THAT(targets.devices, ElementsAre(3));
  EXPECT_THAT(targets.unknown_pids, ElementsAre(20));
  ASSERT_EQ(targets.processes.size(), 1u);
  EXPECT_EQ(targets.processes[0].pid, 10);
  EXPECT_EQ(targets.processes[0].start_ticks, 110u);
  EXPECT_EQ(targets.processes[0].rank, 1);
  EXPECT_FALSE(targets.processes[0].attached()) << "it has to come again";
}

// Followed from before its first process came: nothing was known of its devices then.
TEST(SessionStateFile, DevicesOfProcessesThatJoinedAreTheSessions) {
  state::StoredSession stored;
  ASSERT_TRUE(ParseStateFile(R"({"targets": {"bound": true, "processes": [{"pid": 10, "devices": [2, 1]}, {"pid": 11, "devices": [1]}]}})", &stored));
  EXPECT_THAT(TargetsOf(stored, true).devices, ElementsAre(1, 2));
  stored.mutable_targets()->set_bound(false);
  EXPECT_THAT(TargetsOf(stored, true).devices, IsEmpty()) << "the request names them, or means all";
}

TEST(SessionStateFile, AfterABootAPidWithoutItsProcessMeansNothing) {
  state::StoredSession stored;
  ASSERT_TRUE(ParseStateFile(kStored, &stored));
  EXPECT_THAT(TargetsOf(stored, false).unknown_pids, IsEmpty());
  EXPECT_EQ(TargetsOf(stored, false).processes.size(), 1u);
}

TEST(SessionStateFile, ADamagedOneIsNotRead) {
  state::StoredSession stored;
  for (const char* text : {"{", R"({"version": "two"})"}) EXPECT_FALSE(ParseStateFile(text, &stored)) << text;
}

}  // namespace
}  // namespace profd
