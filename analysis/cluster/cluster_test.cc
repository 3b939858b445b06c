// Operations that ranks recorded each by itself are found to be the same, whatever numbers they have.
#include <gtest/gtest.h>

#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "analysis/cluster/cluster.h"
#include "analysis/cluster/cost.h"

namespace profd::analysis {
namespace {

struct Op {
  std::string_view type;
  int64_t step = 0;
  double ms = 1;
};

// A rank that recorded operations of one group, of which it had begun `first` before.
void AddRank(Run* run, int first, const std::vector<Op>& ops) {
  auto rank = std::make_unique<Rank>();
  rank->rank = static_cast<int>(run->ranks.size());
  for (const Op& op : ops) {
    Collective& made = rank->collectives.emplace_back();
    made.name = rank->Text("hcom_" + std::string(op.type) + "__241_" + std::to_string(first++) + "_1");
    made.type = rank->Text("hcom_" + std::string(op.type) + "_");
    made.group = rank->Text("g");
    made.start_ns = static_cast<int64_t>(rank->collectives.size());
    made.elapse_ms = op.ms;
    made.step = op.step;
  }
  run->ranks.push_back(std::move(rank));
}

using Ranks = std::pair<size_t, size_t>;  // who waits, for whom
std::map<Ranks, double> WaitsIn(const Run& run, int64_t step) {
  const Cluster cluster(run);
  std::map<Ranks, double> found;
  for (const Wait& wait : WaitsOf(cluster)) {
    if (wait.step == step) found[{wait.waiting, wait.last}] = wait.ms;
  }
  return found;
}

// Numbers of operations count from where a rank's recording began.
TEST(ClusterOperations, AreTheSameInTheirOrder) {
  profd::analysis::Run run;
  AddRank(&run, 0, {{"allReduce", 1}, {"allReduce", 1}, {"allReduce", 2}, {"allReduce", 2}});
  AddRank(&run, 7, {{"allReduce", 1}, {"allReduce", 2}, {"allReduce", 2}});  // its recording began within step 1
  const Cluster cluster(run);
  std::vector<size_t> ranks_of_step_1;
  std::vector<size_t> ranks_of_step_2;
  for (const ClusterOp& op : cluster.operations()) (op.step == 1 ? ranks_of_step_1 : ranks_of_step_2).push_back(op.ranks.size());
  EXPECT_EQ(ranks_of_step_1, std::vector<size_t>({1, 2})) << "it is the last one before step 2";
  EXPECT_EQ(ranks_of_step_2, std::vector<size_t>({2, 2}));
}

// The second rank's recording began within step 1 and ended within step 3: its 0 is the first one's 1.
TEST(ClusterOperations, OfPartOfAStepAreTheSameByHowFarNumbersLieApart) {
  profd::analysis::Run run;
  AddRank(&run, 0, {{"allReduce", 1, 5}, {"allReduce", 1, 6}, {"allReduce", 2}, {"allReduce", 2}, {"allReduce", 3, 1}, {"allReduce", 3, 2}, {"allReduce", 3, 9}});
  AddRank(&run, 0, {{"allReduce", 1, 3}, {"allReduce", 2}, {"allReduce", 2}, {"allReduce", 3, 4}, {"allReduce", 3, 5}});
  EXPECT_EQ(WaitsIn(run, 1), (std::map<Ranks, double>{{{0, 1}, 3}}));
  EXPECT_EQ(WaitsIn(run, 3), (std::map<Ranks, double>{{{1, 0}, 6}}));
}

TEST(ClusterOperations, OfPartOfAStepAreUnknownWithoutACompleteOne) {
  profd::analysis::Run run;
  AddRank(&run, 0, {{"allReduce", 1}, {"allReduce", 1}});
  AddRank(&run, 7, {{"allReduce", 1}});
  const Cluster cluster(run);
  for (const ClusterOp& op : cluster.operations()) EXPECT_EQ(op.ranks.size(), 1u);
}

TEST(ClusterMessages, AreTheSameInTheirOrder) {
  profd::analysis::Run run;
  AddRank(&run, 0, {{"send", 1, 1}, {"send", 2, 1}, {"send", 2, 3}, {"receive", 2, 6}});
  AddRank(&run, 0, {{"receive", 2, 5}, {"receive", 2, 3.5}, {"send", 2, 4}});  // recorded nothing of step 1
  EXPECT_EQ(WaitsIn(run, 2), (std::map<Ranks, double>{{{1, 0}, 4.5}, {{0, 1}, 2}}));
  EXPECT_TRUE(WaitsIn(run, 1).empty());
}

// A rank numbers what it sends and what it receives in one sequence: of the same number both may send.
TEST(ClusterMessages, OfBothDirectionsAreSendAndReceive) {
  profd::analysis::Run run;
  AddRank(&run, 0, {{"send", 1, 1}, {"send", 1, 2}, {"receive", 1, 10}, {"receive", 1, 20}});
  AddRank(&run, 0, {{"receive", 1, 4}, {"send", 1, 3}, {"receive", 1, 6}, {"send", 1, 5}});
  EXPECT_EQ(WaitsIn(run, 1), (std::map<Ranks, double>{{{1, 0}, 7}, {{0, 1}, 22}}));
}

TEST(ClusterMessages, OfPartOfAStepAreTheSameByTheirNumbers) {
  profd::analysis::Run run;
  AddRank(&run, 0, {{"send", 1, 1}, {"send", 1, 2}});
  AddRank(&run, 1, {{"receive", 1, 7}});
  EXPECT_EQ(WaitsIn(run, 1), (std::map<Ranks, double>{{{1, 0}, 5}}));
}

// The first and the last of three stages have no messages with each other.
TEST(ClusterMessages, OfAGroupOfMoreRanksAreTheSameByTheirNumbers) {
  profd::analysis::Run run;
  AddRank(&run, 0, {{"send", 1, 1}, {"receive", 1, 2}});
  AddRank(&run, 5, {{"receive", 1, 7}, {"send", 1, 9}});
  EXPECT_FALSE(WaitsIn(run, 1).empty());
  AddRank(&run, 0, {{"send", 2, 1}});
  EXPECT_TRUE(WaitsIn(run, 1).empty());
}

// analysis 2.3, communication_matrix.json: links name the two ranks of an operation.
class MessagesOfAGroup : public ::testing::Test {
 protected:
  // `name` of the link: with the number of an operation, whose link it is, or of all of its kind.
  static void Link(Rank* rank, const char* kind, int number, const char* from, const char* to) {
    const TextId op = number < 0 ? kNoText : rank->Text("hcom_" + std::string(kind) + "__241_" + std::to_string(number) + "_1");
    rank->links.push_back({rank->Text("g"), rank->Text(from), rank->Text(to), rank->Text("HCCS"), 60, 3, rank->Text(std::string(kind) + "-total"), op, 1, true, false});
  }
  profd::analysis::Run run_;
};

// Of three stages the second exchanges with the first, and sends to the third: by numbers the third would receive what the
// first sends.
TEST_F(MessagesOfAGroup, AreBetweenTheRanksOfTheirLinks) {
  AddRank(&run_, 0, {{"send", 1, 1}, {"receive", 1, 9}});
  AddRank(&run_, 5, {{"receive", 1, 4}, {"send", 1, 2}, {"send", 1, 3}});
  AddRank(&run_, 0, {{"receive", 1, 8}});
  Link(run_.ranks[0].get(), "send", -1, "0", "1");
  Link(run_.ranks[0].get(), "receive", -1, "0", "1");
  Link(run_.ranks[1].get(), "receive", 5, "1", "0");
  Link(run_.ranks[1].get(), "send", 6, "1", "0");
  Link(run_.ranks[1].get(), "send", 7, "1", "2");
  Link(run_.ranks[2].get(), "receive", -1, "2", "1");
  EXPECT_EQ(WaitsIn(run_, 1), (std::map<Ranks, double>{{{1, 0}, 3}, {{0, 1}, 7}, {{2, 1}, 5}}));
}

// As above, where the tasks of each operation show them.
TEST_F(MessagesOfAGroup, AreBetweenTheRanksOfTheirTasks) {
  AddRank(&run_, 0, {{"send", 1, 1}});
  AddRank(&run_, 5, {{"receive", 1, 4}, {"send", 1, 3}});
  AddRank(&run_, 0, {{"receive", 1, 8}});
  run_.ranks[0]->collectives[0].between = {0, 1};
  run_.ranks[1]->collectives[0].between = {0, 1};
  run_.ranks[1]->collectives[1].between = {1, 2};
  run_.ranks[2]->collectives[0].between = {1, 2};
  EXPECT_EQ(WaitsIn(run_, 1), (std::map<Ranks, double>{{{1, 0}, 3}, {{2, 1}, 5}}));
}

TEST_F(MessagesOfAGroup, OfOtherRanksAreNotTheSame) {
  AddRank(&run_, 0, {{"send", 1, 1}});
  AddRank(&run_, 5, {{"receive", 1, 4}});
  AddRank(&run_, 0, {{"receive", 1, 8}});
  AddRank(&run_, 7, {{"send", 1, 8}});
  Link(run_.ranks[0].get(), "send", 0, "0", "1");
  Link(run_.ranks[2].get(), "receive", 0, "2", "3");  // the ranks 1 and 3 have no links
  EXPECT_TRUE(WaitsIn(run_, 1).empty());
}

TEST(ClusterMessages, OfUnknownStepsAreTheSameByTheirNumbers) {
  profd::analysis::Run run;
  AddRank(&run, 0, {{"send", -1, 1}, {"send", -1, 2}});
  AddRank(&run, 1, {{"receive", -1, 7}, {"receive", -1, 9}});  // began and ended one message later
  EXPECT_EQ(WaitsIn(run, -1), (std::map<Ranks, double>{{{1, 0}, 5}}));
}

// What is per step counts the steps in which ranks met, not those that one of them has besides.
TEST(ClusterWaits, AreOfTheStepsInWhichRanksMet) {
  profd::analysis::Run run;
  std::vector<Op> waits;
  std::vector<Op> last;
  for (int64_t step = 1; step <= 4; ++step) {
    waits.push_back({"allReduce", step, 3});
    last.push_back({"allReduce", step, 1});
  }
  AddRank(&run, 0, waits);
  AddRank(&run, 0, last);
  for (int64_t i = 0; i < 8; ++i) run.ranks[0]->steps.push_back({i, 100 * i, 100 * i + 100, {}, {}, {}});
  std::vector<RankWaits> found = WaitsByRank(Cluster(run));
  EXPECT_DOUBLE_EQ(found[0].waits_ms, 2);
  EXPECT_DOUBLE_EQ(found[1].others_wait_ms, 2);
  // Of unknown steps, all that was recorded is what they are of.
  for (const auto& rank : run.ranks) {
    for (Collective& each : rank->collectives) each.step = -1;
  }
  found = WaitsByRank(Cluster(run));
  EXPECT_DOUBLE_EQ(found[0].waits_ms, 1);
  EXPECT_DOUBLE_EQ(found[1].others_wait_ms, 8);
}

// Two groups of two ranks: links are numbered within them.
TEST(ClusterLinks, AreBetweenRanksOfTheirGroup) {
  profd::analysis::Run run;
  for (int i = 0; i < 4; ++i) {
    AddRank(&run, 0, {{"send", 1, 1}});
    Rank& rank = *run.ranks.back();
    const TextId group = rank.Text(i % 2 == 0 ? "even" : "odd");
    rank.collectives.front().group = group;
    // Rank 3 writes one by the numbers of all ranks; 8 is of no rank.
    for (const char* to : {i == 3 ? "3" : "1", "8"}) {
      rank.links.push_back({group, rank.Text("0"), rank.Text(to), rank.Text("HCCS"), 60, 3, kNoText, kNoText, 1, true, false});
    }
  }
  std::map<std::pair<int, int>, double> sizes;
  for (const Pair& pair : PairsOf(Cluster(run))) sizes[{pair.source, pair.destination}] = pair.size_mb;
  EXPECT_EQ(sizes, (std::map<std::pair<int, int>, double>{{{0, 2}, 120}, {{1, 3}, 120}}));
}

// Of a group of which some ranks were not read, and of which nothing has the numbers.
class LinksOfSomeRanks : public ::testing::Test {
 protected:
  using Pairs = std::map<std::pair<int, int>, double>;
  void Add(int number, const std::vector<std::pair<const char*, const char*>>& links) {
    AddRank(&run_, 0, {{"allReduce", 1}});
    Rank& rank = *run_.ranks.back();
    rank.rank = number;
    for (const auto& [from, to] : links) {
      rank.links.push_back({rank.Text("g"), rank.Text(from), rank.Text(to), rank.Text("HCCS"), 60, 3, kNoText, kNoText, 1, false, false});
    }
  }
  Pairs Found() const {
    Pairs sizes;
    for (const Pair& pair : PairsOf(Cluster(run_))) sizes[{pair.source, pair.destination}] = pair.size_mb;
    return sizes;
  }
  profd::analysis::Run run_;
};

TEST_F(LinksOfSomeRanks, AreUnknownWhereARankMayStandBefore) {
  // The third and fourth of ranks 0, 2, 4 and 6.
  Add(4, {{"2", "0"}, {"2", "1"}, {"2", "3"}});
  Add(6, {{"3", "0"}, {"3", "1"}, {"3", "2"}});
  EXPECT_EQ(Found(), Pairs());
}

// Of ranks 0, 2 and 4: the number of the first in its group is the one in all.
TEST_F(LinksOfSomeRanks, AreUnknownWhereTheFirstIsRead) {
  Add(0, {{"0", "1"}, {"0", "2"}});
  EXPECT_EQ(Found(), Pairs());
  Add(4, {{"2", "1"}});
  EXPECT_EQ(Found(), Pairs());
}

TEST_F(LinksOfSomeRanks, AreKnownAsFarAsAllRanksWereRead) {
  // Of ranks 0, 1, 2 and 5 of 0 to 7.
  Add(0, {{"0", "1"}, {"0", "2"}, {"0", "5"}});
  Add(1, {{"1", "0"}});
  Add(2, {{"2", "3"}});
  Add(5, {{"5", "0"}});
  run_.ranks[1]->links.push_back(run_.ranks[1]->links.front());
  run_.ranks[1]->links.back().source = run_.ranks[1]->Text("4");  // so not all are of their rank's number
  run_.ranks[1]->links.back().destination = run_.ranks[1]->Text("6");
  EXPECT_EQ(Found(), (Pairs{{{0, 1}, 60}, {{0, 2}, 60}, {{1, 0}, 60}}));
}

TEST_F(LinksOfSomeRanks, AreKnownOfACompleteGroup) {
  Add(8, {{"0", "1"}});
  Add(9, {{"1", "0"}});
  EXPECT_EQ(Found(), (Pairs{{{8, 9}, 60}, {{9, 8}, 60}}));
}

TEST_F(LinksOfSomeRanks, AreKnownByTheNumbersInAll) {
  Add(4, {{"4", "6"}});
  Add(6, {{"6", "4"}, {"6", "8"}});
  EXPECT_EQ(Found(), (Pairs{{{4, 6}, 60}, {{6, 4}, 60}})) << "of ranks 0 to 6 and 9, number 8 would not be rank 8";
}

}  // namespace
}  // namespace profd::analysis
