#include "export/decode/step_trace.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <vector>

namespace profd::exporting {

void PrintTo(const StepTraceRow& row, std::ostream* out) {
  *out << row.model << ' ' << row.iteration << ": " << row.start << " to " << row.end << ", parts " << row.fp_start << ' ' << row.bp_end << ' '
       << row.data_aug << ' ' << testing::PrintToString(row.reduce) << ' ' << testing::PrintToString(row.get_next);
}

namespace {

using Rows = std::vector<StepTraceRow>;

constexpr uint64_t kNoModel = 4294967295;

// 0: the begin lies before the first record, the end behind the last one.
StepTraceRow TrainingStep(uint64_t model, uint64_t step, uint64_t start, uint64_t end) {
  return {.training_step = true, .begun_before = start == 0, .ends_after = end == 0, .model = model, .iteration = step, .start = start, .end = end};
}

// The rows, and how many records were dropped.
std::pair<Rows, uint64_t> Traced(const std::vector<StepTraceRecord>& records) {
  Rows rows;
  StepTrace trace([&](const StepTraceRow& row) { rows.push_back(row); });
  for (const StepTraceRecord& record : records) trace.Add(record);
  trace.Finish();
  return {rows, trace.dropped()};
}

// Each record belongs to the first iteration that lacks it, not to the one that is open at its time.
TEST(StepTraceRows, IterationsThatOverlap) {
  const auto [rows, dropped] = Traced({{10, 0, 1, 0, 0},
                                       {20, 0, 1, 0, 0},
                                       {30, 0, 1, 0, 2},
                                       {35, 0, 1, 7, 10000},
                                       {38, 0, 1, 7, 10001},
                                       {40, 0, 1, 0, 2},
                                       {45, 0, 1, 0, 20000},  // of the last
                                       {46, 0, 1, 0, 20001},
                                       {50, 0, 1, 0, 3},
                                       {60, 0, 1, 0, 3},
                                       {70, 0, 1, 0, 4},
                                       {75, 0, 1, 0, 1},
                                       {80, 0, 1, 0, 4},
                                       {85, 0, 1, 0, 1}});
  EXPECT_EQ(dropped, 0u);
  EXPECT_EQ(rows, (Rows{{.model = 1, .iteration = 1, .start = 10, .end = 70, .fp_start = 30, .bp_end = 50, .reduce = {{35, 38}}},
                        {.model = 1, .iteration = 2, .start = 20, .end = 80, .fp_start = 40, .bp_end = 60, .get_next = {{45, 46}}}}));
}

TEST(StepTraceRows, IterationsOfAModel) {
  const auto [rows, dropped] = Traced({{100, 0, 1, 0, 0},
                                       {110, 0, 1, 0, 2},
                                       {120, 0, 1, 7, 10000},
                                       {125, 0, 1, 8, 10002},
                                       {130, 0, 1, 7, 10001},
                                       {135, 0, 1, 7, 10000},  // stays open
                                       {140, 0, 1, 0, 20000},
                                       {145, 0, 1, 0, 20001},
                                       {146, 0, 1, 8, 10003},
                                       {150, 0, 1, 0, 3},
                                       {160, 0, 1, 0, 4},
                                       {170, 0, 1, 0, 2},
                                       {190, 0, 1, 0, 4},
                                       {195, 0, 1, 0, 1}});  // opened at 190: dropped
  EXPECT_EQ(rows, (Rows{{.model = 1, .iteration = 1, .start = 100, .end = 160, .fp_start = 110, .bp_end = 150,
                         .reduce = {{120, 130}, {125, 146}}, .get_next = {{140, 145}}},
                        {.model = 1, .iteration = 2, .start = 160, .end = 190, .fp_start = 170, .data_aug = 10}}));
  EXPECT_EQ(dropped, 0u);
}

TEST(StepTraceRows, ModelEndClosesTheFirstIteration) {
  const Rows rows = Traced({{5, 0, 1, 0, 2}, {10, 0, 1, 0, 0}, {20, 0, 1, 0, 1}, {30, 0, 1, 0, 0}}).first;
  ASSERT_EQ(rows.size(), 1u);
  EXPECT_EQ(rows[0].end, 20u);
  EXPECT_EQ(rows[0].fp_start, 0u);  // came before the start
}

TEST(StepTraceRows, ModelsAreCountedApartAndDataAugSeesAll) {
  const Rows rows = Traced({{10, 0, 1, 0, 0},
                            {12, 0, 2, 0, 0},
                            {20, 0, 1, 0, 4},
                            {25, 0, 2, 0, 2},
                            {28, 0, 1, 0, 4},
                            {30, 0, 2, 0, 4}}).first;
  ASSERT_EQ(rows.size(), 3u);
  EXPECT_EQ(rows[2].model, 2u);
  EXPECT_EQ(rows[2].iteration, 1u);
  EXPECT_EQ(rows[2].data_aug, 5u);  // after 20, not after 28
}

TEST(StepTraceRows, JitterIsPutInOrder) {
  const Rows rows = Traced({{160, 0, 1, 0, 4}, {100, 0, 1, 0, 0}, {110, 0, 1, 0, 2}}).first;
  ASSERT_EQ(rows.size(), 1u);
  EXPECT_EQ(rows[0].fp_start, 110u);
}

TEST(StepTraceRows, TrainingStepsArePairedAsTheyCome) {
  const auto [rows, dropped] = Traced({{90, 2, kNoModel, 0, 60001},
                                       {100, 3, kNoModel, 0, 60000},
                                       {150, 4, kNoModel, 0, 60000},
                                       {200, 3, kNoModel, 0, 60001},
                                       {210, 9, kNoModel, 0, 60001}});
  EXPECT_EQ(rows, (Rows{TrainingStep(kNoModel, 2, 0, 90), TrainingStep(kNoModel, 3, 100, 200), TrainingStep(kNoModel, 4, 150, 0)}));
  EXPECT_EQ(dropped, 1u);  // 9
}

// A step between others that have ended did not run until the session ended.
TEST(StepTraceRows, ATrainingStepThatOnlyLacksItsEndIsLeftOut) {
  const auto [rows, dropped] = Traced({{100, 3, kNoModel, 0, 60000},
                                       {200, 4, kNoModel, 0, 60000},
                                       {300, 4, kNoModel, 0, 60001},
                                       {300, 5, kNoModel, 0, 60000},
                                       {150, 6, 7, 0, 60000}});  // another model's
  EXPECT_EQ(rows, (Rows{TrainingStep(kNoModel, 4, 200, 300), TrainingStep(kNoModel, 5, 300, 0), TrainingStep(7, 6, 150, 0)}));
  EXPECT_EQ(dropped, 1u);
}

// profd's steps are in slices of their own, before or behind those of the vendor's profiler.
TEST(StepTraceRows, StepsAndIterationsNeedNoCommonOrder) {
  std::vector<StepTraceRecord> records = {{1, 0, 1, 0, 0}};
  for (uint64_t i = 1; i <= StepTrace::kReorder; ++i) records.push_back({i * 10, 0, 1, 0, 4});
  records.push_back({100, 7, kNoModel, 0, 60000});
  records.push_back({200, 7, kNoModel, 0, 60001});
  const auto [rows, dropped] = Traced(records);
  EXPECT_EQ(rows.size(), StepTrace::kReorder + 1);
  EXPECT_EQ(std::ranges::count_if(rows, &StepTraceRow::training_step), 1);
  EXPECT_EQ(dropped, 0u);
}

}  // namespace
}  // namespace profd::exporting
