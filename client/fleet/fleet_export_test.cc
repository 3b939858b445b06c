// export of many nodes into their databases.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <csignal>

#include "client/commands/export_parse.h"
#include "client/fleet/fleet.h"
#include "client/fleet/test_support.h"
#include "client/json.h"

namespace profd::client {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;

using State = v1::ArchiveState;

v1::ArchiveDumpsResponse Answer(State::State state, const std::string& problem = "") {
  v1::ArchiveDumpsResponse answer;
  v1::Dump& dump = *answer.add_dumps();
  dump.set_name("PROF_1");
  dump.set_session_id("s1");
  dump.mutable_archive()->set_state(state);
  dump.mutable_archive()->set_run("1000-llama");
  dump.mutable_archive()->set_rows(state == State::STATE_LOADED ? 42 : 0);
  dump.mutable_archive()->set_problem(problem);
  dump.mutable_archive()->set_since_ns(1000);
  answer.mutable_archive()->set_asked_ns(2000);
  return answer;
}

class FleetExportTest : public FleetTest {
 protected:
  FleetExportTest() {
    wanted_.job_id = "j";
    wanted_.to = "clickhouse://db:8123/profiles";
    wanted_.run = "llama";
    wanted_.first_pause_ms = 1;
  }
  int Export(SignalWatch* signals = nullptr, bool json = false) {
    Fleet fleet = MakeFleet(signals);
    return Print(ExportOnAll(&fleet, wanted_), json);
  }

