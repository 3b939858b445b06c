// What the files of cluster_analysis_output are made of; as written and read again: tests/fidelity/test_cluster.py.
#include <gtest/gtest.h>

#include <memory>
#include <string>
#include <vector>

#include "analysis/cluster/output.h"
#include "analysis/views/views.h"
#include "export/operators/step_shares.h"

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

// As the vendor's tables of steps (analysis 3): what is cut to the step does not add up to Stage.
TEST(OutputModelTest, PartsOfAStepOfADumpAddUp) {
  constexpr int64_t kMs = 1'000'000;
  analysis::Run run;
  Rank& rank = *run.ranks.emplace_back(std::make_unique<Rank>());
  rank.rank = 0;
  rank.source = "dump";
  rank.overlap = exporting::operators::MakeOverlap({{1 * kMs, 4 * kMs}, {8 * kMs, 13 * kMs}}, {{14 * kMs, 16 * kMs}}, {});
  std::vector<exporting::StepSpan> spans;
  for (const int64_t number : {0, 1}) {
    rank.steps.push_back({number, 10 * number * kMs, 10 * (number + 1) * kMs, {}, {}, {}});
    exporting::StepSpan& span = spans.emplace_back();
    span.number = number;
    span.start_ns = rank.steps.back().start_ns;
    span.end_ns = rank.steps.back().end_ns;
  }
  for (const auto& share : exporting::operators::StepShares(rank.overlap, {}, spans)) rank.shares[share.step->number] = SharesOf(share);
  for (const bool dropped : {false, true}) {
    if (dropped) rank.DropDetails(StepSharesOf(rank), OverallOf(rank));
    EXPECT_DOUBLE_EQ(StepSharesOf(rank).at(0).computing, 5) << "the other analyses cut it";
    const Cluster cluster(run);
    const auto rows = OutputModel(cluster).Steps();
    ASSERT_EQ(rows.size(), 2u);
    for (size_t i = 0; i < 2; ++i) {
      // Computing, not overlapped, overlapped, communication, free, stage; us.
      const std::vector<double> want = i == 0 ? std::vector<double>{8000, 0, 0, 0, 4000, 12000} : std::vector<double>{0, 2000, 0, 2000, 1000, 3000};
      for (size_t k = 0; k < want.size(); ++k) EXPECT_DOUBLE_EQ(rows[i].us[k].value(), want[k]) << i << " " << k << " " << dropped;
    }
  }
}

}  // namespace
}  // namespace profd::analysis
