#include "export/show/summary.h"

#include <gtest/gtest.h>

#include <array>
#include <cmath>
#include <memory>
#include <utility>
#include <vector>

namespace profd::exporting {
namespace {

constexpr int64_t kT = 1767225600000000000;
constexpr int64_t kS = 1000000000;

TEST(Course, FollowsARamp) {
  Course course;
  for (int64_t i = 0; i < 100000; ++i) course.Add(kT + i * 10'000'000, static_cast<double>(i));
  std::vector<double> means = course.Resample(kT, kT + 1000 * kS, 10);
  for (size_t i = 0; i < 10; ++i) {
    EXPECT_NEAR(means[i], 5000 + 10000.0 * static_cast<double>(i), 600) << i;
  }
}

TEST(Course, TimesMayComeInAnyOrder) {
  Course forward, backward;
  for (int64_t i = 0; i < 1000; ++i) {
    forward.Add(kT + i * kS, static_cast<double>(i));
    backward.Add(kT + (999 - i) * kS, static_cast<double>(999 - i));
  }
  std::vector<double> a = forward.Resample(kT, kT + 1000 * kS, 8);
  std::vector<double> b = backward.Resample(kT, kT + 1000 * kS, 8);
  for (size_t i = 0; i < 8; ++i) EXPECT_NEAR(a[i], b[i], 10) << i;
}

TEST(Course, GapsStayGaps) {
  Course course;
  course.Add(kT, 1);
  course.Add(kT + 99 * kS, 2);
  std::vector<double> means = course.Resample(kT, kT + 100 * kS, 10);
  EXPECT_EQ(means.front(), 1);
  EXPECT_EQ(means.back(), 2);
  EXPECT_TRUE(std::isnan(means[5]));
  EXPECT_TRUE(std::isnan(Course().Resample(0, 1, 3)[0]));
}

TEST(Course, AnyTimestampIsSurvived) {
  Course course;
  for (int64_t t : {int64_t{0}, INT64_MAX, INT64_MIN, int64_t{-1}, kT}) course.Add(t, 1);
  EXPECT_EQ(course.Resample(INT64_MIN, INT64_MAX, 2).size(), 2u);
}

class Summary : public testing::Test {
 protected:
  void Begin() {
    plan_.strings = &strings_;
    ASSERT_TRUE(format_->Begin(plan_).ok());
  }
  std::unique_ptr<FormatSink> Open() { return std::move(format_->Open({})).value(); }
  void End() {
    std::vector<OutputFile> files;
    ASSERT_TRUE(format_->End(true, &files).ok());
  }

