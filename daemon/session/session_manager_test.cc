// Requests in time: starts to come, leases, limits, priorities.
#include "daemon/session/session_manager.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <map>

#include "daemon/metrics/self_metrics.h"
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
  v1::SessionSpec request = Spec();
  request.mutable_schedule()->set_start_in_ms(300);
  Result<v1::Session> ordered = Start(As(kAlice), request);
  ASSERT_TRUE(ordered.ok()) << ordered.status().ToString();
  EXPECT_EQ(ordered->status().state(), v1::Session::STATE_SCHEDULED);
  EXPECT_EQ(ordered->status().started_ns(), 0);
  EXPECT_EQ(ordered->spec().schedule().start_at_ns(), clock_.WallNs() + 300 * kNsPerMs);
  time_.Advance(300 * kNsPerMs - 1);
  EXPECT_EQ(Show(ordered->session_id()).status().state(), v1::Session::STATE_SCHEDULED);
  time_.Advance(1);
  v1::Session session = Until(ordered->session_id(), v1::Session::STATE_RUNNING);
  EXPECT_EQ(session.status().started_ns(), ordered->spec().schedule().start_at_ns());
  EXPECT_EQ(Stop(session.session_id()).status().state(), v1::Session::STATE_DONE);
}

TEST_F(SessionManagerTest, TheInstantIsTheWallClocks) {
  v1::SessionSpec request = Spec();
  request.mutable_schedule()->set_start_at_ns(clock_.WallNs() + 3600 * kNsPerSecond);
  request.set_no_dump(true);
  std::string id = Started(As(kAlice), request);
  EXPECT_EQ(Show(id).status().state(), v1::Session::STATE_SCHEDULED);
  clock_.wall_ns += 3600 * kNsPerSecond;
  Tick(2 * kNsPerSecond);
  Until(id, v1::Session::STATE_RUNNING);
}

// Else the first refusal for a reason, at which its series would begin, would be none for Prometheus's rate().
TEST_F(SessionManagerTest, RefusalsAreCountedFromZero) {
  SelfMetrics self(host_);
  const auto refused = [&] {
    manager_.UpdateMetrics(&self);
    self.Commit();
    std::map<std::string, double> by_reason;
    for (const prometheus::MetricFamily& family : self.Collect()) {
      if (family.name != "profd_sessions_refused_total") continue;
      for (const prometheus::ClientMetric& series : family.metric) by_reason[series.label.at(0).value] = series.counter.value;
    }
    return by_reason;
  };
  std::map<std::string, double> before = refused();
  EXPECT_EQ(before.size(), 16u) << "gRPC's codes but for OK";
  for (const auto& [reason, count] : before) EXPECT_EQ(count, 0) << reason;
  EXPECT_EQ(Start(As(kAlice), Spec("nobody")).status().code(), StatusCode::kNotFound);
  before["not found"] = 1;
  EXPECT_EQ(refused(), before);
}

TEST_F(SessionManagerTest, StopWhileScheduledLeavesNothing) {
  v1::SessionSpec request = Spec();
  request.mutable_schedule()->set_start_in_ms(800);  // its dump is made at once
  v1::Session session = Stop(Started(As(kAlice), request));
  EXPECT_EQ(session.status().state(), v1::Session::STATE_DONE);
  EXPECT_EQ(session.status().reason(), "stopped by uid 0 before it started");
  Until(session.session_id(), v1::Session::STATE_DONE);
  EXPECT_EQ(Show(session.session_id()).status().dump_path(), "");
  EXPECT_EQ(Dumps(), 0u);
}

// What its dump had until then is not claimed by the one answer nor by the other.
TEST_F(SessionManagerTest, StopWhileItStartsLeavesNothing) {
  std::promise<void> hang;
  writer_.Post([wait = hang.get_future().share()] { wait.wait(); });
  manager_.Start(As(kAlice), Spec(), [](const Result<v1::Session>&) {});
  time_.RunReady();
  const v1::ListSessionsResponse all = records_.List(As(0, true), {});
  hang.set_value();
  ASSERT_EQ(all.sessions_size(), 1);
  EXPECT_EQ(all.sessions(0).status().state(), v1::Session::STATE_STARTING);
  const v1::SessionStatus stopped = Stop(all.sessions(0).session_id()).status();
  EXPECT_EQ(stopped.state(), v1::Session::STATE_FAILED);
  EXPECT_EQ(stopped.reason(), "the session was stopped while it started: stopped by uid 0");
  EXPECT_EQ(stopped.dump_path(), "");
  EXPECT_EQ(stopped.dump_bytes(), 0u);
  EXPECT_EQ(stopped.segments_size(), 0);
  const v1::SessionStatus shown = Show(all.sessions(0).session_id()).status();
  EXPECT_EQ(shown.SerializeAsString(), stopped.SerializeAsString());
  EXPECT_EQ(Dumps(), 0u);
}

