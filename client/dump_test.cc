// profctl dump, dumps by name, and what status says of the flight recorder.
#include <gtest/gtest.h>

#include "client/test_support.h"

namespace profd::client {
namespace {

using DumpTest = ProfctlTest;

v1::Session Recorded() {
  v1::Session session;
  session.set_session_id("71bd0e29b475");
  session.mutable_status()->set_state(v1::Session::STATE_DONE);
  session.mutable_status()->set_started_ns(1'700'000'000'000'000'000);
  session.mutable_status()->set_ended_ns(1'700'000'060'000'000'000);
  session.mutable_status()->set_dump_path("/var/lib/profd/PROF_000001");
  session.mutable_status()->set_records(4711);
  session.mutable_status()->add_warnings("the last 60 s were requested, 12.000 s are held");
  return session;
}

TEST_F(DumpTest, SendsTheRequestAndPrintsWhereTheDumpIs) {
  daemon_.recorded = Recorded();
  EXPECT_EQ(Run({"dump", "--last", "60s", "--job", "j42", "--devices", "0,2-3", "--reason",
                 "slow step", "--label", "x"}),
            0)
      << err();
  const v1::DumpRecorderRequest& request = daemon_.recorder_request;
  EXPECT_EQ(request.last_ms(), 60'000u);
  EXPECT_EQ(request.job_id(), "j42");
  ASSERT_EQ(request.devices_size(), 3);
  EXPECT_EQ(request.devices(2), 3u);
  EXPECT_EQ(request.reason(), "slow step");
  EXPECT_EQ(request.label(), "x");
  EXPECT_NE(out().find("71bd0e29b475"), std::string::npos) << out();
  EXPECT_NE(out().find("4711 records"), std::string::npos) << out();
  EXPECT_NE(out().find("dump /var/lib/profd/PROF_000001"), std::string::npos) << out();
  EXPECT_NE(err().find("12.000 s are held"), std::string::npos) << err();
  EXPECT_EQ(Run({"dump", "--json"}), 0);
  EXPECT_EQ(daemon_.recorder_request.last_ms(), 0u);
  EXPECT_EQ(Json::parse(out())["dump_path"], "/var/lib/profd/PROF_000001");
  EXPECT_FALSE(Json::parse(out()).contains("fetched_to"));
}

TEST_F(DumpTest, EveryMistakeAtOnce) {
  ExpectMessage({"dump", "--last", "soon", "--devices", "x"}, kExitUsage, "--last");
  EXPECT_NE(err().find("--devices"), std::string::npos) << err();
  daemon_.error = FailedPrecondition("the flight recorder is off here (recorder.enabled)");
  ExpectMessage({"dump"}, kExitRefused, "recorder.enabled");
  daemon_.error = Status(StatusCode::kInvalidArgument, Problem{.field = "last_ms", .value = "35996400000", .text = "must be 1ms..24h"});
  ExpectMessage({"dump", "--last", "9999h"}, kExitRefused, "--last 9999h: must be 1ms..24h");
}

// The dump is there even when it does not arrive: its id must be printed.
TEST_F(DumpTest, AFetchThatFailsIsPartial) {
  daemon_.recorded = Recorded();
  daemon_.stream_end = Unavailable("gone");
  ExpectMessage({"dump", "--out", ::testing::TempDir()}, kExitPartial,
                "`profctl fetch 71bd0e29b475` fetches the dump");
  EXPECT_EQ(Run({"dump", "--out", ::testing::TempDir(), "--json"}), kExitPartial);
  const Json json = Json::parse(out());
  EXPECT_EQ(json["session_id"], "71bd0e29b475");
  EXPECT_EQ(json["dump_path"], "/var/lib/profd/PROF_000001");
  EXPECT_EQ(json["error"]["code"], "unavailable");
  EXPECT_EQ(json["error"]["exit_code"], kExitPartial);
  EXPECT_FALSE(json.contains("fetched_to"));
}

TEST_F(DumpTest, StatusShowsHowMuchIsHeld) {
  EXPECT_EQ(Run({"status"}), 0);
  EXPECT_EQ(out().find("recorder"), std::string::npos) << out();
  v1::Recorder& recorder = *daemon_.node.mutable_recorder();
  recorder.set_enabled(true);
  recorder.set_limit_ms(120'000);
  recorder.set_held_ns(61'400'000'000);
  recorder.set_limit_bytes(64 << 20);
  recorder.set_held_bytes(12 << 20);
  recorder.add_channels()->set_problem("busy");
  recorder.add_channels();
  v1::RecorderChannel& activity = *recorder.add_channels();
  activity.set_collector("activity");
  activity.set_bytes(5 << 20);
  activity.set_held_ns(58'000'000'000);
  (*recorder.mutable_dumps())["crash"] = 2;
  (*recorder.mutable_dumps())["request"] = 1;
  recorder.add_triggers("crash");
  EXPECT_EQ(Run({"status"}), 0);
  EXPECT_NE(out().find("61 of 120 s, 12.0 MiB of 64.0 MiB; activity 58 s, 5.0 MiB; "
                       "1 of 3 do not deliver (--json); 3 dumps; 1 trigger\n"),
            std::string::npos)
      << out();
}

TEST_F(DumpTest, AnIdInPlaceOfADirectoryNamesTheCommandThatBringsIt) {
  for (const char* id : {"0acebb5ed79a", "PROF_000001_20260101000000000_ABCDEFGHIJKLMNOP"}) {
    for (const char* command : {"verify", "export", "analyze"}) {
      EXPECT_NE(Run({command, id}), kExitOk);
      EXPECT_NE(err().find(std::string("; `profctl fetch ") + id + "` copies it here from the node"), std::string::npos) << err();
    }
  }
  for (const char* path : {"0acebb5ed79", "0acebb5ed79g", "runs/PROF_9"}) {
    EXPECT_NE(Run({"verify", path}), kExitOk);
    EXPECT_EQ(err().find("profctl fetch"), std::string::npos) << err();
  }
}

TEST_F(DumpTest, DumpsOfANodeAreThoseOfTheJob) {
  for (const char* job : {"j1", "j2"}) {
    v1::Dump& dump = *daemon_.dumps.add_dumps();
    dump.set_name(std::string("PROF_") + job);
    dump.set_job_id(job);
  }
  EXPECT_EQ(Run({"list", "--dumps", "--job", "j2"}), 0);
  EXPECT_NE(out().find("PROF_j2"), std::string::npos) << out();
  EXPECT_EQ(out().find("PROF_j1"), std::string::npos) << out();
  EXPECT_EQ(Run({"--json", "list", "--dumps", "--job", "j2"}), 0);
  EXPECT_EQ(Json::parse(out())["dumps"].size(), 1u);
  ExpectMessage({"list", "--dumps", "--active"}, 2, "--active is for sessions");
}

TEST_F(DumpTest, DumpsOfANodeEndWithTheirSizeAndTheLimits) {
  daemon_.dumps.set_total_bytes(160ull << 20);
  daemon_.dumps.set_max_total_bytes(512ull << 30);
  daemon_.dumps.set_max_kept_bytes(256ull << 30);
  daemon_.dumps.set_max_pinned_bytes(0);
  EXPECT_EQ(Run({"list", "--dumps"}), 0);
  EXPECT_EQ(out(), "160.0 MiB by all users; limits: 512.0 GiB by all users, 256.0 GiB by you, pinned no limit\n");
}

}  // namespace
}  // namespace profd::client
