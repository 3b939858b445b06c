// What the files of cluster_analysis_output are made of; as written and read again: tests/fidelity/test_cluster.py.
#include <gtest/gtest.h>

#include <memory>
#include <string>
#include <vector>

#include "analysis/cluster/output.h"

namespace profd::analysis {
namespace {

// Two ranks that recorded a link in each direction; not all sources name its operation.
Run TwoRanks() {
  Run run;
  for (int number = 0; number < 2; ++number) {
    auto rank = std::make_unique<Rank>();
    rank->rank = number;
    const TextId group = rank->Text("g");
    Collective& op = rank->collectives.emplace_back();
    op.name = rank->Text("hcom_allReduce__1");
    op.group = group;
    Link& link = rank->links.emplace_back();
    link.group = group;
    link.source = rank->Text(std::to_string(number));
    link.destination = rank->Text(std::to_string(1 - number));
    link.size_mb = 2;
    link.time_ms = 1;
    run.ranks.push_back(std::move(rank));
  }
  return run;
}

TEST(OutputModelTest, LinksWithoutANameAreAllKept) {
  const auto run = TwoRanks();
  const Cluster cluster(run);
  const std::vector<OutputLinks> links = OutputModel(cluster).Links();
  ASSERT_EQ(links.size(), 2u);  // and their total
  for (const OutputLinks& each : links) {
    EXPECT_EQ(each.pairs.size(), 2u) << each.name;
    EXPECT_TRUE(each.pairs.contains({0, 1})) << each.name;
    EXPECT_TRUE(each.pairs.contains({1, 0})) << each.name;
  }
}

}  // namespace
}  // namespace profd::analysis