// A daemon that is killed meanwhile must not begin it again.
TEST_F(SessionManagerTest, AStopWhileItStartsIsSaved) {
  std::promise<void> hang;
  writer_.Post([wait = hang.get_future().share()] { wait.wait(); });
  manager_.Start(As(kAlice), Spec(), [](const Result<v1::Session>&) {});
  time_.RunReady();
  ASSERT_EQ(states_.sessions.size(), 1u);
  const std::string id = states_.sessions.begin()->first;
  v1::StopSessionRequest stop;
  stop.set_session_id(id);
  manager_.Stop(As(kAlice), stop, [](const Result<v1::Session>&) {});
  EXPECT_THAT(states_.sessions.at(id), HasSubstr("stopped by uid 1000"));
  hang.set_value();
  Until(id, v1::Session::STATE_FAILED);
}

TEST_F(SessionManagerTest, AStartWhoseClientHasGoneLeavesNothing) {
  const std::string id = Started(As(kAlice), Spec());
  EXPECT_NE(Show(id).status().dump_path(), "");
  manager_.Withdraw(id);
  const v1::SessionStatus session = Until(id, v1::Session::STATE_DONE).status();
  EXPECT_EQ(session.reason(), "its caller did not get the answer");
  EXPECT_EQ(session.dump_path(), "");
  EXPECT_EQ(session.dump_bytes(), 0u);
  EXPECT_EQ(Dumps(), 0u);
  manager_.Withdraw(id);  // it has ended
  manager_.Withdraw("unknown");
}

TEST_F(SessionManagerTest, LeaseExpiresWhenNoClientIsLeft) {
  v1::SessionSpec request = Spec();
  request.mutable_lease()->set_lease_ms(5000);
  request.mutable_lease()->set_starter_pid(10);
  std::string id = Started(As(kAlice), request);
  Tick(3600 * kNsPerSecond);
  EXPECT_EQ(Show(id).status().lease_left_ms(), 0u);
  EXPECT_EQ(manager_.RenewLease(As(kAlice), id).value_or(0), 5000u);
  EXPECT_EQ(manager_.RenewLease(As(kBob), id).status().code(), StatusCode::kNotFound);
  Dies(10);
  Tick(4 * kNsPerSecond);
  EXPECT_EQ(Show(id).status().state(), v1::Session::STATE_RUNNING);
  EXPECT_EQ(Show(id).status().lease_left_ms(), 1000u);
  EXPECT_EQ(manager_.RenewLease(As(kAlice), id).value_or(0), 5000u);
  Tick(4 * kNsPerSecond);
  EXPECT_EQ(Show(id).status().state(), v1::Session::STATE_RUNNING);
  Tick(kNsPerSecond);
  EXPECT_THAT(Until(id, v1::Session::STATE_DONE).status().reason(),
              AllOf(StartsWith("lease expired"), HasSubstr("process 10")));
}

TEST_F(SessionManagerTest, WithoutALeaseThereIsNothingToRenew) {
  std::string id = Started(As(kAlice), Spec());
  EXPECT_EQ(manager_.RenewLease(As(kAlice), id).value_or(7), std::nullopt);
}

TEST_F(SessionManagerTest, AnAdministratorPushesTheLowestAside) {
  config_.max_sessions = 2;
  v1::SessionSpec low = Spec();
  low.set_priority(2);
  std::string keeps = Started(As(kAlice), Spec());
  std::string gives = Started(As(kBob), low);
  Status full = Start(As(0, true), Spec()).status();
  EXPECT_EQ(full.code(), StatusCode::kResourceExhausted);
  EXPECT_THAT(full.message(), AllOf(HasSubstr("1 of uid 1000"), HasSubstr("no")));
  v1::SessionSpec request = Spec();
  request.set_preempt(true);
  std::string id = Started(As(0, true), request);
  EXPECT_EQ(Show(gives).status().reason(), "preempted by uid 0");
  EXPECT_EQ(Show(keeps).status().state(), v1::Session::STATE_RUNNING);
  // Equals are safe.
  EXPECT_EQ(Start(As(0, true), request).status().code(), StatusCode::kResourceExhausted);
  EXPECT_EQ(Show(id).status().state(), v1::Session::STATE_RUNNING);
}

