#include <gtest/gtest.h>

#include "analysis/views/views.h"
#include "base/clock.h"

namespace profd::analysis {
namespace {

// A kernel of `kernel_ms` each 10 ms, `kernels` of them; of the last `steps` each is one step.
analysis::Run MadeRun(int64_t kernels, int64_t steps, int64_t kernel_ms) {
  auto rank = std::make_unique<Rank>();
  rank->source = "dump";
  const int32_t op = rank->OperatorOf(rank->Text("op"), rank->Text("Mul"), kNoText);
  Intervals computing;
  for (int64_t i = 0; i < kernels; ++i) {
    rank->executions.push_back({10 * i * kNsPerMs, (10 * i + kernel_ms) * kNsPerMs, op});
    computing.push_back({10 * i * kNsPerMs, (10 * i + kernel_ms) * kNsPerMs});
    if (i >= kernels - steps) rank->steps.push_back({i, 10 * i * kNsPerMs, (10 * i + 10) * kNsPerMs, {}, {}, {}});
  }
  rank->overlap = exporting::operators::MakeOverlap(std::move(computing), {}, {});
  rank->recorded = Interval{0, 10 * kernels * kNsPerMs};
  analysis::Run run;
  run.ranks.push_back(std::move(rank));
  return run;
}

Json RowOf(const Json& compare, std::string_view what, std::string_view name) {
  for (const Json& row : compare["differences"]) {
    if (row["what"] == what && row["name"] == name) return row;
  }
  return {};
}

// Device activity of long before the steps is not of them.
TEST(CompareTest, ComparesAStepHoweverFarTheRecordingReaches) {
  const Json compare = CompareView(MadeRun(12, 2, 6), MadeRun(4, 4, 4));
  EXPECT_EQ(compare["of"], "step");
  EXPECT_TRUE(compare["note"].is_null());
  EXPECT_DOUBLE_EQ(compare["run_step_ms"].get<double>(), 10);
  EXPECT_DOUBLE_EQ(compare["difference_ms"].get<double>(), 0);
  for (const auto& [what, name] : {std::pair("time", "computing_ms"), {"operator_type", "Mul"}, {"operator", "op"}}) {
    const Json row = RowOf(compare, what, name);
    EXPECT_DOUBLE_EQ(row["run"].get<double>(), 6) << what;
    EXPECT_DOUBLE_EQ(row["baseline"].get<double>(), 4) << what;
    EXPECT_EQ(row["unit"], "ms per step");
  }
  EXPECT_DOUBLE_EQ(RowOf(compare, "time", "free_ms")["difference"].get<double>(), -2);
}

// A database keeps what was made of intervals beside what another tool's table says.
TEST(CompareTest, OfAForeignRunWithoutATableOfStepsTheSameFromADatabase) {
  analysis::Run run = MadeRun(12, 2, 6);
  Rank& rank = *run.ranks[0];
  rank.source = "PyTorch, text";
  rank.recorded.reset();
  const Json of_files = CompareView(run, MadeRun(4, 4, 4));
  // All 12 kernels, of which two lie in the two steps.
  EXPECT_DOUBLE_EQ(RowOf(of_files, "operator", "op")["run"].get<double>(), 6);
  rank.shares = StepSharesOf(rank);
  rank.shares_of_intervals = true;
  EXPECT_EQ(CompareView(run, MadeRun(4, 4, 4)), of_files);
  rank.shares_of_intervals = false;
  EXPECT_DOUBLE_EQ(RowOf(CompareView(run, MadeRun(4, 4, 4)), "operator", "op")["run"].get<double>(), 36) << "of another tool's table";
}

TEST(CompareTest, WhatWasComputedIsKnownFromADatabase) {
  Rank of_communication;
  of_communication.collectives.emplace_back();
  of_communication.shares[1] = {};
  EXPECT_TRUE(KnowsComputing(of_communication)) << "by a table";
  of_communication.shares_of_intervals = true;
  EXPECT_FALSE(KnowsComputing(of_communication));
  of_communication.sums.emplace();
  EXPECT_FALSE(KnowsComputing(of_communication));
  of_communication.sums->executions = 1;
  EXPECT_TRUE(KnowsComputing(of_communication));
}

// Shares of a dump are made of what it recorded.
TEST(CompareTest, WhatWasComputedIsNotKnownFromADumpOfCommunication) {
  Rank of_communication;
  of_communication.source = "dump";
  of_communication.collectives.emplace_back();
  of_communication.shares[1] = {};
  EXPECT_FALSE(KnowsComputing(of_communication));
  of_communication.overlap[OverlapKind::kComputing] = {{0, 1}};
  EXPECT_TRUE(KnowsComputing(of_communication));
}

TEST(CompareTest, ComparesRunsAsWholesWhereOneHasNoSteps) {
  const Json compare = CompareView(MadeRun(12, 0, 6), MadeRun(4, 4, 4));
  EXPECT_EQ(compare["of"], "run");
  EXPECT_EQ(compare["note"], "only the baseline has steps: the runs are compared as wholes");
  EXPECT_TRUE(compare["run_step_ms"].is_null());
  // From the begin of the first kernel to the end of the last.
  EXPECT_DOUBLE_EQ(compare["run_ms"].get<double>(), 116);
  EXPECT_DOUBLE_EQ(compare["baseline_ms"].get<double>(), 34);
  const Json row = RowOf(compare, "operator", "op");
  EXPECT_DOUBLE_EQ(row["run"].get<double>(), 72);
  EXPECT_DOUBLE_EQ(row["baseline"].get<double>(), 16);
  EXPECT_EQ(row["unit"], "ms");
}

TEST(CompareTest, WhatOneSideDoesNotKnowIsNoDifference) {
  analysis::Run run = MadeRun(4, 4, 4);
  analysis::Run baseline = MadeRun(4, 4, 5);
  baseline.ranks[0]->memory["PTA"].push_back({0, 3000, std::nullopt, std::nullopt});
  baseline.problems.push_back({"a", "b"});
  run.ranks[0]->operators.clear();
  run.ranks[0]->executions.clear();
  const Json compare = CompareView(run, baseline);
  for (const auto& [what, name] : {std::pair("memory", "PTA"), {"operator", "op"}}) {
    const Json row = RowOf(compare, what, name);
    EXPECT_TRUE(row["run"].is_null()) << what;
    EXPECT_TRUE(row["difference"].is_null()) << what;
    EXPECT_TRUE(row["share_of_difference"].is_null()) << what;
  }
  EXPECT_DOUBLE_EQ(RowOf(compare, "memory", "PTA")["baseline"].get<double>(), 3000);
  EXPECT_EQ(RowOf(compare, "memory", "PTA")["unit"], "MB");
  EXPECT_TRUE(compare["differences"].back()["difference"].is_null());
  EXPECT_FALSE(compare["differences"].front()["difference"].is_null());
  EXPECT_EQ(ProblemsJson(run, &baseline).size(), 1u);
}

}  // namespace
}  // namespace profd::analysis
