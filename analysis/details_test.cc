#include "analysis/details.h"

#include <gtest/gtest.h>

#include <memory>
#include <set>

#include "analysis/views/views.h"

namespace profd::analysis {
namespace {

constexpr size_t kExecutions = 1000;

std::unique_ptr<Rank> MadeRank(int number, double computing_ms, double free_ms, double bandwidth) {
  auto rank = std::make_unique<Rank>();
  rank->rank = number;
  rank->executions.resize(kExecutions);
  rank->shares[1] = {computing_ms, 0, 0, free_ms};
  rank->collectives.emplace_back().transports.push_back({.name = "SDMA", .size_mb = bandwidth, .time_ms = 1});
  return rank;
}

// Which of the ranks have their executions.
std::set<int> KeptOf(const std::vector<std::unique_ptr<Rank>>& ranks) {
  std::set<int> kept;
  for (const auto& rank : ranks) {
    if (!rank->executions.empty()) kept.insert(*rank->rank);
  }
  return kept;
}

std::vector<std::unique_ptr<Rank>> TenRanks() {
  std::vector<std::unique_ptr<Rank>> ranks;
  for (int i = 0; i < 10; ++i) ranks.push_back(MadeRank(i, i == 4 ? 90 : i == 5 ? 10 : 50, i == 6 ? 30 : i == 7 ? 1 : 5, i == 8 ? 2 : 18));
  return ranks;
}

TEST(DetailsTest, KeepsAllWhileThereIsMemory) {
  auto ranks = TenRanks();
  Details details;
  for (const auto& rank : ranks) details.Add(rank.get());
  EXPECT_EQ(details.Finish(), 0u);
  EXPECT_EQ(KeptOf(ranks).size(), ranks.size());
}

// One of their steps is enough: checks choose by it.
TEST(DetailsTest, KeepsTheRanksThatStandOutInOneStep) {
  std::vector<std::unique_ptr<Rank>> ranks;
  for (int i = 0; i < 10; ++i) {
    ranks.push_back(MadeRank(i, 50, 5, 18));
    // In all, rank 2 has the most of both.
    ranks.back()->shares[2] = {i == 2 ? 60.0 : i == 8 ? 70.0 : 10.0, 0, 0, i == 2 ? 6.0 : i == 9 ? 8.0 : 1.0};
    if (i == 2) ranks.back()->shares[1] = {69, 0, 0, 7};
    Collective& more = ranks.back()->collectives.emplace_back();
    more.step = 2;
    more.transports.push_back({.name = "SDMA", .size_mb = i == 7 ? 1.0 : 18.0, .time_ms = 1});
    if (i == 3) more.transports.push_back({.name = "SDMA", .size_mb = 10, .time_ms = 4});
  }
  Details details(3 * kExecutions * sizeof(Execution));
  for (const auto& rank : ranks) details.Add(rank.get());
  details.Finish();
  const std::set<int> kept = KeptOf(ranks);
  for (const int number : {0, 7, 8, 9}) EXPECT_TRUE(kept.contains(number)) << number;
  EXPECT_FALSE(kept.contains(2));
}

TEST(DetailsTest, KeepsTheRanksThatChecksLookAtInAnyOrder) {
  for (const bool backwards : {false, true}) {
    auto ranks = TenRanks();
    Details details(3 * kExecutions * sizeof(Execution));
    for (size_t i = 0; i < ranks.size(); ++i) details.Add(ranks[backwards ? ranks.size() - 1 - i : i].get());
    EXPECT_EQ(details.Finish(), 4u);
    EXPECT_EQ(KeptOf(ranks), (std::set<int>{0, 4, 5, 6, 7, 8}));
    // What was made of the others is still there.
    const Rank& left_out = *ranks[1];
    EXPECT_TRUE(left_out.details_left_out);
    EXPECT_EQ(OverallView(left_out)["computing_ms"], 50);
    EXPECT_EQ(StepSharesOf(left_out).at(1).free, 5);
    EXPECT_EQ(left_out.collectives.size(), 1u);
    EXPECT_TRUE(RankJson(left_out, {})["operators"].is_null());
    EXPECT_EQ(RankJson(left_out, {})["steps"].size(), 1u);
  }
}

// Its lists may be long: another field, which the page adds, must not move them.
TEST(RankJsonTest, HasSpaceForAFieldOfItsCaller) {
  Rank rank;
  rank.shares[1] = {50, 0, 0, 5};
  Json json = RankJson(rank, {});
  const Json* const steps = &json["steps"];
  json["timeline_data"] = 1;
  EXPECT_EQ(&json["steps"], steps);
}

TEST(RunJsonTest, HasSpaceForTheFieldsOfItsCaller) {
  Json made = RunJson(analysis::Run(), {});
  const Json* const ranks = &made["ranks"];
  for (const char* field : {"cluster", "cluster_out", "compare", "store"}) made[field] = 1;
  EXPECT_EQ(&made["ranks"], ranks);
}

}  // namespace
}  // namespace profd::analysis
