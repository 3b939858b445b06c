// profctl top without a terminal: arguments, --once, --json, what is said when nothing can be
// drawn.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <utility>

#include "client/top/test_support.h"

namespace profd::client {
namespace {

class TopCommandTest : public ProfctlTest {
 protected:
  TopCommandTest() {
    daemon_.node = top::MakeNode(8);
    daemon_.jobs = top::MakeJobs(8);
    const v1::ListSessionsResponse sessions = top::MakeSessions();
    for (const v1::Session& session : sessions.sessions()) {
      daemon_.sessions[session.session_id()] = session;
    }
    daemon_.samples = {top::NodeSamples(8).Second(4)};
  }
};

TEST_F(TopCommandTest, OnceIsPlainText) {
  EXPECT_EQ(Run({"top", "--once", "--sort", "hbm"}), 0) << err();
  ExpectGolden(out(), "top_once.txt");
  EXPECT_TRUE(daemon_.stream_request.devices_only());
  EXPECT_EQ(daemon_.list_request.active_only(), true);
}

TEST_F(TopCommandTest, AsksForTheCollectorsOfAnOverview) {
  for (const auto& [name, overview] : {std::pair("npu_state", true), {"hbm", false}, {"new_one", true}}) {
    v1::CollectorInfo& collector = *daemon_.node.add_collectors();
    collector.set_name(name);
    collector.set_overview(overview);
  }
  EXPECT_EQ(Run({"top", "--once"}), 0) << err();
  EXPECT_THAT(daemon_.stream_request.collectors(), testing::ElementsAre("npu_state", "new_one"));
}

TEST_F(TopCommandTest, OnceAsJsonIsOneObject) {
  EXPECT_EQ(Run({"top", "--once", "--json", "--sort", "hbm"}), 0) << err();
  Json json = Json::parse(out());
  ASSERT_EQ(json["devices"].size(), 8u);
  EXPECT_EQ(json["devices"][0]["id"], 7);
  EXPECT_EQ(json["devices"][0]["temperature_celsius"], 57.0);
  EXPECT_TRUE(json["devices"][0]["pcie_bytes_per_second"].is_null());
  EXPECT_EQ(json["processes"].size(), 8u);
  EXPECT_EQ(json["processes"][0]["job_id"], "j42");
  EXPECT_EQ(json["sessions"][0]["session_id"], "71bd0e29b475");
  EXPECT_EQ(json["dropped_records"], 3);
  EXPECT_EQ(json["connected"], true);
}

TEST_F(TopCommandTest, ActivityIsThereWhereItIsKnown) {
  daemon_.activity = {top::MakeActivity(8)};
  EXPECT_EQ(Run({"top", "--once"}), 0) << err();
  ExpectGolden(out(), "top_once_activity.txt");
  EXPECT_EQ(daemon_.activity_requests.at(0).kernels(), 10u);
  EXPECT_EQ(Run({"top", "--once", "--json"}), 0) << err();
  Json processes = Json::parse(out())["processes"];
  EXPECT_EQ(processes[0]["activity"]["computation_ratio"], 0.5);
  EXPECT_EQ(processes[0]["activity"]["kernels_per_second"], 9500.0);
  EXPECT_EQ(processes[0]["activity"]["hottest_kernels"][1]["name"], "FlashAttentionScore");
  EXPECT_TRUE(processes[1]["activity"].is_null());
}

TEST_F(TopCommandTest, DevicesAndJobNarrowTheRequest) {
  EXPECT_EQ(Run({"top", "--once", "--json", "--devices", "1,2", "--job", "j42"}), 0) << err();
  EXPECT_EQ(daemon_.stream_request.devices().size(), 2);
  EXPECT_EQ(daemon_.jobs_request.job_id(), "j42");
  Json json = Json::parse(out());
  EXPECT_EQ(json["devices"].size(), 2u);
  EXPECT_EQ(json["processes"].size(), 2u);
}

TEST_F(TopCommandTest, NothingThatMatchesIsNotFound) {
  ExpectMessage({"top", "--once", "--devices", "99"}, 4, "this node has no device 99");
  EXPECT_EQ(out(), "");
  EXPECT_EQ(Run({"top", "--once", "--devices", "0,99,7,98"}), 4) << "also where some are there";
  EXPECT_NE(err().find("this node has no device 98,99"), std::string::npos) << err();
  EXPECT_EQ(out(), "");
  daemon_.jobs.clear_jobs();
  ExpectMessage({"top", "--once", "--job", "nope"}, 4, "job \"nope\"");
}

TEST_F(TopCommandTest, AdviceIsAColumnAndALineEach) {
  EXPECT_EQ(Run({"top", "--once"}), 0);
  EXPECT_EQ(out().find("ADVICE"), std::string::npos);
  v1::Advice* advice = daemon_.advice.add_advice();
  advice->set_check("gc");
  advice->set_job_id("j42");
  advice->set_rank(0);
  advice->set_pid(4700);
  advice->set_what("garbage collection takes 9.0 ms per step");
  EXPECT_EQ(Run({"top", "--once"}), 0);
  EXPECT_NE(out().find("ADVICE"), std::string::npos);
  EXPECT_NE(out().find("\ngc: job j42, rank 0: garbage collection takes 9.0 ms per step\n"), std::string::npos);
  EXPECT_EQ(Run({"top", "--once", "--json"}), 0);
  const Json json = Json::parse(out());
  EXPECT_EQ(json["advice"][0]["check"], "gc");
  EXPECT_EQ(json["processes"][0]["advice"], "gc");
  EXPECT_EQ(json["processes"][1]["advice"], "");
}

TEST_F(TopCommandTest, ReportsAMissingTerminal) {
  ExpectMessage({"top"}, 2, "not a terminal");
  EXPECT_NE(err().find("--once"), std::string::npos);
}

TEST_F(TopCommandTest, ReportsEveryProblem) {
  ExpectMessage({"top", "--once", "--interval", "50ms", "--sort", "beauty", "--devices", "a"}, 2, "--interval");
  EXPECT_NE(err().find("--sort"), std::string::npos);
  EXPECT_NE(err().find("--devices"), std::string::npos);
  EXPECT_EQ(Run({"top", "--once", "--interval", "11s"}), 2);
}

TEST_F(TopCommandTest, AnUnreachableDaemonIsAnError) {
  daemon_.error = Unavailable("connection refused");
  EXPECT_EQ(Run({"top", "--once"}), 6);
  EXPECT_EQ(Run({"top", "--json"}), 6);
}

}  // namespace
}  // namespace profd::client
