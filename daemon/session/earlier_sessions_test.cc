#include "daemon/session/earlier_sessions.h"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <google/protobuf/util/json_util.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>

#include "daemon/session/session_recovered.h"
#include "daemon/session/session_segments.h"
#include "daemon/session/session_state_file.h"
#include "daemon/session/stored_session.pb.h"
#include "daemon/session/testing/session_manager_fixture.h"

namespace profd {
namespace {

using ::testing::AllOf;
using ::testing::Contains;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::Property;
using profd::testing::kAlice;

constexpr const char* kId = "0123456789ab";  // of an earlier daemon's session

class EarlierSessionsTest : public profd::testing::SessionManagerTest {
 protected:
  state::StoredSession Saved(const std::string& id) const {
    state::StoredSession stored;
    EXPECT_TRUE(ParseStateFile(states_.sessions.at(id), &stored)) << states_.sessions.at(id);
    return stored;
  }
  // What is saved of a session that runs, as that of an earlier one.
  state::StoredSession SavedAs(const std::string& id) {
    state::StoredSession stored = Saved(Started(As(kAlice), Spec()));
    stored.set_session_id(id);
    return stored;
  }
  void Resume(const state::StoredSession& stored) {
    std::string text;
    EXPECT_TRUE(google::protobuf::util::MessageToJsonString(stored, &text).ok());
    earlier_.Resume(stored.session_id(), text);
  }
};

// A dump of an earlier daemon's as its manifest has it: 100 records of the host's memory, 3 lost.
v1::Session Found(const std::string& id, const std::string& dump, int64_t started_ns, uint32_t number = 1) {
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
  v1::Segment only = SegmentOf(status);
  only.set_number(number);
  *status.add_segments() = std::move(only);
  return found;
}

// What another daemon would find of a session that waits for its start: it continues by this alone.
TEST_F(EarlierSessionsTest, AStateFileHasTheSpec) {
  v1::SessionSpec request = Spec();
  request.set_label("later");
  request.mutable_schedule()->set_start_in_ms(60'000);
  request.mutable_schedule()->set_duration_ms(5'000);
  const std::string id = Started(As(kAlice), request);
  const v1::Session before = Show(id);
  EXPECT_EQ(Saved(id).spec().SerializeAsString(), before.spec().SerializeAsString());

  std::string found = states_.sessions.at(id);
  found.replace(found.find(id), id.size(), kId);
  earlier_.Resume(kId, found);
  const v1::Session after = Show(kId);
  EXPECT_EQ(after.status().state(), v1::Session::STATE_SCHEDULED);
  EXPECT_EQ(after.owner().uid(), kAlice);
  EXPECT_EQ(after.spec().label(), "later");
  EXPECT_EQ(after.spec().schedule().start_at_ns(), clock_.WallNs() + 60 * kNsPerSecond);
  EXPECT_EQ(after.spec().schedule().duration_ms(), 5'000u);
}

TEST_F(EarlierSessionsTest, ASessionThatGoesOnCountsWhatItsSegmentsRecordedAndUsed) {
  state::StoredSession stored = SavedAs(kId);
  state::StoredStatistics& used = *stored.add_statistics();
  used.set_device(3);
  used.set_energy_joules(5200);
  // The newest first.
  earlier_.AddFound(Found(kId, "PROF_000002", 2000));
  earlier_.AddFound(Found(kId, "PROF_000001", 1000));
  Resume(stored);
  const v1::SessionStatus status = Until(kId, v1::Session::STATE_RUNNING).status();
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
    const state::StoredSession again = Saved(kId);
    return again.statistics_size() == 1 && again.statistics(0).energy_joules() == 5200;
  };
  EXPECT_TRUE(saved());
  states_.sessions[kId] = "";
  Tick(4 * kNsPerSecond);
  EXPECT_EQ(states_.sessions.at(kId), "");
  Tick(kNsPerSecond);
  EXPECT_TRUE(saved());
  states_.sessions[kId] = "";
  live_.SaveStates();
  EXPECT_TRUE(saved());
}

// Its data begins before its request, by what the flight recorder held.
TEST_F(EarlierSessionsTest, ASessionThatGoesOnBeginsInThePastAsBefore) {
  state::StoredSession stored = SavedAs(kId);
  stored.set_started_ns(5 * kNsPerSecond);
  stored.set_since_ns(2 * kNsPerSecond);
  Resume(stored);
  const v1::SessionStatus status = Until(kId, v1::Session::STATE_RUNNING).status();
  EXPECT_EQ(status.started_ns(), 5 * kNsPerSecond);
  EXPECT_EQ(status.since_ns(), 2 * kNsPerSecond);
  EXPECT_EQ(Saved(kId).since_ns(), 2 * kNsPerSecond) << "for the daemon after this one";
}

TEST_F(EarlierSessionsTest, ASessionThatDoesNotGoOnHasWhatItUsed) {
  earlier_.AddFound(Found(kId, "PROF_000001", 1000));
  earlier_.Resume(kId, R"({"version": 2, "session_id": "0123456789ab", "ending": "duration",
                           "statistics": [{"device": 3, "energy_joules": 5200, "utilization_sum": 1, "utilizations": 4}]})");
  const v1::SessionStatus status = Show(kId).status();
  EXPECT_THAT(status.reason(), HasSubstr("it was being ended: duration"));
  ASSERT_EQ(status.statistics_size(), 1);
  EXPECT_EQ(status.statistics(0).device(), 3u);
  EXPECT_EQ(status.statistics(0).energy_joules(), 5200);
  EXPECT_EQ(status.statistics(0).mean_utilization_ratio(), 0.25);
}

TEST_F(EarlierSessionsTest, ASessionWithoutADumpThatDoesNotGoOnHasWhatItUsed) {
  earlier_.Resume(kId, R"({"version": 2, "session_id": "0123456789ab", "ending": "duration",
                           "statistics": [{"device": 3, "energy_joules": 5200}]})");
  const v1::SessionStatus status = Show(kId).status();
  EXPECT_EQ(status.state(), v1::Session::STATE_INTERRUPTED);
  ASSERT_EQ(status.statistics_size(), 1);
  EXPECT_EQ(status.statistics(0).energy_joules(), 5200);
}

TEST_F(EarlierSessionsTest, AnEndedSessionCountsWhatItsSegmentsRecorded) {
  earlier_.AddFound(Found(kId, "PROF_000002", 2000));
  earlier_.AddFound(Found(kId, "PROF_000001", 1000));
  const v1::SessionStatus status = Show(kId).status();
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

// The first two of four were removed before this daemon began.
TEST_F(EarlierSessionsTest, SegmentsKeepTheirNumbers) {
  const auto numbers = [this] {
    std::vector<uint32_t> all;
    const v1::Session session = Show(kId);
    for (const v1::Segment& segment : session.status().segments()) all.push_back(segment.number());
    return all;
  };
  earlier_.AddFound(Found(kId, "PROF_000004", 4000, 4));
  EXPECT_THAT(numbers(), ElementsAre(4u));
  earlier_.AddFound(Found(kId, "PROF_000003", 3000, 3));
  EXPECT_THAT(numbers(), ElementsAre(3u, 4u));
  records_.OnDumpRemoved("PROF_000003", kReasonTotal);
  EXPECT_THAT(numbers(), ElementsAre(4u));
}

// Each segment has its own counts, also after it was found again.
TEST_F(EarlierSessionsTest, ASegmentThatIsRemovedTakesItsCountsWithIt) {
  const std::string started = Started(As(kAlice), Spec());
  std::string text = states_.sessions.at(started);
  text.replace(text.find(started), started.size(), kId);
  v1::Session newer = Found(kId, "PROF_000002", 2000);
  newer.mutable_status()->set_records(10);
  newer.mutable_status()->set_dropped_records(1);
  newer.mutable_status()->mutable_outcomes(0)->set_records(10);
  earlier_.AddFound(newer);
  earlier_.AddFound(Found(kId, "PROF_000001", 1000));
  earlier_.Resume(kId, text);
  const auto records = [&] {
    const v1::SessionStatus status = Until(kId, v1::Session::STATE_RUNNING).status();
    const auto row = std::ranges::find(status.outcomes(), "host_mem", &v1::Outcome::collector);
    const uint64_t now = status.segments(status.segments_size() - 1).records();
    EXPECT_EQ(status.records(), row->records());
    return std::pair(row->records() - now, status.dropped_records());
  };
  EXPECT_EQ(records(), std::pair(uint64_t{110}, uint64_t{4}));
  records_.OnDumpRemoved("PROF_000001", kReasonTotal);
  EXPECT_EQ(records(), std::pair(uint64_t{10}, uint64_t{1}));
  records_.OnDumpRemoved("PROF_000002", kReasonTotal);
  EXPECT_EQ(records(), std::pair(uint64_t{0}, uint64_t{0}));
}

// Of the four dumps that it had one is left: the next is the fifth.
TEST_F(EarlierSessionsTest, ANumberOfASegmentIsNotGivenTwice) {
  state::StoredSession stored = SavedAs(kId);
  EXPECT_EQ(stored.segment(), 1u);
  stored.set_segment(4);
  stored.set_dump("PROF_000004");
  stored.clear_segments();
  earlier_.AddFound(Found(kId, "PROF_000004", 4000, 4));
  Resume(stored);
  const v1::SessionStatus status = Until(kId, v1::Session::STATE_RUNNING).status();
  EXPECT_THAT(status.segments(), ElementsAre(Property(&v1::Segment::number, 4u), Property(&v1::Segment::number, 5u)));
  const std::string path = status.dump_path();
  const Result<Manifest> manifest = ParseManifest(ReadText(path + "/profd_manifest.json"));
  ASSERT_TRUE(manifest.ok()) << manifest.status().ToString();
  EXPECT_EQ(manifest->segment, 5);
  EXPECT_EQ(manifest->continues, "PROF_000004");
  records_.OnDumpRemoved("PROF_000004", kReasonTotal);
  live_.SaveStates();
  stored = Saved(kId);
  EXPECT_EQ(stored.segments_size(), 0);
  EXPECT_EQ(stored.segment(), 5u);
}

// The state was saved, and the dump of the third segment was not made; of those before it the second is left.
TEST_F(EarlierSessionsTest, ANumberWithoutADumpIsGivenAgain) {
  state::StoredSession stored = SavedAs(kId);
  stored.set_segment(3);
  stored.clear_dump();
  stored.add_segments()->set_dump_path("/dumps/PROF_000002");
  earlier_.AddFound(Found(kId, "PROF_000002", 2000));
  Resume(stored);
  const std::string path = Until(kId, v1::Session::STATE_RUNNING).status().dump_path();
  const Result<Manifest> manifest = ParseManifest(ReadText(path + "/profd_manifest.json"));
  ASSERT_TRUE(manifest.ok()) << manifest.status().ToString();
  EXPECT_EQ(manifest->segment, 3);
}

TEST_F(EarlierSessionsTest, ASessionOfSixtyFourDumpsDoesNotGoOn) {
  earlier_.Resume(kId, R"({"version": 2, "session_id": "0123456789ab", "segment": 64, "dump": "PROF_000064"})");
  EXPECT_THAT(Show(kId).status().reason(), HasSubstr("not continued: it has had 64 segments"));
}

TEST_F(EarlierSessionsTest, ADumpThatIsFoundLateDoesNotHideWhyItsSessionDidNotGoOn) {
  const char* const text = R"({"version": 2, "session_id": "0123456789ab", "ending": "duration", "peer": {"uid": 1000}})";
  earlier_.Resume(kId, text);
  earlier_.AddFound(Found(kId, "PROF_000002", 2000));
  earlier_.AddFound(Found(kId, "PROF_000001", 1000));
  v1::SessionStatus status = Show(kId).status();
  EXPECT_EQ(status.segments_size(), 2);
  EXPECT_THAT(status.reason(), HasSubstr("not continued: it was being ended: duration"));
  // One whose end was written, but not that it had ended.
  v1::Session ended = Found(kId, "PROF_000003", 3000);
  ended.mutable_status()->set_state(v1::Session::STATE_DONE);
  ended.mutable_status()->set_reason("duration");
  earlier_.AddFound(ended);
  status = Show(kId).status();
  EXPECT_EQ(status.state(), v1::Session::STATE_DONE);
  EXPECT_EQ(status.reason(), "duration");
}

// The next daemon has the dumps of such a session only.
TEST_F(EarlierSessionsTest, TheLastDumpHasWhyItsSessionDidNotGoOn) {
  StateStore store(tmp_ / "state");
  DumpRetention retention({control_, clock_, store, states_, writer_.root().path()}, {});
  SessionKeeping keeping = keeping_;
  keeping.dumps_or_null = &retention;
  EarlierSessions earlier(keeping, live_, planner_);
  const auto path_of = [&](int number) {
    return fmt::format("{}/PROF_{:06}_20260101000000000_ABCDEFGHIJKLMNOP", writer_.root().path(), number);
  };
  const auto found = [&](const std::string& id, int number) {
    Manifest manifest;
    manifest.session_id = id;
    manifest.state = DumpState::kInterrupted;
    manifest.reason = "profd ended before the session did";
    manifest.start_wall_ns = number;
    std::filesystem::create_directory(path_of(number));
    WriteText(path_of(number) + "/profd_manifest.json", Serialize(manifest));
    v1::Session session = SessionFromManifest(manifest, path_of(number), 0);
    session.mutable_owner()->set_uid(0);
    return session;
  };
  const auto reason_in = [&](int number) {
    return ParseManifest(ReadText(path_of(number) + "/profd_manifest.json")).value_or({}).reason;
  };
  const std::string why = "profd ended before the session did; not continued: it was being ended: duration";
  const char* const text = R"({"version": 2, "session_id": "0123456789ab", "ending": "duration"})";
  earlier.AddFound(found(kId, 2));
  earlier.AddFound(found(kId, 1));
  earlier.Resume(kId, text);
  EXPECT_TRUE(time_.RunUntil([&] { return reason_in(2) == why; })) << reason_in(2);
  // Of a session whose dumps are found late.
  std::string late = text;
  late.replace(late.find(kId), 12, "0123456789cd");
  earlier.Resume("0123456789cd", late);
  earlier.AddFound(found("0123456789cd", 4));
  earlier.AddFound(found("0123456789cd", 3));
  EXPECT_TRUE(time_.RunUntil([&] { return reason_in(4) == why; })) << reason_in(4);
  retention.Stop();
  time_.RunReady();
  EXPECT_EQ(reason_in(1), "profd ended before the session did");
  EXPECT_EQ(reason_in(3), "profd ended before the session did");
}

// Also if the daemon is killed before its dump is gone.
TEST_F(EarlierSessionsTest, AnUnansweredStartLeavesNothingToTheNextDaemon) {
  const std::string id = Started(As(kAlice), Spec());
  manager_.Withdraw(id);
  const std::string text = states_.sessions.at(id);
  ASSERT_THAT(text, HasSubstr("did not get the answer"));
  const auto resume = [&](const std::string& as) {
    std::string copy = text;
    copy.replace(copy.find(id), id.size(), as);
    earlier_.Resume(as, copy);
    EXPECT_EQ(Show(as).session_id(), "");
  };
  earlier_.AddFound(Found(kId, "PROF_000001", 1000));
  resume(kId);
  // Its end was written, and the dump is still there.
  v1::Session ended = Found("0123456789cd", "PROF_000002", 2000);
  ended.mutable_status()->set_state(v1::Session::STATE_DONE);
  earlier_.AddFound(ended);
  resume("0123456789cd");
  // Found after all sessions have resumed.
  resume("0123456789ef");
  earlier_.AddFound(Found("0123456789ef", "PROF_000003", 3000));
  EXPECT_EQ(Show("0123456789ef").session_id(), "");
  EXPECT_THAT(remover_.removed, AllOf(Contains("PROF_000001"), Contains("PROF_000002"), Contains("PROF_000003")));
  Until(id, v1::Session::STATE_DONE);
}

TEST_F(EarlierSessionsTest, AStateFileOfAnotherVersionIsDropped) {
  for (const char* version : {"1", "3"}) {
    states_.sessions[kId] = "kept";
    earlier_.Resume(kId, fmt::format(R"({{"version": {}, "session_id": "0123456789ab",
                                                      "order": {{"job_id": "j"}}}})", version));
    EXPECT_TRUE(Show(kId).session_id().empty()) << version;
    EXPECT_FALSE(states_.sessions.contains(kId)) << version;
  }
}

}  // namespace
}  // namespace profd
