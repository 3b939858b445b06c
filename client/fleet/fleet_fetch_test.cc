#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/file.h>
#include <unistd.h>

#include <csignal>
#include <filesystem>
#include <fstream>
#include <thread>

#include "base/fd.h"
#include "client/fleet/fleet.h"
#include "client/fleet/test_support.h"
#include "client/test_support.h"

namespace profd::client {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

class FleetFetchTest : public FleetTest {
 protected:
  // Of the dumps of job j, or of these ids; prints it.
  FleetReport Fetch(int exit_code = kExitOk, const std::set<std::string>& ids = {}) {
    Fleet fleet = MakeFleet();
    auto report = FetchFromAll(&fleet, {ids.empty() ? "j" : "", dir_.path(), ids});
    EXPECT_TRUE(report.ok()) << report.status().message();
    EXPECT_EQ(Print(report.value_or({})), exit_code) << out_.str() << err_.str();
    return report.value_or({});
  }
  Json Index() { return Json::parse(ReadText(dir_ / "fleet.json"), nullptr, false); }
  std::string Fetched(const std::string& dump) { return ReadText(dir_ / dump + "/host/sample.json"); }

  TempDir dir_;
};

TEST_F(FleetFetchTest, FetchBringsOneFolderPerRank) {
  Make(5);
  AddDump(0, "PROF_a", {3});
  AddDump(1, "PROF_b", {7, 4, 5, 6});
  AddDump(2, "PROF_c", {3});
  AddDump(3, "PROF_d");
  FleetReport report = Fetch();
  for (const char* dump : {"rank_3_n00/PROF_a", "rank_4-7/PROF_b", "rank_3_n02/PROF_c", "n03/PROF_d"}) {
    EXPECT_EQ(Fetched(dump), "data") << dump;
  }
  EXPECT_TRUE(report.nodes[4].none);
  const Json index = Index();
  ASSERT_EQ(index["dumps"].size(), 4u);
  EXPECT_EQ(index["dumps"][1]["ranks"], "4-7");
  EXPECT_EQ(index["dumps"][1]["clock_offset_ns"], -12);
  EXPECT_TRUE(index["dumps"][1]["common_start_ns"].is_null());

  // Again, with more: what is there stays, and stays listed.
  std::ofstream(dir_ / "rank_4-7/PROF_b/host/sample.json") << "mine";
  Node(0).sessions.clear();
  Node(2).sessions.clear();
  AddDump(4, "PROF_e", {9});
  report = Fetch();
  EXPECT_EQ(Fetched("rank_4-7/PROF_b"), "mine");
  EXPECT_TRUE(report.nodes[1].dumps[0].was_there);
  EXPECT_EQ(Index()["dumps"].size(), 5u);
}

TEST_F(FleetFetchTest, RemovesIncompleteFetches) {
  Make(4);
  AddDump(0, "PROF_a", {0});
  AddDump(1, "PROF_b", {1});
  Node(1).dump_end = Unavailable("gone in the middle");
  AddDump(2, "PROF_c", {2});
  Node(2).dump.front().set_path("../../x");
  AddDump(3, "PROF_d", {3});
  Node(3).sessions.front().mutable_status()->set_state(v1::Session::STATE_RUNNING);
  Fetch(kExitPartial);
  std::vector<std::string> there;
  for (const auto& entry : std::filesystem::directory_iterator(dir_.path())) {
    there.push_back(entry.path().filename().string());
  }
  EXPECT_THAT(there, ::testing::UnorderedElementsAre("rank_0", "fleet.json"));
  EXPECT_THAT(out_.str(), HasSubstr("has not ended"));
  EXPECT_THAT(out_.str(), HasSubstr("gone in the middle"));
  EXPECT_THAT(err_.str(), HasSubstr("n01"));
  EXPECT_THAT(err_.str(), Not(HasSubstr("n00")));
  EXPECT_THAT(err_.str(), HasSubstr("1 of 3 dumps are in " + dir_.path() + ": fetch into the same directory again gets what is missing"));
  // It does, and what is there is not fetched again.
  Node(1).dump_end = Status();
  const FleetReport report = Fetch(kExitPartial);
  EXPECT_TRUE(report.nodes[0].dumps[0].was_there);
  EXPECT_TRUE(report.nodes[1].ok());
  EXPECT_EQ(Node(0).fetches.size(), 1u);
  EXPECT_THAT(report.warnings, ::testing::IsEmpty()) << "the broken one would be broken again";
}

TEST_F(FleetFetchTest, FetchesIntoOneDirectoryKeepEachOthersEntries) {
  Make(1);
  AddDump(0, "PROF_a", {0});
  UniqueFd other(open(dir_.path().c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  ASSERT_EQ(flock(other.get(), LOCK_EX), 0);
  std::thread fetch([&] { Fetch(); });
  // The other one is about to replace the index.
  while (!std::filesystem::exists(dir_ / "rank_0/PROF_a")) std::this_thread::yield();
  std::ofstream(dir_ / "fleet.json.other") << R"({"version": 1, "dumps": [{"dump": "rank_1/PROF_b"}]})";
  std::filesystem::rename(dir_ / "fleet.json.other", dir_ / "fleet.json");
  other.Reset();
  fetch.join();
  EXPECT_EQ(Index()["dumps"].size(), 2u) << Index();
}

// Of a job that was started again on another node, or whose other node could not be reached the first time.
TEST_F(FleetFetchTest, DumpsFetchedBeforeStayWhereTheyAre) {
  Make(2);
  AddDump(0, "PROF_A", {5});
  Fetch();
  AddDump(1, "PROF_B", {5});
  const FleetReport report = Fetch();
  EXPECT_EQ(report.nodes[0].dumps[0].path, "rank_5/PROF_A");
  EXPECT_TRUE(report.nodes[0].dumps[0].was_there);
  EXPECT_EQ(report.nodes[1].dumps[0].path, "rank_5_n01/PROF_B");
  EXPECT_FALSE(std::filesystem::exists(dir_ / "rank_5_n00"));
  // It was removed: fetched again, to where it belongs now.
  std::filesystem::remove_all(dir_ / "rank_5");
  Fetch();
  EXPECT_EQ(Fetched("rank_5_n00/PROF_A"), "data");
}

TEST_F(FleetFetchTest, ADumpThatAnotherFetchHasBroughtMeanwhileIsThere) {
  Make(1);
  AddDump(0, "PROF_a", {0});
  Node(0).on_dump_sent = [this] { EXPECT_TRUE(std::filesystem::create_directory(dir_ / "rank_0/PROF_a")); };
  EXPECT_TRUE(Fetch().nodes[0].dumps[0].was_there);
  EXPECT_EQ(std::distance(std::filesystem::directory_iterator(dir_ / "rank_0"), {}), 1) << "nothing unfinished is left";
}

TEST_F(FleetFetchTest, AFetchThatHoldsTheIndexForeverDoesNotStopAnother) {
  Make(1);
  AddDump(0, "PROF_a", {0});
  const UniqueFd other(open(dir_.path().c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  ASSERT_EQ(flock(other.get(), LOCK_EX), 0);
  Fetch();
  EXPECT_EQ(Index()["dumps"].size(), 1u);
}

// Interrupted while one node is still asked: what the other has was not fetched.
TEST_F(FleetFetchTest, AnInterruptedFetchFailsWhereADumpIsMissing) {
  Make(2, {{1, FakeNode::Kind::kSlow}});
  AddDump(0, "PROF_a", {0});
  SignalWatch signals({SIGUSR2});
  std::thread interrupter([this] {
    while (cluster_.listed == 0) std::this_thread::yield();
    kill(getpid(), SIGUSR2);
  });
  Fleet fleet = MakeFleet(&signals);
  auto report = FetchFromAll(&fleet, {"j", dir_.path()});
  interrupter.join();
  ASSERT_TRUE(report.ok());
  EXPECT_TRUE(report->interrupted);
  EXPECT_EQ(report->nodes[0].dumps.size(), 1u);
  EXPECT_FALSE(report->nodes[0].ok());
  Print(*report);
  EXPECT_THAT(err_.str(), HasSubstr("no dump was fetched: fetch into the same directory again"));
}

// "gets every finished dump of the job" (docs/many-nodes.md): the list forgets sessions (limits.keep_finished), the disk does not.
TEST_F(FleetFetchTest, DumpsOfForgottenSessionsAreFetched) {
  Make(3);
  AddDump(0, "PROF_a", {3});
  AddDump(1, "PROF_b");
  AddDump(2, "PROF_c");
  for (size_t node : {size_t{1}, size_t{2}}) Node(node).sessions.clear();
  Keep(0, "PROF_a", "j", v1::Session::STATE_DONE);
  Keep(1, "PROF_b", "j", v1::Session::STATE_INTERRUPTED);
  Keep(1, "PROF_written", "j", v1::Session::STATE_RUNNING);
  Keep(2, "PROF_c", "another", v1::Session::STATE_DONE);
  const FleetReport report = Fetch();
  EXPECT_EQ(Fetched("n01/PROF_b"), "data");
  const Json index = Index();
  ASSERT_EQ(index["dumps"].size(), 2u) << index;
  EXPECT_EQ(index["dumps"][0]["dump"], "rank_3/PROF_a");
  EXPECT_EQ(index["dumps"][1]["session_id"], "id-PROF_b");
  EXPECT_EQ(index["dumps"][1]["job_id"], "j");
  EXPECT_EQ(index["dumps"][1]["ended_ns"], 2000);
  EXPECT_TRUE(report.nodes[2].none);
  // Some may not be in its list yet.
  Node(1).kept.set_incomplete(true);
  Fetch(kExitPartial);
  EXPECT_THAT(out_.str(), HasSubstr("try again"));
}

// A start is known by its dumps, too.
TEST_F(FleetFetchTest, DumpsOfAForgottenStartAreFetchedByItsId) {
  Make(3);
  const std::string id = "0123456789abcdef";
  for (size_t node : {size_t{0}, size_t{1}, size_t{2}}) {
    const std::string name = fmt::format("PROF_{}", node);
    AddDump(node, name);
    Node(node).sessions.clear();
    Keep(node, name, "j", v1::Session::STATE_DONE);
    if (node != 2) Node(node).kept.mutable_dumps(0)->set_fleet_id(id);
  }
  EXPECT_TRUE(Fetch(kExitOk, {id}).nodes[2].none);
  for (const char* dump : {"n00/PROF_0", "n01/PROF_1"}) EXPECT_EQ(Fetched(dump), "data");
}

TEST_F(FleetFetchTest, ADumpIsFetchedByItsName) {
  Make(2);
  AddDump(0, "PROF_a", {3});
  Keep(0, "PROF_a", "j", v1::Session::STATE_DONE);
  AddDump(1, "PROF_b", {4});
  Keep(1, "PROF_b", "j", v1::Session::STATE_DONE);
  Fetch(kExitOk, {"PROF_a"});
  EXPECT_EQ(Fetched("rank_3/PROF_a"), "data");
  EXPECT_FALSE(std::filesystem::exists(dir_ / "rank_4"));
  ASSERT_EQ(Node(0).fetches.size(), 1u);
  EXPECT_EQ(Node(0).fetches[0].dump(), "PROF_a");
}

TEST_F(FleetFetchTest, ASegmentHasTimesOfItsOwn) {
  Make(1);
  AddDump(0, "PROF_a");
  v1::SessionStatus& status = *Node(0).sessions[0].mutable_status();
  status.set_started_ns(10);
  status.set_ended_ns(90);
  for (int64_t begin_ns : {10, 50}) {
    v1::Segment& segment = *status.add_segments();
    segment.set_dump_path(begin_ns == 10 ? "/var/lib/profd/PROF_a" : "/var/lib/profd/PROF_b");
    segment.set_started_ns(begin_ns);
    segment.set_ended_ns(begin_ns + 30);
  }
  Fetch(kExitPartial);  // the node has only the first
  const Json index = Index();
  EXPECT_EQ(index["dumps"][0]["started_ns"], 10);
  EXPECT_EQ(index["dumps"][0]["ended_ns"], 40);
}

// "created with its parents if missing" (docs/profctl.md).
TEST_F(FleetFetchTest, TheDirectoryOfAFetchIsCreatedWithItsParents) {
  Make(1);
  AddDump(0, "PROF_a", {0});
  Fleet fleet = MakeFleet();
  ASSERT_TRUE(FetchFromAll(&fleet, {"j", dir_ / "runs/today/j"}).ok());
  EXPECT_EQ(Fetched("runs/today/j/rank_0/PROF_a"), "data");
  std::ofstream(dir_ / "file") << "mine";
  for (const char* out : {"file", "file/j"}) {
    const Status refused = FetchFromAll(&fleet, {"j", dir_ / out}).status();
    EXPECT_THAT(refused.message(), HasSubstr("Not a directory")) << out;
    EXPECT_EQ(ExitCodeFor(refused.code()), kExitRefused) << out;
  }
}

// The sessions of one start are stopped and fetched by what they have in common.
TEST_F(FleetFetchTest, AFleetIdMeansItsSessionsOnEveryNode) {
  Make(3);
  AddDump(1, "PROF_other", {5});
  AddDump(0, "PROF_0", {0});
  AddDump(1, "PROF_1", {1});
  FleetReport started = Start();
  Print(started);
  const std::string id = started.fleet_id;
  EXPECT_TRUE(IsFleetId(id)) << id;
  EXPECT_THAT(out_.str(), HasSubstr("fleet " + id));
  for (size_t node : {size_t{0}, size_t{1}}) {
    for (v1::Session& session : Node(node).sessions) {
      if (session.session_id() != fmt::format("id-PROF_{}", node)) continue;
      (*session.mutable_spec()->mutable_metadata())[kFleetId] = id;
    }
  }
  FleetReport stopped = Stop({{id}, "", false});
  EXPECT_EQ(Print(stopped), kExitOk);
  for (size_t node = 0; node < 3; ++node) EXPECT_EQ(Node(node).stopped.size(), 1u) << node;
  // "For a session that has ended, the answer is how it ended" (docs/profctl.md).
  EXPECT_EQ(Print(Stop({{id}, "", false})), kExitOk);
  EXPECT_THAT(out_.str(), HasSubstr("done"));
  // The nodes have been asked: "A viewer's stop is refused in each form" (docs/profctl.md).
  const FleetReport unknown = Stop({{std::string(16, '0')}, "", false});
  EXPECT_EQ(Print(unknown), kExitNotFound);
  EXPECT_THAT(unknown.nodes[0].note, HasSubstr("no session " + std::string(16, '0')));
  Fetch(kExitOk, {id});
  EXPECT_EQ(Fetched("rank_0/PROF_0"), "data");
  EXPECT_TRUE(std::filesystem::exists(dir_ / "rank_1"));
  EXPECT_FALSE(std::filesystem::exists(dir_ / "rank_5"));
}

class FleetCliTest : public ProfctlTest {};

TEST_F(FleetCliTest, RefusesConflictingFlags) {
  ExpectMessage({"--nodes", "a[1-2", "status"}, kExitUsage, "has no \"]\"");
  EXPECT_EQ(Run({"--nodes", "a", "--slurm", "1", "status"}), kExitUsage);
  EXPECT_EQ(Run({"--nodes", "a", "--socket", "/s", "status"}), kExitUsage);
  EXPECT_EQ(Run({"--nodes", "a", "watch", "id"}), kExitUsage);
  EXPECT_EQ(Run({"--nodes", "a", "fetch", "id", "--job", "j"}), kExitUsage);
  EXPECT_EQ(Run({"--nodes", "a", "fetch"}), kExitUsage);
  for (const char* flag : {"--wait", "--background", "--keep"}) {
    EXPECT_EQ(Run({"--nodes", "a", "fetch", "--job", "j", flag}), kExitUsage) << flag;
    EXPECT_THAT(err(), HasSubstr(flag));
  }
  ExpectMessage({"--nodes", "a", "top"}, kExitUsage, "--once");
  EXPECT_EQ(Run({"--nodes", "a", "stop"}), kExitUsage);
  EXPECT_EQ(Run({"--nodes", "a", "start", "--pid", "1"}), kExitUsage);
  EXPECT_EQ(Run({"--nodes", "a", "dump", "--last", "60"}), kExitUsage);
  EXPECT_EQ(Run({"--node-timeout", "1s", "status"}), kExitUsage);
  EXPECT_EQ(Run({"start", "--all-or-nothing"}), kExitUsage);
  EXPECT_EQ(Run({"fetch"}), kExitUsage);
  EXPECT_EQ(Run({"fetch", "--background"}), kExitUsage) << "not said in the background only";
  EXPECT_EQ(Run({"fetch", "id", "--background", "--timeout", "soon"}), kExitUsage);
  EXPECT_EQ(Run({"fetch", "--job", "j"}), kExitUsage);
  ExpectMessage({"--nodes", "a", "--node-timeout", "1", "--node-port", "0", "start", "--rank", "x"}, kExitUsage,
                "--node-timeout");
  EXPECT_THAT(err(), HasSubstr("--rank"));
}

TEST_F(FleetCliTest, DumpIsOfOneJobOrAll) {
  daemon_.recorded.set_session_id("s");
  daemon_.recorded.mutable_status()->set_state(v1::Session::STATE_DONE);
  EXPECT_EQ(Run({"--nodes", "a", "dump", "--last", "60s", "--job", "j"}), kExitOk) << err();
  EXPECT_EQ(daemon_.recorder_request.last_ms(), 60'000u);
  EXPECT_EQ(daemon_.recorder_request.job_id(), "j");
  daemon_.error = NotFound("no job j here");
  EXPECT_EQ(Run({"--nodes", "a", "dump", "--job", "j"}), kExitNotFound);
  EXPECT_THAT(out(), HasSubstr("no job j here"));
}

TEST_F(FleetCliTest, DumpsThatAreWrittenCanBeFetchedAtOnce) {
  daemon_.recorded.set_session_id("s");
  daemon_.recorded.mutable_status()->set_state(v1::Session::STATE_DONE);
  daemon_.recorded.mutable_status()->set_dump_path("/var/lib/profd/PROF_past");
  daemon_.sessions["s"] = daemon_.recorded;
  daemon_.sessions["other"] = daemon_.recorded;
  daemon_.sessions["other"].set_session_id("other");
  v1::DumpChunk chunk;
  chunk.set_dump_name("PROF_past");
  chunk.set_total_bytes(4);
  chunk.set_path("host/sample.json");
  chunk.set_data("data");
  chunk.set_last(true);
  daemon_.dump = {chunk};
  TempDir dir;
  EXPECT_EQ(Run({"--nodes", "a", "dump", "--out", dir / "past"}), kExitOk) << err();
  EXPECT_EQ(ReadText(dir / "past/a/PROF_past/host/sample.json"), "data");
  Json index = Json::parse(ReadText(dir / "past/fleet.json"), nullptr, false);
  EXPECT_EQ(index["dumps"].size(), 1u);
}

TEST_F(FleetCliTest, QueriesGoToEveryNode) {
  v1::Job* job = daemon_.jobs.add_jobs();
  job->set_job_id("j42");
  job->add_processes()->set_pid(7);
  EXPECT_EQ(Run({"--nodes", "a,b", "jobs"}), kExitOk) << err();
  // What both say is said once.
  EXPECT_THAT(out(), HasSubstr("a, b:\n"));
  EXPECT_THAT(out(), HasSubstr("j42"));
  EXPECT_EQ(Run({"--nodes", "a,b", "jobs", "--json"}), kExitOk);
  Json json = Json::parse(out(), nullptr, false);
  EXPECT_EQ(json["command"], "jobs");
  ASSERT_EQ(json["nodes"].size(), 2u);
  EXPECT_EQ(json["nodes"][1]["node"], "b");
  EXPECT_EQ(json["nodes"][1]["answer"]["jobs"][0]["job_id"], "j42");
  EXPECT_EQ(Run({"--nodes", "a,b", "jobs", "--job", "j42"}), kExitOk);
  daemon_.node.add_devices()->set_chip("Ascend910B");
  EXPECT_EQ(Run({"--nodes", "a,b", "devices"}), kExitOk);
  EXPECT_THAT(out(), HasSubstr("Ascend910B"));
  EXPECT_EQ(Run({"--nodes", "a,b", "check", "--l2", "on"}), kExitOk);
  daemon_.checked.add_problems()->set_text("l2: no");
  ExpectMessage({"--nodes", "a,b", "check", "--l2", "on"}, kExitRefused, "profctl: a, b: problem: l2: no\n");
  EXPECT_EQ(Run({"--nodes", "a,b", "show", "nothing"}), kExitNotFound);
  daemon_.error = Unavailable("no daemon");
  EXPECT_EQ(Run({"--nodes", "a,b", "devices"}), kExitUnreachable);
}

// "sets --job ... if it is not given" (docs/many-nodes.md).
TEST_F(FleetCliTest, QueriesAreOfTheSlurmJob) {
  TempDir dir;
  std::ofstream(dir / "scontrol") << "#!/bin/sh\n[ \"$2\" = job ] && echo 'JobId=8 NodeList=a' || echo a\n";
  std::filesystem::permissions(dir / "scontrol", std::filesystem::perms::owner_all);
  search_path_ = dir.path() + ":/usr/bin:/bin";
  for (const char* id : {"8", "9"}) {
    v1::Job* job = daemon_.jobs.add_jobs();
    job->set_job_id(id);
    job->add_processes()->set_pid(7);
  }
  EXPECT_EQ(Run({"--slurm", "8", "jobs"}), kExitOk) << err();
  EXPECT_EQ(daemon_.jobs_request.job_id(), "8");
  EXPECT_EQ(Run({"--slurm", "8", "jobs", "--job", "9"}), kExitOk) << err();
  EXPECT_EQ(daemon_.jobs_request.job_id(), "9");
}

// Nothing that was asked of many nodes is done here instead.
TEST_F(FleetCliTest, WhatIsOfThisMachineIsRefused) {
  for (const std::vector<std::string>& command : std::vector<std::vector<std::string>>{
           {"verify", "/none"}, {"analyze", "/none"}, {"report", "/none"}, {"serve", "/none"}, {"completion", "bash"}}) {
    std::vector<std::string> arguments = {"--nodes", "a,b"};
    arguments.insert(arguments.end(), command.begin(), command.end());
    EXPECT_EQ(Run(arguments), kExitUsage) << command[0];
    EXPECT_THAT(err(), HasSubstr(command[0] + " works on one node"));
    EXPECT_EQ(out(), "");
  }
  ExpectMessage({"--nodes", "a,b", "advise", "/none"}, kExitUsage, "advise of many nodes needs --live");
  ExpectMessage({"--nodes", "a,b", "list", "--dumps"}, kExitUsage, "list --dumps is of one node");
}

TEST_F(FleetCliTest, ProblemsOfAStartSpeakOfFlags) {
  daemon_.time.set_wall_ns(1'767'225'600'000'000'000);
  daemon_.on_start = [](const v1::SessionSpec&) -> Result<v1::Session> {
    return Status(StatusCode::kInvalidArgument,
                  Problem{.field = "duration_ms", .value = "3600000000000", .text = "at most 720h here"});
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
  daemon_.error = Unavailable("no daemon");
  ExpectMessage({"--nodes", "a:7", "--tls-dir", "/t", "devices"}, kExitUnreachable, "/t/ca.crt");
}

TEST_F(FleetCliTest, ATimeoutIsThatOfEachNode) {
  EXPECT_EQ(Run({"--nodes", "a", "--timeout", "3s", "status"}), kExitOk);
  EXPECT_EQ(daemon_.timeout_ms, 3000);
  ExpectMessage({"--nodes", "a", "--timeout", "soon", "status"}, kExitUsage, "--timeout ");
  ExpectMessage({"--nodes", "a", "--timeout", "3s", "--node-timeout", "2s", "status"}, kExitUsage,
                "give one of them");
}

}  // namespace
}  // namespace profd::client
