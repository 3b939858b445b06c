// Requests in time: starts to come, leases, limits, priorities.
#include "daemon/session/session_manager.h"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <google/protobuf/util/json_util.h>

#include <algorithm>

#include "daemon/session/stored_session.pb.h"
#include "daemon/session/testing/session_manager_fixture.h"

namespace profd {
namespace {

using ::testing::AllOf;
using ::testing::Contains;
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
  manager().Start(As(kAlice), Spec(), [](const Result<v1::Session>&) {});
  time_.RunReady();
  const v1::ListSessionsResponse all = manager().List(As(0, true), {});
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
  manager().Start(As(kAlice), Spec(), [](const Result<v1::Session>&) {});
  time_.RunReady();
  ASSERT_EQ(states_.sessions.size(), 1u);
  const std::string id = states_.sessions.begin()->first;
  v1::StopSessionRequest stop;
  stop.set_session_id(id);
  manager().Stop(As(kAlice), stop, [](const Result<v1::Session>&) {});
  EXPECT_THAT(states_.sessions.at(id), HasSubstr("stopped by uid 1000"));
  hang.set_value();
  Until(id, v1::Session::STATE_FAILED);
}

TEST_F(SessionManagerTest, AStartWhoseClientHasGoneLeavesNothing) {
  const std::string id = Started(As(kAlice), Spec());
  EXPECT_NE(Show(id).status().dump_path(), "");
  manager().Withdraw(id);
  const v1::SessionStatus session = Until(id, v1::Session::STATE_DONE).status();
  EXPECT_EQ(session.reason(), "its caller did not get the answer");
  EXPECT_EQ(session.dump_path(), "");
  EXPECT_EQ(session.dump_bytes(), 0u);
  EXPECT_EQ(Dumps(), 0u);
  manager().Withdraw(id);  // it has ended
  manager().Withdraw("unknown");
}

TEST_F(SessionManagerTest, LeaseExpiresWhenNoClientIsLeft) {
  v1::SessionSpec request = Spec();
  request.mutable_lease()->set_lease_ms(5000);
  request.mutable_lease()->set_starter_pid(10);
  std::string id = Started(As(kAlice), request);
  Tick(3600 * kNsPerSecond);
  EXPECT_EQ(Show(id).status().lease_left_ms(), 0u);
  EXPECT_EQ(manager().RenewLease(As(kAlice), id).value_or(0), 5000u);
  EXPECT_EQ(manager().RenewLease(As(kBob), id).status().code(), StatusCode::kNotFound);
  Dies(10);
  Tick(4 * kNsPerSecond);
  EXPECT_EQ(Show(id).status().state(), v1::Session::STATE_RUNNING);
  EXPECT_EQ(Show(id).status().lease_left_ms(), 1000u);
  EXPECT_EQ(manager().RenewLease(As(kAlice), id).value_or(0), 5000u);
  Tick(4 * kNsPerSecond);
  EXPECT_EQ(Show(id).status().state(), v1::Session::STATE_RUNNING);
  Tick(kNsPerSecond);
  EXPECT_THAT(Until(id, v1::Session::STATE_DONE).status().reason(),
              AllOf(StartsWith("lease expired"), HasSubstr("process 10")));
}

TEST_F(SessionManagerTest, WithoutALeaseThereIsNothingToRenew) {
  std::string id = Started(As(kAlice), Spec());
  EXPECT_EQ(manager().RenewLease(As(kAlice), id).value_or(7), std::nullopt);
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

// What another daemon would find of a session that waits for its start: it continues by this alone.
TEST_F(SessionManagerTest, AStateFileHasTheSpec) {
  v1::SessionSpec request = Spec();
  request.set_label("later");
  request.mutable_schedule()->set_start_in_ms(60'000);
  request.mutable_schedule()->set_duration_ms(5'000);
  const std::string id = Started(As(kAlice), request);
  const v1::Session before = Show(id);
  state::StoredSession stored;
  ASSERT_TRUE(google::protobuf::util::JsonStringToMessage(states_.sessions.at(id), &stored).ok()) << states_.sessions.at(id);
  EXPECT_EQ(stored.spec().SerializeAsString(), before.spec().SerializeAsString());

  std::string found = states_.sessions.at(id);
  found.replace(found.find(id), id.size(), "0123456789ab");
  manager().Resume("0123456789ab", found);
  const v1::Session after = Show("0123456789ab");
  EXPECT_EQ(after.status().state(), v1::Session::STATE_SCHEDULED);
  EXPECT_EQ(after.owner().uid(), kAlice);
  EXPECT_EQ(after.spec().label(), "later");
  EXPECT_EQ(after.spec().schedule().start_at_ns(), clock_.WallNs() + 60 * kNsPerSecond);
  EXPECT_EQ(after.spec().schedule().duration_ms(), 5'000u);
}

// A dump of an earlier daemon's as its manifest has it: 100 records of the host's memory, 3 lost.
v1::Session Found(const std::string& id, const std::string& dump, int64_t started_ns) {
  v1::Session found;
  found.set_session_id(id);
  found.mutable_owner()->set_uid(kAlice);
  v1::SessionStatus& status = *found.mutable_status();
  status.set_state(v1::Session::STATE_INTERRUPTED);
  status.set_dump_path("/dumps/" + dump);
  status.set_started_ns(started_ns);
  status.set_records(100);
  status.set_dropped_records(3);
  status.set_removed_records(20);
  status.set_removed_for_space(15);
  status.set_marks(7);
  v1::Outcome& outcome = *status.add_outcomes();
  outcome.set_collector("host_mem");
  outcome.set_result(v1::Outcome::RESULT_FINISHED);
  outcome.set_records(100);
  outcome.set_bytes(6400);
  outcome.set_dropped_records(3);
  return found;
}

TEST_F(SessionManagerTest, ASessionThatGoesOnCountsWhatItsSegmentsRecordedAndUsed) {
  state::StoredSession stored;
  ASSERT_TRUE(google::protobuf::util::JsonStringToMessage(states_.sessions.at(Started(As(kAlice), Spec())), &stored).ok());
  const std::string id = "0123456789ab";
  stored.set_session_id(id);
  state::StoredStatistics& used = *stored.add_statistics();
  used.set_device(3);
  used.set_energy_joules(5200);
  std::string text;
  ASSERT_TRUE(google::protobuf::util::MessageToJsonString(stored, &text).ok());
  // The newest first.
  manager().AddFound(Found(id, "PROF_000002", 2000));
  manager().AddFound(Found(id, "PROF_000001", 1000));
  manager().Resume(id, text);
  const v1::SessionStatus status = Until(id, v1::Session::STATE_RUNNING).status();
  ASSERT_EQ(status.segments_size(), 3);
  const uint64_t now = status.segments(2).records();
  EXPECT_EQ(status.records(), 200 + now);
  EXPECT_EQ(status.dropped_records(), 6u);
  EXPECT_EQ(status.removed_records(), 40u);
  EXPECT_EQ(status.removed_for_space(), 30u);
  EXPECT_EQ(status.marks(), 14u);
  const auto rows = std::ranges::count(status.outcomes(), "host_mem", &v1::Outcome::collector);
  ASSERT_EQ(rows, 1) << "one row of all segments";
  const v1::Outcome& row = *std::ranges::find(status.outcomes(), "host_mem", &v1::Outcome::collector);
  EXPECT_EQ(row.result(), v1::Outcome::RESULT_RUNNING);
  EXPECT_EQ(row.records(), 200 + now);
  EXPECT_GE(row.bytes(), 12'800u);
  EXPECT_EQ(row.dropped_records(), 6u);
  ASSERT_EQ(status.statistics_size(), 1);
  EXPECT_EQ(status.statistics(0).device(), 3u);
  EXPECT_EQ(status.statistics(0).energy_joules(), 5200);

  // For the daemon after this one: every 5 s, and when this one leaves.
  auto saved = [&] {
    state::StoredSession again;
    return google::protobuf::util::JsonStringToMessage(states_.sessions.at(id), &again).ok() && again.statistics_size() == 1 &&
           again.statistics(0).energy_joules() == 5200;
  };
  EXPECT_TRUE(saved());
  states_.sessions[id] = "";
  Tick(4 * kNsPerSecond);
  EXPECT_EQ(states_.sessions.at(id), "");
  Tick(kNsPerSecond);
  EXPECT_TRUE(saved());
  states_.sessions[id] = "";
  manager().SaveStates();
  EXPECT_TRUE(saved());
}

TEST_F(SessionManagerTest, ASessionThatDoesNotGoOnHasWhatItUsed) {
  const std::string id = "0123456789ab";
  manager().AddFound(Found(id, "PROF_000001", 1000));
  manager().Resume(id, R"({"version": 2, "session_id": "0123456789ab", "ending": "duration",
                           "statistics": [{"device": 3, "energy_joules": 5200, "utilization_sum": 1, "utilizations": 4}]})");
  const v1::SessionStatus status = Show(id).status();
  EXPECT_THAT(status.reason(), HasSubstr("it was being ended: duration"));
  ASSERT_EQ(status.statistics_size(), 1);
  EXPECT_EQ(status.statistics(0).device(), 3u);
  EXPECT_EQ(status.statistics(0).energy_joules(), 5200);
  EXPECT_EQ(status.statistics(0).mean_utilization_ratio(), 0.25);
}

TEST_F(SessionManagerTest, ASessionWithoutADumpThatDoesNotGoOnHasWhatItUsed) {
  const std::string id = "0123456789ab";
  manager().Resume(id, R"({"version": 2, "session_id": "0123456789ab", "ending": "duration",
                           "statistics": [{"device": 3, "energy_joules": 5200}]})");
  const v1::SessionStatus status = Show(id).status();
  EXPECT_EQ(status.state(), v1::Session::STATE_INTERRUPTED);
  ASSERT_EQ(status.statistics_size(), 1);
  EXPECT_EQ(status.statistics(0).energy_joules(), 5200);
}

TEST_F(SessionManagerTest, AnEndedSessionCountsWhatItsSegmentsRecorded) {
  manager().AddFound(Found("0123456789ab", "PROF_000002", 2000));
  manager().AddFound(Found("0123456789ab", "PROF_000001", 1000));
  const v1::SessionStatus status = Show("0123456789ab").status();
  EXPECT_EQ(status.records(), 200u);
  EXPECT_EQ(status.dropped_records(), 6u);
  EXPECT_EQ(status.removed_records(), 40u);
  EXPECT_EQ(status.removed_for_space(), 30u);
  EXPECT_EQ(status.marks(), 14u);
  ASSERT_EQ(status.outcomes_size(), 1);
  EXPECT_EQ(status.outcomes(0).records(), 200u);
  EXPECT_EQ(status.outcomes(0).bytes(), 12'800u);
  EXPECT_EQ(status.outcomes(0).dropped_records(), 6u);
}

// Each segment has its own counts, also after it was found again.
TEST_F(SessionManagerTest, ASegmentThatIsRemovedTakesItsCountsWithIt) {
  const std::string started = Started(As(kAlice), Spec());
  const std::string id = "0123456789ab";
  std::string text = states_.sessions.at(started);
  text.replace(text.find(started), started.size(), id);
  v1::Session newer = Found(id, "PROF_000002", 2000);
  newer.mutable_status()->set_records(10);
  newer.mutable_status()->set_dropped_records(1);
  newer.mutable_status()->mutable_outcomes(0)->set_records(10);
  manager().AddFound(newer);
  manager().AddFound(Found(id, "PROF_000001", 1000));
  manager().Resume(id, text);
  const auto records = [&] {
    const v1::SessionStatus status = Until(id, v1::Session::STATE_RUNNING).status();
    const auto row = std::ranges::find(status.outcomes(), "host_mem", &v1::Outcome::collector);
    const uint64_t now = status.segments(status.segments_size() - 1).records();
    EXPECT_EQ(status.records(), row->records());
    return std::pair(row->records() - now, status.dropped_records());
  };
  EXPECT_EQ(records(), std::pair(uint64_t{110}, uint64_t{4}));
  manager().OnDumpRemoved("PROF_000001", kReasonTotal);
  EXPECT_EQ(records(), std::pair(uint64_t{10}, uint64_t{1}));
  manager().OnDumpRemoved("PROF_000002", kReasonTotal);
  EXPECT_EQ(records(), std::pair(uint64_t{0}, uint64_t{0}));
}

TEST_F(SessionManagerTest, ADumpThatIsFoundLateDoesNotHideWhyItsSessionDidNotGoOn) {
  const char* const text = R"({"version": 2, "session_id": "0123456789ab", "ending": "duration", "peer": {"uid": 1000}})";
  manager().Resume("0123456789ab", text);
  manager().AddFound(Found("0123456789ab", "PROF_000002", 2000));
  manager().AddFound(Found("0123456789ab", "PROF_000001", 1000));
  v1::SessionStatus status = Show("0123456789ab").status();
  EXPECT_EQ(status.segments_size(), 2);
  EXPECT_THAT(status.reason(), HasSubstr("not continued: it was being ended: duration"));
  // One whose end was written, but not that it had ended.
  v1::Session ended = Found("0123456789ab", "PROF_000003", 3000);
  ended.mutable_status()->set_state(v1::Session::STATE_DONE);
  ended.mutable_status()->set_reason("duration");
  manager().AddFound(ended);
  status = Show("0123456789ab").status();
  EXPECT_EQ(status.state(), v1::Session::STATE_DONE);
  EXPECT_EQ(status.reason(), "duration");
}

// Also if the daemon is killed before its dump is gone.
TEST_F(SessionManagerTest, AnUnansweredStartLeavesNothingToTheNextDaemon) {
  const std::string id = Started(As(kAlice), Spec());
  manager().Withdraw(id);
  const std::string text = states_.sessions.at(id);
  ASSERT_THAT(text, HasSubstr("did not get the answer"));
  const auto resume = [&](const std::string& as) {
    std::string copy = text;
    copy.replace(copy.find(id), id.size(), as);
    manager().Resume(as, copy);
    EXPECT_EQ(Show(as).session_id(), "");
  };
  manager().AddFound(Found("0123456789ab", "PROF_000001", 1000));
  resume("0123456789ab");
  // Its end was written, and the dump is still there.
  v1::Session ended = Found("0123456789cd", "PROF_000002", 2000);
  ended.mutable_status()->set_state(v1::Session::STATE_DONE);
  manager().AddFound(ended);
  resume("0123456789cd");
  // Found after all sessions have resumed.
  resume("0123456789ef");
  manager().AddFound(Found("0123456789ef", "PROF_000003", 3000));
  EXPECT_EQ(Show("0123456789ef").session_id(), "");
  EXPECT_THAT(remover_.removed, AllOf(Contains("PROF_000001"), Contains("PROF_000002"), Contains("PROF_000003")));
  Until(id, v1::Session::STATE_DONE);
}

TEST_F(SessionManagerTest, AStateFileOfAnotherVersionIsDropped) {
  for (const char* version : {"1", "3"}) {
    states_.sessions["0123456789ab"] = "kept";
    manager().Resume("0123456789ab", fmt::format(R"({{"version": {}, "session_id": "0123456789ab",
                                                      "order": {{"job_id": "j"}}}})", version));
    EXPECT_TRUE(Show("0123456789ab").session_id().empty()) << version;
    EXPECT_FALSE(states_.sessions.contains("0123456789ab")) << version;
  }
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