  FleetExport wanted_;
};

TEST_F(FleetExportTest, WaitsUntilTheDatabaseHasConfirmedAll) {
  Make(3);
  Node(0).archive_answers = {Answer(State::STATE_WAITING), Answer(State::STATE_WAITING), Answer(State::STATE_LOADED)};
  Node(1).archive_answers = {Answer(State::STATE_LOADED)};
  Node(2).archive_answers = {NotFound("no dump of these on this node")};
  EXPECT_EQ(Export(), kExitOk) << err_.str();
  ASSERT_EQ(Node(0).archive_requests.size(), 3U);
  EXPECT_EQ(Node(0).archive_requests[0].to(), "clickhouse://db:8123/profiles");
  EXPECT_EQ(Node(0).archive_requests[0].run(), "llama");
  EXPECT_EQ(Node(0).archive_requests[0].job_id(), "j");
  EXPECT_FALSE(Node(0).archive_requests[0].only_look());
  EXPECT_TRUE(Node(0).archive_requests[1].only_look()) << "asks once, then looks";
  EXPECT_EQ(Node(1).archive_requests.size(), 1U) << "what is loaded is not looked at again";
  EXPECT_THAT(out_.str(), HasSubstr("n00   loaded   s1       1000-llama    42"));
  EXPECT_THAT(out_.str(), HasSubstr("n02   no dump"));
  EXPECT_THAT(err_.str(), IsEmpty());
}

TEST_F(FleetExportTest, NodesThatRefuseAreNamedAndTheOthersContinue) {
  Make(4, {{2, FakeNode::Kind::kDead}});
  Node(0).archive_answers = {Answer(State::STATE_LOADED)};
  Node(1).archive_answers = {FailedPrecondition("this node loads into clickhouse://db2:8123/profiles")};
  Node(3).archive_answers = {Unimplemented("unknown method ArchiveDumps")};
  EXPECT_EQ(Export(), kExitPartial);
  EXPECT_THAT(out_.str(), HasSubstr("this node loads into clickhouse://db2:8123/profiles"));
  EXPECT_THAT(out_.str(), HasSubstr("too old for this"));
  EXPECT_THAT(err_.str(), HasSubstr("refused (2 of 4): n01, n03"));
  EXPECT_THAT(err_.str(), HasSubstr("unreachable (1 of 4): n02"));
}

TEST_F(FleetExportTest, ADamagedDumpIsLoadedInPart) {
  Make(1);
  Node(0).archive_answers = {Answer(State::STATE_LOADED, "1 part of it could not be read: hbm.data: it is shorter")};
  EXPECT_EQ(Export(), kExitPartial);
  EXPECT_THAT(out_.str(), HasSubstr("1 part of it could not be read: hbm.data"));
}

TEST_F(FleetExportTest, AllRefuse) {
  Make(2);
  EXPECT_EQ(Export(), kExitRefused);
  Node(0).archive_answers = Node(1).archive_answers = {NotFound("no dump of these on this node")};
  EXPECT_EQ(Export(), kExitNotFound);
}

TEST_F(FleetExportTest, DumpsNotConfirmedInTimeStayQueued) {
  Make(3);
  v1::ArchiveDumpsResponse failing = Answer(State::STATE_WAITING);
  failing.mutable_archive()->set_failing_since_ns(1);
  failing.mutable_archive()->set_problem("unreachable: connection refused");
  Node(0).archive_answers = {failing};
  v1::ArchiveDumpsResponse asleep = Answer(State::STATE_WAITING);
  asleep.mutable_archive()->clear_asked_ns();
  Node(1).archive_answers = {asleep};
  v1::ArchiveDumpsResponse stopped = Answer(State::STATE_WAITING);
  stopped.mutable_archive()->set_asked_ns(999);
  Node(2).archive_answers = {stopped};
  wanted_.timeout_ns = 20 * kNsPerMs;
  EXPECT_EQ(Export(), kExitPartial);
  EXPECT_THAT(out_.str(), HasSubstr("unreachable: connection refused"));
  EXPECT_THAT(out_.str(), HasSubstr("systemctl enable --now profd-archive"));
  EXPECT_THAT(out_.str(), HasSubstr("systemctl status profd-archive"));
  EXPECT_THAT(err_.str(), HasSubstr("dumps that wait: 3."));
  EXPECT_THAT(err_.str(), HasSubstr("--timeout waits longer"));
  EXPECT_THAT(err_.str(), HasSubstr("stay in the queues"));
}

TEST_F(FleetExportTest, DumpsGivenUpOrRemovedFail) {
  Make(2);
  Node(0).archive_answers = {Answer(State::STATE_WAITING), Answer(State::STATE_LOST, "unreadable: nothing in it")};
  Node(1).archive_answers = {Answer(State::STATE_WAITING), NotFound("no dump of these on this node")};
  EXPECT_EQ(Export(), kExitPartial);
  EXPECT_THAT(out_.str(), HasSubstr("unreadable: nothing in it"));
  EXPECT_THAT(out_.str(), HasSubstr("removed before it was loaded"));
  EXPECT_THAT(err_.str(), HasSubstr("partial (2 of 2)"));
  EXPECT_THAT(err_.str(), Not(HasSubstr("dumps that wait")));
}

TEST_F(FleetExportTest, ANodeThatIsAwayForAMomentIsCalledAgain) {
  Make(1);
  Node(0).archive_answers = {Answer(State::STATE_WAITING), Unavailable("it is restarted"), Answer(State::STATE_LOADED)};
  EXPECT_EQ(Export(), kExitOk) << out_.str();
}

TEST_F(FleetExportTest, SessionsThatHaveNotEndedAreNamed) {
  Make(1);
  v1::ArchiveDumpsResponse answer = Answer(State::STATE_LOADED);
  answer.add_unfinished("s2");
  Node(0).archive_answers = {answer};
  EXPECT_EQ(Export(), kExitPartial);
  wanted_.ids = {"s1"};
  wanted_.job_id = "";
  Export(nullptr, true);
  const Json json = Json::parse(out_.str());
  EXPECT_THAT(json["nodes"][0]["note"].get<std::string>(), HasSubstr("profctl stop s2"));
  EXPECT_EQ(json["nodes"][0]["dumps"][0]["state"], "loaded");
  EXPECT_EQ(json["nodes"][0]["dumps"][0]["rows"], 42);
  EXPECT_THAT(Node(0).archive_requests.back().ids(), ElementsAre("s1"));
}

TEST_F(FleetExportTest, WithoutWaiting) {
  Make(1);
  Node(0).archive_answers = {Answer(State::STATE_WAITING)};
  wanted_.wait = false;
  EXPECT_EQ(Export(), kExitOk);
  EXPECT_THAT(out_.str(), HasSubstr("waiting"));
  EXPECT_EQ(Node(0).archive_requests.size(), 1U);
}

TEST_F(FleetExportTest, AnInterruptLeavesThemQueued) {
  Make(1);
  Node(0).archive_answers = {Answer(State::STATE_WAITING)};
  SignalWatch signals({SIGUSR1});
  wanted_.first_pause_ms = 60'000;
  kill(getpid(), SIGUSR1);
  EXPECT_EQ(Export(&signals), kExitPartial);
  EXPECT_THAT(err_.str(), HasSubstr("interrupted"));
}

ExportCommand Command() {
  ExportCommand command;
  command.to = "clickhouse://loader@db.example.com/profiles/llama";
  return command;
}

std::vector<std::string> ProblemsOf(const ExportCommand& command, const FleetExportArgs& args) {
  std::vector<std::string> problems;
  (void)BuildFleetExport(command, args, &problems);
  return problems;
}

TEST(FleetExportArgsTest, FromTheCommandLine) {
  std::vector<std::string> problems;
  FleetExport wanted = BuildFleetExport(Command(), {"j42", "2m"}, &problems);
  EXPECT_THAT(problems, IsEmpty());
  EXPECT_EQ(wanted.to, "clickhouse://db.example.com:8123/profiles") << "neither user nor run";
  EXPECT_EQ(wanted.run, "llama");
  EXPECT_EQ(wanted.job_id, "j42");
  EXPECT_EQ(wanted.timeout_ns, 120 * kNsPerSecond);
  ExportCommand named = Command();
  named.run_name = "other";
  named.dumps = {"71bd0e29b475"};
  wanted = BuildFleetExport(named, {.has_source_job = true, .source_job = "5000"}, &problems);
  EXPECT_EQ(wanted.run, "other");
  EXPECT_EQ(wanted.job_id, "") << "what is named counts";
  EXPECT_THAT(wanted.ids, ElementsAre("71bd0e29b475"));
  EXPECT_EQ(BuildFleetExport(Command(), {.has_source_job = true, .source_job = "5000"}, &problems).job_id, "5000");
}

TEST(FleetExportArgsTest, WhatIsWrong) {
  const FleetExportArgs job{"j42"};
  EXPECT_THAT(ProblemsOf(ExportCommand(), job), ElementsAre(HasSubstr("give --to clickhouse://")));
  EXPECT_THAT(ProblemsOf(Command(), {}), ElementsAre(HasSubstr("give --job JOB")));
  ExportCommand both = Command();
  both.dumps = {"s1"};
  EXPECT_THAT(ProblemsOf(both, job), ElementsAre(HasSubstr("give --job JOB")));
  EXPECT_THAT(ProblemsOf(Command(), {""}), ElementsAre(HasSubstr("give --job JOB")));
  ExportCommand secret = Command();
  secret.to = "clickhouse://me:secret@db/profiles";
  EXPECT_THAT(ProblemsOf(secret, job), ElementsAre(HasSubstr("leave the password out")));
  secret.to = "clickhouse://db";
  EXPECT_THAT(ProblemsOf(secret, job), ElementsAre(HasSubstr("the address of the database")));
  ExportCommand files = Command();
  files.gzip = files.resume = true;
  files.cluster = "c";
  files.run_name = "a\nb";
  EXPECT_THAT(ProblemsOf(files, {"j42", "soon"}), ElementsAre(HasSubstr("--run"), HasSubstr("--gzip"), HasSubstr("archive.cluster"), HasSubstr("--resume"),
                                                           HasSubstr("--timeout")));
}

}  // namespace
}  // namespace profd::client
