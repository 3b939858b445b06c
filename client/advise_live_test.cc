// profctl advise --live: one node, what comes and goes, and ranks of many nodes.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "client/fleet/fleet_advice.h"
#include "client/test_support.h"

namespace profd::client {
namespace {

using ::testing::ContainsRegex;
using ::testing::HasSubstr;
using ::testing::Not;

v1::Advice SlowRank(uint64_t id, int rank) {
  v1::Advice advice;
  advice.set_id(id);
  advice.set_check("slow_rank");
  advice.set_job_id("j42");
  advice.set_uid(1000);
  advice.set_rank(rank);
  advice.set_pid(4700 + rank);
  advice.set_device(static_cast<uint32_t>(rank));
  advice.set_what("the others wait for it\033[2J");
  advice.add_evidence("computation 90.0 ms");
  advice.add_advice("Compare its clock.");
  advice.set_cost_ns(18'500'000);
  advice.set_confidence(v1::Advice::CONFIDENCE_HIGH);
  advice.set_since_ns(1'767'225'600'000'000'000);
  advice.set_raised_ns(1'767'225'603'000'000'000);
  return advice;
}

v1::RankStep Rank(int rank, uint64_t own_ms, uint64_t wait_ms, int64_t step = 10) {
  v1::RankStep out;
  out.set_job_id("j42");
  out.set_uid(1000);
  out.set_pid(4700 + rank);
  out.set_rank(rank);
  out.set_step(step);
  if (own_ms == 0) return out;
  out.mutable_shares()->set_computation_ns(own_ms * 900'000);
  out.mutable_shares()->set_free_ns(own_ms * 100'000);
  out.mutable_shares()->set_wait_ns(wait_ms * 1'000'000);
  return out;
}

class LiveAdviseTest : public ProfctlTest {};

TEST_F(LiveAdviseTest, TableEvidenceAndWhatToDo) {
  *daemon_.advice.add_advice() = SlowRank(1, 3);
  EXPECT_EQ(Run({"advise", "--live", "--job", "j42"}), 0) << err();
  EXPECT_EQ(daemon_.advice_request.job_id(), "j42");
  EXPECT_TRUE(daemon_.advice_request.ranks());
  EXPECT_THAT(out(), ContainsRegex("\nslow_rank +j42 +3 +3 +2026-01-01 00:00:00 +- +18.500 +high"));
  EXPECT_THAT(out(), HasSubstr("job j42, rank 3, device 3: the others wait for it"));
  EXPECT_THAT(out(), HasSubstr("\n  computation 90.0 ms\n  - Compare its clock.\n  $ profctl top\n"));
  EXPECT_THAT(out(), Not(HasSubstr("\033")));
  EXPECT_EQ(Run({"advise", "--live", "--json"}), 0);
  const Json json = Json::parse(out());
  EXPECT_EQ(json["advice"][0]["check"], "slow_rank");
  EXPECT_EQ(json["advice"][0]["confidence"], "high");
  EXPECT_EQ(json["advice"][0]["cost_ns"], 18'500'000);
  EXPECT_TRUE(json["advice"][0]["step"].is_null());
}

TEST_F(LiveAdviseTest, NothingIsWrongIsNotNothingIsThere) {
  EXPECT_EQ(Run({"advise", "--live"}), 0);
  EXPECT_THAT(out(), HasSubstr("no attached process"));
  *daemon_.advice.add_ranks() = Rank(0, 90, 10);
  EXPECT_EQ(Run({"advise", "--live"}), 0);
  EXPECT_THAT(out(), HasSubstr("nothing is wrong now; 1 process is watched"));
}

// As `profctl jobs --job` has it; without a job nothing was missed.
TEST_F(LiveAdviseTest, AnUnknownJobIsNotFound) {
  ExpectMessage({"advise", "--live", "--job", "nosuch"}, 4, "no attached process of job nosuch");
  EXPECT_EQ(out(), "");
  EXPECT_EQ(Run({"advise", "--live", "--job", "nosuch", "--json"}), 4);
  EXPECT_EQ(Json::parse(out())["error"]["code"], "not_found");
  ExpectMessage({"--nodes", "unix:/a,unix:/b", "advise", "--live", "--job", "nosuch"}, 4,
                "job nosuch not found on these 2 nodes");
  *daemon_.advice.add_ranks() = Rank(0, 90, 10);
  EXPECT_EQ(Run({"advise", "--live", "--job", "j42"}), 0) << err();
}

TEST_F(LiveAdviseTest, WatchPrintsChanges) {
  daemon_.advice_watch.resize(4);
  *daemon_.advice_watch[1].add_advice() = SlowRank(1, 3);
  *daemon_.advice_watch[2].add_advice() = SlowRank(1, 3);
  *daemon_.advice_watch[2].add_advice() = SlowRank(2, 5);
  *daemon_.advice_watch[3].add_advice() = SlowRank(2, 5);
  EXPECT_EQ(Run({"advise", "--live", "--watch", "--json"}), 0);
  std::vector<std::string> seen;
  std::istringstream lines(out());
  for (std::string line; std::getline(lines, line);) {
    const Json json = Json::parse(line);
    seen.push_back(json["change"].get<std::string>() + json["advice"]["id"].dump());
  }
  EXPECT_THAT(seen, testing::ElementsAre("raised1", "raised2", "cleared1"));
  EXPECT_EQ(Run({"advise", "--live", "--watch"}), 0);
  EXPECT_THAT(out(), ContainsRegex("^2026-01-01 00:00:03 +raised +slow_rank +job j42, rank 3, device 3: "));
  // Both by the clock of the node, an hour ahead of ours.
  daemon_.time.set_wall_ns(clock_.WallNs() + 3600 * kNsPerSecond);
  EXPECT_EQ(Run({"--address", "n1", "advise", "--live", "--watch"}), 0) << err();
  EXPECT_THAT(out(), ContainsRegex("2026-01-01 01:00:00 +cleared +slow_rank"));
}

TEST_F(LiveAdviseTest, ReportsADaemonWithoutTheCall) {
  daemon_.error = FailedPrecondition("live advice is off here (advice.enabled)");
  EXPECT_NE(Run({"advise", "--live"}), 0);
  EXPECT_THAT(err(), HasSubstr("advice.enabled"));
}

TEST_F(LiveAdviseTest, OptionsOfRunsAndOfLiveDoNotMix) {
  EXPECT_EQ(Run({"advise", "--live", "run1"}), 2);
  EXPECT_EQ(Run({"advise", "--live", "--baseline", "run1"}), 2);
  EXPECT_EQ(Run({"advise", "--watch"}), 2);
  EXPECT_EQ(Run({"advise", "--job", "j42"}), 2);
}

TEST_F(LiveAdviseTest, ManyNodes) {
  *daemon_.advice.add_advice() = SlowRank(1, 3);
  *daemon_.advice.add_ranks() = Rank(3, 90, 10);
  EXPECT_EQ(Run({"--nodes", "unix:/a,unix:/b", "advise", "--live"}), 0) << err();
  EXPECT_THAT(out(), HasSubstr("unix:/a  slow_rank"));
  EXPECT_THAT(out(), HasSubstr("unix:/b: job j42, rank 3"));
  ExpectMessage({"--nodes", "unix:/a", "advise", "--live", "--watch"}, 2, "--watch");
}

NodeAdvice Node(std::string name, std::vector<v1::RankStep> ranks) {
  NodeAdvice node;
  node.node = std::move(name);
  for (v1::RankStep& rank : ranks) *node.answer.add_ranks() = std::move(rank);
  return node;
}

TEST(CompareRanksTest, TheRankThatIsWaitedForWhateverNodeItIsOn) {
  const std::vector<NodeAdvice> nodes = {Node("a", {Rank(0, 80, 20), Rank(1, 80, 20)}), Node("b", {Rank(2, 98, 2), Rank(3, 80, 20)})};
  const std::vector<WaitedFor> waited = CompareRanks(nodes, analysis::Limits(), 1000);
  ASSERT_EQ(waited.size(), 1u);
  EXPECT_EQ(waited[0].node, "b");
  EXPECT_EQ(waited[0].rank, 2);
  EXPECT_EQ(waited[0].job_id, "j42");
  EXPECT_NEAR(waited[0].behind_ms, 18, 1e-6);
}

// slow_rank.difference is 0.05, slow_rank.steps_behind 2.
TEST(CompareRanksTest, NoneWhereTheyAreEqual) {
  EXPECT_TRUE(CompareRanks({Node("a", {Rank(0, 80, 20)}), Node("b", {Rank(1, 84, 16)})}, analysis::Limits(), 1000).empty());
  EXPECT_TRUE(CompareRanks({Node("a", {Rank(0, 0, 0, 10)}), Node("b", {Rank(1, 0, 0, 11)})}, analysis::Limits(), 1000).empty());
}

TEST(CompareRanksTest, ByStepsWhereNothingElseIsKnown) {
  const auto waited = CompareRanks({Node("a", {Rank(0, 0, 0, 12)}), Node("b", {Rank(1, 0, 0, 10)})}, analysis::Limits(), 1000);
  ASSERT_EQ(waited.size(), 1u);
  EXPECT_EQ(waited[0].node, "b");
  EXPECT_EQ(waited[0].steps_behind, 2);
}

// In the second between two answers ranks of steps of 100 ms make ten of them.
TEST(CompareRanksTest, StepsThatAnOlderAnswerCannotKnowAreNotBehind) {
  const auto waited = [](int64_t step, const char* node, uint64_t step_ms) {
    v1::RankStep ahead = Rank(0, 0, 0, step);
    v1::RankStep behind = Rank(1, 0, 0, 100);
    for (v1::RankStep* each : {&ahead, &behind}) each->set_step_ns(step_ms * 1'000'000);
    std::vector<NodeAdvice> nodes = {Node("a", {ahead})};
    if (std::string(node) == "a") {
      *nodes[0].answer.add_ranks() = behind;
    } else {
      nodes.push_back(Node(node, {behind}));
    }
    return CompareRanks(nodes, analysis::Limits(), 1000);
  };
  EXPECT_TRUE(waited(111, "b", 100).empty());
  ASSERT_EQ(waited(112, "b", 100).size(), 1u);
  EXPECT_EQ(waited(112, "b", 100)[0].steps_behind, 12);
  EXPECT_TRUE(waited(102, "b", 5000).empty());
  EXPECT_EQ(waited(103, "b", 5000).size(), 1u);
  EXPECT_EQ(waited(102, "a", 100).size(), 1u) << "of one answer";
}

TEST(CompareRanksTest, JobsOfOtherUsersAreOthers) {
  v1::RankStep other = Rank(1, 98, 2);
  other.set_uid(1001);
  EXPECT_TRUE(CompareRanks({Node("a", {Rank(0, 80, 20)}), Node("b", {other})}, analysis::Limits(), 1000).empty());
}

}  // namespace
}  // namespace profd::client