  DumpSummary summary_;
  Strings strings_;
  ExportPlan plan_;
  std::unique_ptr<Format> format_ = MakeSummaryFormat(&summary_);
};

TEST_F(Summary, CountsAndBounds) {
  Begin();
  auto sink = Open();
  BatchBuilder hbm(TableOf(TableId::kHbm), 1, {}, *sink);
  hbm.Add(kT, int64_t{0}, int64_t{0}, 1.0);
  hbm.Add(kT, int64_t{0}, int64_t{1}, 5.0);
  hbm.Add(kT + kS, int64_t{0}, int64_t{0}, 3.0);
  hbm.Flush();
  BatchBuilder own(TableOf(TableId::kSample), -1, {}, *sink);
  int64_t name = strings_.Intern("x_total");
  int64_t labels = strings_.Intern("a=b");
  for (int64_t i = 0; i < 4; ++i) {
    own.Add(kT + i * kS, name, labels, static_cast<double>(i == 3 ? 1 : i * 10));  // falls back
  }
  own.Flush();
  Event mark;
  sink->TakeEvent(mark);
  ASSERT_TRUE(sink->Finish().ok());
  End();
  ASSERT_EQ(summary_.series.size(), 3u);
  const SeriesSummary& read = summary_.series[0];
  EXPECT_EQ(read.device, 1);
  EXPECT_EQ(read.count, 2u);
  EXPECT_EQ(read.min, 1048576);
  EXPECT_EQ(read.max, 3 * 1048576.0);
  EXPECT_EQ(read.labels, (std::vector<Label>{{"hbm", "0"}, {"direction", "read"}}));
  EXPECT_EQ(summary_.series[1].max, 5 * 1048576.0);
  const SeriesSummary& rate = summary_.series[2];
  EXPECT_TRUE(rate.rate);
  EXPECT_EQ(rate.count, 2u);
  EXPECT_EQ(rate.min, 10);
  EXPECT_EQ(rate.max, 10);
  EXPECT_EQ(summary_.first_ns, kT);
  EXPECT_EQ(summary_.last_ns, kT + 2 * kS);
  EXPECT_EQ(summary_.events[0], 1u);
}

// Two files of one dump, as two threads read them.
TEST_F(Summary, OperatorsByRankAndName) {
  Begin();
  const int64_t matmul = strings_.Intern("MatMul");
  const int64_t add = strings_.Intern("Add");
  const int64_t type = strings_.Intern("KERNEL_AICORE");
  const std::array<std::vector<std::array<int64_t, 3>>, 2> files = {
      // rank, name, duration
      {{{0, matmul, 300}, {0, matmul, 100}, {0, add, 50}}, {{0, matmul, 200}, {1, matmul, 700}, {-1, add, 5}}}};
  for (const auto& rows : files) {
    auto sink = Open();
    BatchBuilder kernels(TableOf(TableId::kKernel), 0, {}, *sink);
    for (const auto& [rank, name, duration] : rows) kernels.Add(kT, name, type, duration, 5, 77, rank, 43, 1);
    kernels.Flush();
    BatchBuilder communication(TableOf(TableId::kCommunication), 0, {}, *sink);
    communication.Add(kT, strings_.Intern("allReduce"), type, type, 40, 6, 77, 0, 1, 1024, 4, 2.5);
    communication.Flush();
    ASSERT_TRUE(sink->Finish().ok());
  }
  const auto& kernels = summary_.kernels.totals();
  ASSERT_EQ(kernels.size(), 4u);
  const ActivityTotal& of_both = kernels.at({0, "MatMul"});
  EXPECT_EQ(of_both.count, 3u);
  EXPECT_EQ(of_both.total_ns, 600);
  EXPECT_EQ(of_both.min_ns, 100);
  EXPECT_EQ(of_both.max_ns, 300);
  EXPECT_EQ(of_both.MeanNs(), 200);
  EXPECT_EQ(kernels.at({0, "Add"}).total_ns, 50);
  EXPECT_EQ(kernels.at({1, "MatMul"}).total_ns, 700);
  EXPECT_EQ(kernels.at({-1, "Add"}).total_ns, 5) << "a process without a rank";
  const auto& communication = summary_.communication.totals();
  ASSERT_EQ(communication.size(), 1u);
  EXPECT_EQ(communication.at({0, "allReduce"}).total_ns, 80);
  EXPECT_TRUE(summary_.series.empty()) << "operators are no series";
}

// Two files of one dump: its steps are those its process marked.
TEST_F(Summary, StepsOfWhatWasRecorded) {
  const DumpInfo info;
  StepSpans spans;
  plan_.dumps = {&info};
  plan_.steps_of = [&spans](const DumpInfo&) { return spans; };
  Begin();
  const int64_t matmul = strings_.Intern("MatMul");
  const int64_t type = strings_.Intern("KERNEL_AICORE");
  const int64_t reduce = strings_.Intern("allReduce");
  {
    auto sink = Open();
    for (const int64_t number : {7, 8}) {
      Event step{EventKind::kStep, kT + (number - 7) * 1'000'000, 1'000'000, -1, 77, 78, "", number, {}};
      for (const int rank : {0, 1}) {  // that of device 3, and another one
        step.rank = rank;
        spans.Add(step);
        sink->TakeEvent(step);
      }
    }
    ASSERT_TRUE(sink->Finish().ok());
  }
  auto sink = Open();
  BatchBuilder kernels(TableOf(TableId::kKernel), 3, {}, *sink);
  // 100 us of step 7; 300 us of step 8, of which 100 us are two kernels at once.
  kernels.Add(kT, matmul, type, int64_t{100'000}, 5, 77, int64_t{1}, 43, 1);
  kernels.Add(kT + 1'000'000, matmul, type, int64_t{200'000}, 5, 77, int64_t{1}, 43, 1);
  kernels.Add(kT + 1'100'000, matmul, type, int64_t{200'000}, 5, 77, int64_t{1}, 43, 1);
  kernels.Flush();
  BatchBuilder communication(TableOf(TableId::kCommunication), 3, {}, *sink);
  // 250 us, 50 of them beside the last kernel.
  communication.Add(kT + 1'250'000, reduce, type, type, int64_t{250'000}, 6, 77, int64_t{1}, 1, 1024, 4, 2.5);
  communication.Flush();
  ASSERT_TRUE(sink->Finish().ok());
  sink.reset();
  End();
  const std::vector<StepTimes>& steps = summary_.steps.steps;
  ASSERT_EQ(steps.size(), 2u);
  EXPECT_EQ(steps[0].rank, 1);
  EXPECT_EQ(steps[0].device, 3);
  EXPECT_EQ(steps[0].number, 7);
  EXPECT_EQ(steps[0].computing_us, 100);
  EXPECT_EQ(steps[0].communication_us, 0);
  EXPECT_EQ(steps[0].free_us, 900) << "up to the first kernel of the next step";
  EXPECT_EQ(steps[1].number, 8);
  EXPECT_EQ(steps[1].computing_us, 300);
  EXPECT_EQ(steps[1].communication_us, 200);
  EXPECT_EQ(steps[1].hidden_us, 50);
  EXPECT_EQ(steps[1].free_us, 0) << "nothing is known of behind the last of it";
  ASSERT_TRUE(summary_.steps.timeline);
  EXPECT_EQ(summary_.steps.timeline->step.number, 7) << "the longest";
  ASSERT_EQ(summary_.steps.timeline->longest.size(), 1u);
  EXPECT_EQ(summary_.steps.timeline->longest[0].name, "MatMul");
}

TEST_F(Summary, SeriesAreBounded) {
  Begin();
  auto sink = Open();
  BatchBuilder memory(TableOf(TableId::kModuleMem), 0, {}, *sink);
  for (int64_t i = 0; i < 10000; ++i) memory.Add(kT, i, i);
  memory.Flush();
  ASSERT_TRUE(sink->Finish().ok());
  EXPECT_EQ(summary_.series.size(), DumpSummary::kMaxSeries);
  EXPECT_EQ(summary_.left_out_series, 10000 - DumpSummary::kMaxSeries);
}

}  // namespace
}  // namespace profd::exporting