TEST_F(SessionManagerTest, StartsPerMinute) {
  config_.max_starts_per_minute = 2;
  for (int i = 0; i < 2; ++i) Stop(Started(As(kAlice), Spec()));
  EXPECT_THAT(Start(As(kAlice), Spec()).status().message(),
              HasSubstr("limits.max_starts_per_minute"));
  EXPECT_TRUE(Start(As(kBob), Spec()).ok());
  time_.Advance(60 * kNsPerSecond);
  EXPECT_TRUE(Start(As(kAlice), Spec()).ok());
}

// What a session may write by its storage_limit counts for its user from its start, also where the limit of a dump is less.
TEST_F(SessionManagerTest, AStorageLimitCountsAsWritten) {
  config_.max_session_mb = 64;
  config_.max_dump_mb_per_uid = 100;
  v1::SessionSpec request = Spec();
  request.mutable_options()->set_storage_limit("200MB");
  const std::string id = Started(As(kAlice), request);
  const Result<v1::Session> second = Start(As(kAlice), request);
  EXPECT_EQ(second.status().code(), StatusCode::kResourceExhausted);
  EXPECT_THAT(second.status().message(), HasSubstr("may write 64 MB, this one requests 64 MB, the limit for one user is 100 MB"));
  EXPECT_TRUE(Start(As(kAlice), Spec()).ok()) << "without one, what is written counts";
  Stop(id);
  Until(id, v1::Session::STATE_DONE);
  EXPECT_TRUE(Start(As(kAlice), request).ok());
}

TEST_F(SessionManagerTest, EndsAfterItsDuration) {
  v1::SessionSpec request = Spec();
  request.mutable_schedule()->set_duration_ms(3'600'000);
  const int64_t begin = clock_.WallNs();
  std::string id = Started(As(kAlice), request);
  Tick(3599 * kNsPerSecond);
  EXPECT_EQ(Show(id).status().state(), v1::Session::STATE_RUNNING);
  time_.Advance(kNsPerSecond);
  v1::Session session = Until(id, v1::Session::STATE_DONE);
  EXPECT_EQ(session.status().reason(), "duration");
  EXPECT_EQ(session.status().ended_ns(), begin + 3600 * kNsPerSecond);
}

// A disk that hangs: the session is over for its user, and its dump is completed when it can be.
TEST_F(SessionManagerTest, AnEndThatTakesTooLongIsInterrupted) {
  v1::SessionSpec request = Spec();
  request.mutable_schedule()->set_duration_ms(1000);
  std::string id = Started(As(kAlice), request);
  std::promise<void> hang;
  writer_.Post([&, wait = hang.get_future().share()] { wait.wait(); });
  time_.Advance(kNsPerSecond);
  EXPECT_EQ(Show(id).status().state(), v1::Session::STATE_STOPPING);
  time_.Advance(10 * kNsPerSecond - 1);
  EXPECT_EQ(Show(id).status().state(), v1::Session::STATE_STOPPING);
  time_.Advance(1);
  EXPECT_EQ(Show(id).status().state(), v1::Session::STATE_INTERRUPTED);
  hang.set_value();
  const std::string manifest = Show(id).status().dump_path() + "/profd_manifest.json";
  EXPECT_TRUE(time_.RunUntil([&] {
    Result<Manifest> read = ParseManifest(ReadText(manifest));
    return read.ok() && read->state == DumpState::kDone;
  }));
}

TEST_F(SessionManagerTest, StoppingAJobNamesItsOtherSessions) {
  AttachTwo();
  std::string first = Started(As(kAlice), Spec("job"));
  std::string second = Started(As(kAlice), Spec("job"));
  v1::StopSessionRequest request;
  request.set_job_id("job");
  v1::Session last = Stop(As(kAlice), request);
  std::string other = last.session_id() == first ? second : first;
  ASSERT_EQ(last.status().warnings_size() > 0, true);
  EXPECT_THAT(last.status().warnings(last.status().warnings_size() - 1), HasSubstr(other));
  Until(first, v1::Session::STATE_DONE);
  Until(second, v1::Session::STATE_DONE);
}

TEST_F(SessionManagerTest, MetadataAndPriorityAreKept) {
  v1::SessionSpec request = Spec();
  (*request.mutable_metadata())["git"] = "abc";
  std::string id = Started(As(kAlice), request);
  v1::Session session = Stop(id);
  EXPECT_EQ(session.spec().metadata().at("git"), "abc");
  EXPECT_EQ(session.spec().priority(), 5u);
  EXPECT_THAT(session.status().processes(), IsEmpty());
  Result<Manifest> manifest =
      ParseManifest(ReadText(session.status().dump_path() + "/profd_manifest.json"));
  ASSERT_TRUE(manifest.ok());
  EXPECT_EQ(manifest->metadata.at("git"), "abc");
}

}  // namespace
}  // namespace profd
