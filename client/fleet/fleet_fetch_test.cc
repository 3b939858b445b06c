#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>

#include "client/fleet/fleet.h"
#include "client/fleet/test_support.h"
#include "client/test_support.h"

namespace profd::client {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

TEST_F(FleetTest, FetchBringsOneFolderPerRank) {
  Make(5);
  AddDump(0, "PROF_a", {3});
  AddDump(1, "PROF_b", {7, 4, 5, 6});
  AddDump(2, "PROF_c", {3});
  AddDump(3, "PROF_d");
  TempDir dir;
  std::string out = dir / "all";
  Fleet fleet = MakeFleet();
  auto report = FetchFromAll(&fleet, {"j", out});
  ASSERT_TRUE(report.ok());
  EXPECT_EQ(Print(*report), kExitOk);
  for (const char* path : {"rank_3_n00/PROF_a", "rank_4-7/PROF_b", "rank_3_n02/PROF_c",
                           "n03/PROF_d"}) {
    EXPECT_EQ(ReadFile(out + "/" + path + "/host/sample.json"), "data") << path;
  }
  EXPECT_TRUE(report->nodes[4].none);
  Json index = Json::parse(ReadFile(out + "/fleet.json"), nullptr, false);
  ASSERT_EQ(index["dumps"].size(), 4u);
  EXPECT_EQ(index["dumps"][1]["ranks"], "4-7");
  EXPECT_EQ(index["dumps"][1]["clock_offset_ns"], -12);
  EXPECT_TRUE(index["dumps"][1]["common_start_ns"].is_null());

  // Again, with more: what is there stays, and stays listed.
  std::ofstream(out + "/rank_4-7/PROF_b/host/sample.json") << "mine";
  Node(0).sessions.clear();
  Node(2).sessions.clear();
  AddDump(4, "PROF_e", {9});
  report = FetchFromAll(&fleet, {"j", out});
  EXPECT_EQ(Print(*report), kExitOk);
  EXPECT_EQ(ReadFile(out + "/rank_4-7/PROF_b/host/sample.json"), "mine");
  EXPECT_TRUE(report->nodes[1].dumps[0].was_there);
  index = Json::parse(ReadFile(out + "/fleet.json"), nullptr, false);
  EXPECT_EQ(index["dumps"].size(), 5u);
}

TEST_F(FleetTest, WhatDoesNotArriveWholeIsRemoved) {
  Make(4);
  AddDump(0, "PROF_a", {0});
  AddDump(1, "PROF_b", {1});
  Node(1).dump_end = Unavailable("gone in the middle");
  AddDump(2, "PROF_c", {2});
  Node(2).dump.front().set_path("../../x");
  AddDump(3, "PROF_d", {3});
  Node(3).sessions.front().set_state(v1::Session::RUNNING);
  TempDir dir;
  Fleet fleet = MakeFleet();
  auto report = FetchFromAll(&fleet, {"j", dir.path()});
  ASSERT_TRUE(report.ok());
  EXPECT_EQ(Print(*report), kExitPartial);
  std::vector<std::string> there;
  for (const auto& entry : std::filesystem::directory_iterator(dir.path())) {
    there.push_back(entry.path().filename().string());
  }
  EXPECT_THAT(there, ::testing::UnorderedElementsAre("rank_0", "fleet.json"));
  EXPECT_THAT(out_.str(), HasSubstr("has not ended"));
  EXPECT_THAT(out_.str(), HasSubstr("gone in the middle"));
  EXPECT_THAT(err_.str(), HasSubstr("n01"));
  EXPECT_THAT(err_.str(), Not(HasSubstr("n00")));
}

class FleetCliTest : public ProfctlTest {};

TEST_F(FleetCliTest, WhatDoesNotGoTogether) {
  EXPECT_EQ(Run({"--nodes", "a[1-2", "status"}), kExitUsage);
  EXPECT_THAT(err(), HasSubstr("has no \"]\""));
  EXPECT_EQ(Run({"--nodes", "a", "--slurm", "1", "status"}), kExitUsage);
  EXPECT_EQ(Run({"--nodes", "a", "--socket", "/s", "status"}), kExitUsage);
  EXPECT_EQ(Run({"--nodes", "a", "watch", "id"}), kExitUsage);
  EXPECT_EQ(Run({"--nodes", "a", "fetch", "id"}), kExitUsage);
  EXPECT_EQ(Run({"--nodes", "a", "stop"}), kExitUsage);
  EXPECT_EQ(Run({"--nodes", "a", "start", "--pid", "1"}), kExitUsage);
  EXPECT_EQ(Run({"--nodes", "a", "dump", "--out", "d"}), kExitUsage);
  EXPECT_EQ(Run({"--nodes", "a", "dump", "--last", "60"}), kExitUsage);
  EXPECT_EQ(Run({"--node-timeout", "1s", "status"}), kExitUsage);
  EXPECT_EQ(Run({"start", "--all-or-nothing"}), kExitUsage);
  EXPECT_EQ(Run({"fetch"}), kExitUsage);
  EXPECT_EQ(Run({"fetch", "--job", "j"}), kExitUsage);
  EXPECT_EQ(Run({"--nodes", "a", "--node-timeout", "1", "--node-port", "0", "start", "--rank", "x"}),
            kExitUsage);
  EXPECT_THAT(err(), HasSubstr("--node-timeout"));
  EXPECT_THAT(err(), HasSubstr("--rank"));
}

TEST_F(FleetCliTest, DumpIsOfOneJobOrAll) {
  daemon_.recorded.set_session_id("s");
  daemon_.recorded.set_state(v1::Session::DONE);
  EXPECT_EQ(Run({"--nodes", "a", "dump", "--last", "60s", "--job", "j"}), kExitOk) << err();
  EXPECT_EQ(daemon_.recorder_request.last_ms(), 60'000u);
  EXPECT_EQ(daemon_.recorder_request.job_id(), "j");
  daemon_.error = NotFound("no job j here");
  EXPECT_EQ(Run({"--nodes", "a", "dump", "--job", "j"}), kExitNotFound);
  EXPECT_THAT(out(), HasSubstr("no job j here"));
}

TEST_F(FleetCliTest, ProblemsOfAStartSpeakOfFlags) {
  daemon_.time.set_wall_ns(1'767'225'600'000'000'000);
  daemon_.on_start = [](const v1::StartSessionRequest&) -> Result<v1::Session> {
    return InvalidArgument("duration_ms = 3600000000000: at most 2592000000 (2592000 s) here");
  };
  EXPECT_EQ(Run({"--nodes", "a", "start", "--duration", "1000000h"}), kExitRefused) << err();
  EXPECT_THAT(out() + err(), HasSubstr("--duration 1000000h: at most 720h here"));
}

TEST_F(FleetCliTest, TheSameFilesForAllNodes) {
  EXPECT_EQ(Run({"--nodes", "a:7", "--tls-dir", "/t", "status"}), kExitOk);
  EXPECT_EQ(daemon_.endpoint.address, "a:7");
  EXPECT_EQ(daemon_.endpoint.tls.ca, "/t/ca.crt");
  EXPECT_EQ(daemon_.timeout_ms, 30'000);
  EXPECT_EQ(Run({"--nodes", "a,a", "--node-timeout", "2s", "status"}), kExitOk);
  EXPECT_EQ(daemon_.timeout_ms, 2000);
  EXPECT_THAT(err(), HasSubstr("taken once: a"));
}

}  // namespace
}  // namespace profd::client
