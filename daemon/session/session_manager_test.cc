// Orders in time: starts to come, leases, limits, priorities.
#include "daemon/session/session_manager.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "daemon/session/testing/session_manager_fixture.h"

namespace profd {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::StartsWith;
using profd::testing::kAlice;
using profd::testing::kBob;
using profd::testing::SessionManagerTest;

TEST_F(SessionManagerTest, StartsAtAnInstant) {
  v1::StartSessionRequest request = Order();
  request.set_start_in_ms(300);
  Result<v1::Session> ordered = Start(As(kAlice), request);
  ASSERT_TRUE(ordered.ok()) << ordered.status().ToString();
  EXPECT_EQ(ordered->state(), v1::Session::SCHEDULED);
  EXPECT_EQ(ordered->started_ns(), 0);
  EXPECT_EQ(ordered->start_at_ns(), clock_.WallNs() + 300 * kNsPerMs);
  time_.Advance(300 * kNsPerMs - 1);
  EXPECT_EQ(Show(ordered->session_id()).state(), v1::Session::SCHEDULED);
  time_.Advance(1);
  v1::Session session = Until(ordered->session_id(), v1::Session::RUNNING);
  EXPECT_EQ(session.started_ns(), ordered->start_at_ns());
  EXPECT_EQ(Stop(session.session_id()).state(), v1::Session::DONE);
}

TEST_F(SessionManagerTest, TheInstantIsTheWallClocks) {
  v1::StartSessionRequest request = Order();
  request.set_start_at_ns(clock_.WallNs() + 3600 * kNsPerSecond);
  request.set_no_dump(true);
  std::string id = Started(As(kAlice), request);
  EXPECT_EQ(Show(id).state(), v1::Session::SCHEDULED);
  clock_.wall_ns += 3600 * kNsPerSecond;
  Tick(2 * kNsPerSecond);
  Until(id, v1::Session::RUNNING);
}

TEST_F(SessionManagerTest, StopWhileScheduledLeavesNothing) {
  v1::StartSessionRequest request = Order();
  request.set_start_in_ms(800);  // its dump is made at once
  v1::Session session = Stop(Started(As(kAlice), request));
  EXPECT_EQ(session.state(), v1::Session::DONE);
  EXPECT_EQ(session.reason(), "stopped by uid 0 before it started");
  Until(session.session_id(), v1::Session::DONE);
  EXPECT_EQ(Show(session.session_id()).dump_path(), "");
  EXPECT_EQ(Dumps(), 0u);
}

TEST_F(SessionManagerTest, LeaseExpiresWhenNobodyIsLeft) {
  v1::StartSessionRequest request = Order();
  request.set_lease_ms(5000);
  request.set_starter_pid(10);
  std::string id = Started(As(kAlice), request);
  Tick(3600 * kNsPerSecond);
  EXPECT_EQ(Show(id).lease_left_ms(), 0u);
  EXPECT_EQ(manager().RenewLease(As(kAlice), id).value_or(0), 5000u);
  EXPECT_EQ(manager().RenewLease(As(kBob), id).status().code(), StatusCode::kNotFound);
  Dies(10);
  Tick(4 * kNsPerSecond);
  EXPECT_EQ(Show(id).state(), v1::Session::RUNNING);
  EXPECT_EQ(Show(id).lease_left_ms(), 1000u);
  EXPECT_EQ(manager().RenewLease(As(kAlice), id).value_or(0), 5000u);
  Tick(4 * kNsPerSecond);
  EXPECT_EQ(Show(id).state(), v1::Session::RUNNING);
  Tick(kNsPerSecond);
  EXPECT_THAT(Until(id, v1::Session::DONE).reason(),
              AllOf(StartsWith("lease expired"), HasSubstr("process 10")));
}

TEST_F(SessionManagerTest, WithoutALeaseThereIsNothingToRenew) {
  std::string id = Started(As(kAlice), Order());
  EXPECT_EQ(manager().RenewLease(As(kAlice), id).value_or(7), 0u);
}

TEST_F(SessionManagerTest, AnAdministratorPushesTheLowestAside) {
  config_.max_sessions = 2;
  v1::StartSessionRequest low = Order();
  low.set_priority(2);
  std::string keeps = Started(As(kAlice), Order());
  std::string gives = Started(As(kBob), low);
  Status full = Start(As(0, true), Order()).status();
  EXPECT_EQ(full.code(), StatusCode::kResourceExhausted);
  EXPECT_THAT(full.message(), AllOf(HasSubstr("1 of uid 1000"), HasSubstr("no")));
  v1::StartSessionRequest request = Order();
  request.set_preempt(true);
  std::string id = Started(As(0, true), request);
  EXPECT_EQ(Show(gives).reason(), "preempted by uid 0");
  EXPECT_EQ(Show(keeps).state(), v1::Session::RUNNING);
  // Equals are safe.
  EXPECT_EQ(Start(As(0, true), request).status().code(), StatusCode::kResourceExhausted);
  EXPECT_EQ(Show(id).state(), v1::Session::RUNNING);
}

TEST_F(SessionManagerTest, StartsPerMinute) {
  config_.max_starts_per_minute = 2;
  for (int i = 0; i < 2; ++i) Stop(Started(As(kAlice), Order()));
  EXPECT_THAT(Start(As(kAlice), Order()).status().message(),
              HasSubstr("limits.max_starts_per_minute"));
  EXPECT_TRUE(Start(As(kBob), Order()).ok());
  time_.Advance(60 * kNsPerSecond);
  EXPECT_TRUE(Start(As(kAlice), Order()).ok());
}

TEST_F(SessionManagerTest, EndsAfterItsDuration) {
  v1::StartSessionRequest request = Order();
  request.set_duration_ms(3'600'000);
  const int64_t begin = clock_.WallNs();
  std::string id = Started(As(kAlice), request);
  Tick(3599 * kNsPerSecond);
  EXPECT_EQ(Show(id).state(), v1::Session::RUNNING);
  time_.Advance(kNsPerSecond);
  v1::Session session = Until(id, v1::Session::DONE);
  EXPECT_EQ(session.reason(), "duration");
  EXPECT_EQ(session.ended_ns(), begin + 3600 * kNsPerSecond);
}

// A disk that hangs: the session is over for its user, and its dump is completed when it can be.
TEST_F(SessionManagerTest, AnEndThatTakesTooLongIsInterrupted) {
  v1::StartSessionRequest request = Order();
  request.set_duration_ms(1000);
  std::string id = Started(As(kAlice), request);
  std::promise<void> hang;
  writer_.Post([&, wait = hang.get_future().share()] { wait.wait(); });
  time_.Advance(kNsPerSecond);
  EXPECT_EQ(Show(id).state(), v1::Session::STOPPING);
  time_.Advance(10 * kNsPerSecond - 1);
  EXPECT_EQ(Show(id).state(), v1::Session::STOPPING);
  time_.Advance(1);
  EXPECT_EQ(Show(id).state(), v1::Session::INTERRUPTED);
  hang.set_value();
  const std::string manifest = Show(id).dump_path() + "/profd_manifest.json";
  EXPECT_TRUE(time_.RunUntil([&] {
    Result<Manifest> read = ParseManifest(ReadText(manifest));
    return read.ok() && read->state == DumpState::kDone;
  }));
}

TEST_F(SessionManagerTest, StoppingAJobNamesItsOtherSessions) {
  AttachTwo();
  std::string first = Started(As(kAlice), Order("job"));
  std::string second = Started(As(kAlice), Order("job"));
  v1::StopSessionRequest request;
  request.set_job_id("job");
  v1::Session last = Stop(As(kAlice), request);
  std::string other = last.session_id() == first ? second : first;
  ASSERT_EQ(last.warnings_size() > 0, true);
  EXPECT_THAT(last.warnings(last.warnings_size() - 1), HasSubstr(other));
  Until(first, v1::Session::DONE);
  Until(second, v1::Session::DONE);
}

TEST_F(SessionManagerTest, MetadataAndPriorityAreKept) {
  v1::StartSessionRequest request = Order();
  (*request.mutable_metadata())["git"] = "abc";
  std::string id = Started(As(kAlice), request);
  v1::Session session = Stop(id);
  EXPECT_EQ(session.metadata().at("git"), "abc");
  EXPECT_EQ(session.priority(), 5u);
  EXPECT_THAT(session.processes(), IsEmpty());
  Result<Manifest> manifest =
      ParseManifest(ReadText(session.dump_path() + "/profd_manifest.json"));
  ASSERT_TRUE(manifest.ok());
  EXPECT_EQ(manifest->metadata.at("git"), "abc");
}

}  // namespace
}  // namespace profd
