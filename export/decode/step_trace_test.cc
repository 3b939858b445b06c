#include "export/decode/step_trace.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <utility>
#include <vector>

namespace profd::exporting {
namespace {

std::vector<StepTraceRow> RowsOf(const std::vector<StepTraceRecord>& records, uint64_t* dropped) {
  std::vector<StepTraceRow> rows;
  StepTrace trace([&](const StepTraceRow& row) { rows.push_back(row); });
  for (const StepTraceRecord& record : records) trace.Add(record);
  trace.Finish();
  *dropped = trace.dropped();
  return rows;
}

// Each record belongs to the first iteration that lacks it, not to the one that is open at its time.
TEST(StepTraceRows, IterationsThatOverlap) {
  uint64_t dropped = 0;
  const auto rows = RowsOf({{10, 0, 1, 0, 0},
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
                            {85, 0, 1, 0, 1}},
                           &dropped);
  EXPECT_EQ(dropped, 0u);
  ASSERT_EQ(rows.size(), 2u);
  const auto times = [](const StepTraceRow& row) {
    return std::vector<uint64_t>{row.iteration, row.start, row.fp_start, row.bp_end, row.end};
  };
  EXPECT_EQ(times(rows[0]), (std::vector<uint64_t>{1, 10, 30, 50, 70}));
  EXPECT_EQ(times(rows[1]), (std::vector<uint64_t>{2, 20, 40, 60, 80}));
  EXPECT_EQ(rows[0].reduce.size(), 1u);
  EXPECT_TRUE(rows[0].get_next.empty());
  EXPECT_EQ(rows[1].get_next.size(), 1u);
}

TEST(StepTraceRows, IterationsOfAModel) {
  uint64_t dropped = 0;
  auto rows = RowsOf({{100, 0, 1, 0, 0},
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
                      {195, 0, 1, 0, 1}},  // opened at 190: dropped
                     &dropped);
  ASSERT_EQ(rows.size(), 2u);
  EXPECT_EQ(rows[0].iteration, 1u);
  EXPECT_EQ(rows[0].start, 100u);
  EXPECT_EQ(rows[0].end, 160u);
  EXPECT_EQ(rows[0].fp_start, 110u);
  EXPECT_EQ(rows[0].bp_end, 150u);
  EXPECT_EQ(rows[0].data_aug, 0u);
  using Pairs = std::vector<std::pair<uint64_t, uint64_t>>;
  EXPECT_EQ(rows[0].reduce, (Pairs{{120, 130}, {125, 146}}));
  EXPECT_EQ(rows[0].get_next, (Pairs{{140, 145}}));
  EXPECT_EQ(rows[1].iteration, 2u);
  EXPECT_EQ(rows[1].start, 160u);
  EXPECT_EQ(rows[1].data_aug, 10u);
  EXPECT_EQ(rows[1].bp_end, 0u);
  EXPECT_EQ(dropped, 0u);
}

TEST(StepTraceRows, ModelEndClosesTheFirstIteration) {
  uint64_t dropped = 0;
  auto rows =
      RowsOf({{5, 0, 1, 0, 2}, {10, 0, 1, 0, 0}, {20, 0, 1, 0, 1}, {30, 0, 1, 0, 0}}, &dropped);
  ASSERT_EQ(rows.size(), 1u);
  EXPECT_EQ(rows[0].end, 20u);
  EXPECT_EQ(rows[0].fp_start, 0u);  // came before the start
}

TEST(StepTraceRows, ModelsAreCountedApartAndDataAugSeesAll) {
  uint64_t dropped = 0;
  auto rows = RowsOf({{10, 0, 1, 0, 0},
                      {12, 0, 2, 0, 0},
                      {20, 0, 1, 0, 4},
                      {25, 0, 2, 0, 2},
                      {28, 0, 1, 0, 4},
                      {30, 0, 2, 0, 4}},
                     &dropped);
  ASSERT_EQ(rows.size(), 3u);
  EXPECT_EQ(rows[2].model, 2u);
  EXPECT_EQ(rows[2].iteration, 1u);
  EXPECT_EQ(rows[2].data_aug, 5u);  // after 20, not after 28
}

TEST(StepTraceRows, JitterIsPutInOrder) {
  uint64_t dropped = 0;
  auto rows = RowsOf({{160, 0, 1, 0, 4}, {100, 0, 1, 0, 0}, {110, 0, 1, 0, 2}}, &dropped);
  ASSERT_EQ(rows.size(), 1u);
  EXPECT_EQ(rows[0].fp_start, 110u);
}

TEST(StepTraceRows, TrainingStepsArePairedAsTheyCome) {
  constexpr uint64_t kNoModel = 4294967295;
  uint64_t dropped = 0;
  auto rows = RowsOf({{90, 2, kNoModel, 0, 60001},
                      {100, 3, kNoModel, 0, 60000},
                      {150, 4, kNoModel, 0, 60000},
                      {200, 3, kNoModel, 0, 60001},
                      {210, 9, kNoModel, 0, 60001}},
                     &dropped);
  ASSERT_EQ(rows.size(), 3u);
  EXPECT_TRUE(rows[0].begun_before);
  EXPECT_EQ(rows[0].iteration, 2u);
  EXPECT_EQ(rows[0].end, 90u);
  EXPECT_TRUE(rows[1].training_step);
  EXPECT_EQ(rows[1].iteration, 3u);
  EXPECT_EQ(rows[1].model, kNoModel);
  EXPECT_EQ(rows[1].start, 100u);
  EXPECT_EQ(rows[1].end, 200u);
  EXPECT_FALSE(rows[1].begun_before || rows[1].ends_after);
  EXPECT_EQ(rows[2].iteration, 4u);
  EXPECT_TRUE(rows[2].ends_after);
  EXPECT_EQ(dropped, 1u);  // 9
}

// A step between others that have ended did not run until the session ended.
TEST(StepTraceRows, ATrainingStepThatOnlyLacksItsEndIsLeftOut) {
  constexpr uint64_t kNoModel = 4294967295;
  uint64_t dropped = 0;
  auto rows = RowsOf({{100, 3, kNoModel, 0, 60000},
                      {200, 4, kNoModel, 0, 60000},
                      {300, 4, kNoModel, 0, 60001},
                      {300, 5, kNoModel, 0, 60000},
                      {150, 6, 7, 0, 60000}},  // another model's
                     &dropped);
  ASSERT_EQ(rows.size(), 3u);
  EXPECT_EQ(rows[0].iteration, 4u);
  EXPECT_FALSE(rows[0].ends_after);
  EXPECT_EQ(rows[1].iteration, 5u);
  EXPECT_TRUE(rows[1].ends_after);
  EXPECT_EQ(rows[2].iteration, 6u);
  EXPECT_TRUE(rows[2].ends_after);
  EXPECT_EQ(dropped, 1u);
}

// profd's steps are in slices of their own, before or behind those of the vendor's profiler.
TEST(StepTraceRows, StepsAndIterationsNeedNoCommonOrder) {
  constexpr uint64_t kNoModel = 4294967295;
  std::vector<StepTraceRecord> records = {{1, 0, 1, 0, 0}};
  for (uint64_t i = 1; i <= StepTrace::kReorder; ++i) records.push_back({i * 10, 0, 1, 0, 4});
  records.push_back({100, 7, kNoModel, 0, 60000});
  records.push_back({200, 7, kNoModel, 0, 60001});
  uint64_t dropped = 0;
  const auto rows = RowsOf(records, &dropped);
  EXPECT_EQ(rows.size(), StepTrace::kReorder + 1);
  EXPECT_EQ(std::ranges::count_if(rows, &StepTraceRow::training_step), 1);
  EXPECT_EQ(dropped, 0u);
}

}  // namespace
}  // namespace profd::exporting
