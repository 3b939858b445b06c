#include "daemon/advice/history.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "collectors/metric_table.h"
#include "daemon/advice/hardware.h"
#include "daemon/advice/test_support.h"

namespace profd {
namespace {

using attach::MarkKind;
using ::testing::ElementsAre;

constexpr int32_t kThread = 7;
constexpr RankHistory::Rules kRules{0.1, 0.05, 0.1, 3600 * kNsPerSecond};

class RankHistoryTest : public ::testing::Test {
 protected:
  void Mark(MarkKind kind, int64_t at_ns, std::string_view name = {}, int64_t value = 0, int32_t thread = kThread) {
    const profd::Mark mark{at_ns, value, thread, kind, name};
    history_.TakeMarks(std::span(&mark, 1));
  }
  void Range(std::string_view name, int64_t begin_ns, int64_t end_ns, int32_t thread = kThread) {
    Mark(MarkKind::kRangePush, begin_ns, name, 0, thread);
    Mark(MarkKind::kRangePop, end_ns, {}, 0, thread);
  }
  // One step from now on; a look at each second that begins in it.
  void Step(int64_t ns, bool with_end = true) {
    Mark(MarkKind::kStepBegin, now_ns_, {}, step_);
    const int64_t end = now_ns_ + ns;
    for (int64_t s = (now_ns_ / kNsPerSecond + 1) * kNsPerSecond; s <= end; s += kNsPerSecond) facts_ = Look(s);
    now_ns_ = end;
    if (with_end) Mark(MarkKind::kStepEnd, now_ns_, {}, step_);
    ++step_;
  }
  RankFacts Look(int64_t now_ns) { return history_.Facts(process_, {}, now_ns, kRules); }

  TrainingProcess process_;
  RankHistory history_;
  RankFacts facts_;
  int64_t now_ns_ = kTestNow;
  int64_t step_ = 1;
};

TEST_F(RankHistoryTest, StepsNowAndBefore) {
  for (int i = 0; i < 100; ++i) Step(100 * kNsPerMs);
  EXPECT_DOUBLE_EQ(facts_.step_ms, 100);
  EXPECT_DOUBLE_EQ(facts_.before_ms, 100);
  EXPECT_FALSE(Look(now_ns_).in_step);
  for (int i = 0; i < 200; ++i) Step(150 * kNsPerMs);
  EXPECT_DOUBLE_EQ(facts_.step_ms, 150);
  EXPECT_NEAR(facts_.before_ms, 100, 3);  // it stands
  EXPECT_EQ(facts_.steps.size(), RankHistory::kSteps);
}

TEST_F(RankHistoryTest, StepsThatOnlyBegin) {
  for (int i = 0; i < 100; ++i) Step(100 * kNsPerMs, false);
  EXPECT_DOUBLE_EQ(facts_.step_ms, 100);
  EXPECT_TRUE(Look(now_ns_).in_step);
  EXPECT_EQ(Look(now_ns_).steps_done, 99u);
}

TEST_F(RankHistoryTest, NewUsualAfterAnHour) {
  for (int i = 0; i < 100; ++i) Step(100 * kNsPerMs);
  for (int i = 0; i < 3700; ++i) Step(kNsPerSecond);
  EXPECT_DOUBLE_EQ(facts_.before_ms, 1000);
}

TEST_F(RankHistoryTest, SlowFirstStepsAreForgotten) {
  for (int i = 0; i < 10; ++i) Step(2 * kNsPerSecond);
  for (int i = 0; i < 500; ++i) Step(100 * kNsPerMs);
  EXPECT_NEAR(facts_.before_ms, 100, 12);
}

TEST_F(RankHistoryTest, HostWorkPerStep) {
  for (int i = 0; i < 120; ++i) {
    Range("dataloader", now_ns_, now_ns_ + 30 * kNsPerMs);
    if (i % 4 == 0) Range("gc", now_ns_ + 30 * kNsPerMs, now_ns_ + 70 * kNsPerMs);
    Step(100 * kNsPerMs);
  }
  EXPECT_NEAR(facts_.host.dataloader_ms, 30, 1);
  EXPECT_DOUBLE_EQ(facts_.host.longest_dataloader_ms, 30);
  EXPECT_NEAR(facts_.host.gc_ms, 10, 1);
  EXPECT_DOUBLE_EQ(facts_.host.longest_gc_ms, 40);
}

// The window of 10 s has 12.5 steps, of which 12 or 13 wait in it.
TEST_F(RankHistoryTest, HostWorkOfFewSteps) {
  while (now_ns_ < kTestNow + 30 * kNsPerSecond) {
    Range("dataloader", now_ns_, now_ns_ + 80 * kNsPerMs);
    Step(800 * kNsPerMs);
    if (now_ns_ < kTestNow + 12 * kNsPerSecond) continue;
    EXPECT_NEAR(facts_.host.dataloader_ms, 80, 6) << (now_ns_ - kTestNow) / kNsPerMs;
  }
}

TEST_F(RankHistoryTest, WorkOfOtherThreadsIsBesideTheSteps) {
  for (int i = 0; i < 40; ++i) {
    Range("dataloader", now_ns_, now_ns_ + 90 * kNsPerMs, kThread + 1);
    Step(100 * kNsPerMs);
  }
  EXPECT_EQ(facts_.host.dataloader_ms, 0);
}

TEST_F(RankHistoryTest, NestedOperatorsAreCountedOnce) {
  for (int i = 0; i < 120; ++i) {
    Mark(MarkKind::kRangePush, now_ns_, "dataloader");
    Range("dataloader next", now_ns_ + kNsPerMs, now_ns_ + 9 * kNsPerMs);
    Mark(MarkKind::kRangePop, now_ns_ + 10 * kNsPerMs);
    Step(100 * kNsPerMs);
  }
  EXPECT_NEAR(facts_.host.dataloader_ms, 10, 0.5);
}

// The marks of a process are not ours: depth without end, ends without begin, times that go back.
TEST_F(RankHistoryTest, HostileMarks) {
  Mark(MarkKind::kStepBegin, 1, {}, 1);
  for (int i = 0; i < 100000; ++i) Mark(MarkKind::kRangePush, i, "dataloader");
  for (int i = 0; i < 200000; ++i) Mark(MarkKind::kRangePop, -i);
  Mark(MarkKind::kStepBegin, INT64_MAX, {}, INT64_MAX);
  Mark(MarkKind::kStepEnd, INT64_MIN, {}, INT64_MAX);
  Mark(MarkKind::kStepBegin, 5, {}, INT64_MIN);
  const RankFacts facts = Look(kTestNow);
  EXPECT_EQ(facts.steps_done, 0u);
}

TEST_F(RankHistoryTest, AicpuKernelsAndCompilations) {
  ActivityNameTable names;
  ASSERT_TRUE(names.Learn(1, "KERNEL_AICPU").ok());
  ASSERT_TRUE(names.Learn(2, "KERNEL_AICORE").ok());
  ASSERT_TRUE(names.Learn(3, "aclopCompileAndExecute").ok());
  for (int i = 0; i < 120; ++i) {
    std::array<attach::KernelRecord, 2> kernels{};
    kernels[0].duration = kernels[1].duration = 5'000'000;
    kernels[0].type = 1;
    kernels[1].type = 2;
    attach::ApiRecord api{};
    api.duration = 20'000'000;
    api.name = 3;
    const std::array<ActivityFrame, 2> frames = {
        {{attach::ActivityType::kKernel, 2, now_ns_, std::as_bytes(std::span(kernels))},
         {attach::ActivityType::kApi, 1, now_ns_, std::as_bytes(std::span(&api, 1))}}};
    ActivityBatch batch{.frames = frames, .names = {std::shared_ptr<void>(), &names}};
    history_.TakeActivity(batch);
    Step(100 * kNsPerMs);
  }
  EXPECT_NEAR(facts_.aicpu_ms, 5, 0.2);
  EXPECT_NEAR(static_cast<double>(facts_.aicpu_kernels), 100, 2);
  EXPECT_NEAR(facts_.compile_api_ms, 20, 1);
  EXPECT_NEAR(static_cast<double>(facts_.compilations), 100, 2);
  EXPECT_GT(facts_.last_kernel_ns, kTestNow);
}

// Steps of 1.02 s, half of each computation: 4.9 of them are made in five seconds, four or five end.
TEST_F(RankHistoryTest, SharesOfAStepDoNotDependOnHowManyEndInTheSeconds) {
  constexpr int64_t kStep = 1020 * kNsPerMs;
  ActivityNameTable names;
  ActivityWindow window(now_ns_);
  for (int i = 0; i < 120; ++i) {
    Step(kStep);
    window.Advance(now_ns_);
    window.AddStep(now_ns_);
    attach::KernelRecord kernel{};
    kernel.duration = kStep / 2;
    const ActivityFrame frame{attach::ActivityType::kKernel, 1, now_ns_ - kStep, std::as_bytes(std::span(&kernel, 1))};
    window.Take({&frame, 1}, 0);
    const RankFacts facts = history_.Facts(process_, {&window, &names}, now_ns_, kRules);
    if (i < 10) continue;
    ASSERT_TRUE(facts.now);
    EXPECT_NEAR(facts.now->step_ms(), 1020, 0.1) << i;
    // Of the step that is not in the seconds entirely 0.1 s are missing, of computation or of what is not.
    EXPECT_NEAR(facts.now->computation_ms, 510, 11) << i;
  }
}

// Three and a third of them are made in ten seconds; of one that takes longer than these nothing is known.
TEST_F(RankHistoryTest, SharesOfLongSteps) {
  const auto step_ms = [](int64_t step_ns) {
    RankHistory history;
    ActivityWindow window(kTestNow);
    int64_t now_ns = kTestNow;
    for (int64_t i = 0; i < 20; ++i) {
      now_ns += step_ns;
      const std::array<profd::Mark, 2> marks = {
          {{now_ns - step_ns, i, kThread, MarkKind::kStepBegin, {}}, {now_ns, i, kThread, MarkKind::kStepEnd, {}}}};
      history.TakeMarks(marks);
      for (int64_t s = now_ns - step_ns; s <= now_ns; s += kNsPerSecond) window.Advance(s);
      window.Advance(now_ns);
      window.AddStep(now_ns);
    }
    ActivityNameTable names;
    const RankFacts facts = history.Facts({}, {&window, &names}, now_ns, kRules);
    return facts.now ? facts.now->step_ms() : 0;
  };
  EXPECT_NEAR(step_ms(3 * kNsPerSecond), 3000, 1);
  EXPECT_EQ(step_ms(30 * kNsPerSecond), 0);
}

TEST(CounterRateTest, OverHalfAMinute) {
  CounterRate rate;
  EXPECT_FALSE(rate.PerSecond());
  rate.Add(0, 100);
  EXPECT_FALSE(rate.PerSecond());
  for (int64_t s = 10; s <= 60; s += 10) rate.Add(s * kNsPerSecond, 100);
  EXPECT_EQ(rate.PerSecond(), 0);
  rate.Add(70 * kNsPerSecond, 160);
  EXPECT_EQ(rate.PerSecond(), 2);  // 60 in the 30 s
  rate.Add(80 * kNsPerSecond, 0);  // began again
  EXPECT_FALSE(rate.PerSecond());
}

TEST(CounterRateTest, ManyValuesAndOneASeldomOne) {
  CounterRate rate;
  for (int64_t s = 0; s < 100; ++s) rate.Add(s * kNsPerSecond, static_cast<double>(5 * s));
  EXPECT_EQ(rate.PerSecond(), 5);
  CounterRate seldom;
  seldom.Add(0, 0);
  seldom.Add(60 * kNsPerSecond, 120);
  EXPECT_EQ(seldom.PerSecond(), 2);
}

// 30 retries a second on one HCCS link of device 2, 2 requests and 1 acknowledgement on a port of device 5; pause frames
// of two priorities.
TEST(HardwareWatchTest, RatesByLinkAndPriority) {
  MetricStore store;
  HardwareWatch watch;
  for (int64_t s = 10; s <= 50; s += 10) {
    const int64_t now_ns = s * kNsPerSecond;
    const auto put = [&](MetricId metric, int device, std::vector<std::string_view> labels, double value) {
      const Sample sample{store.Intern(metric, device, labels), now_ns, value};
      store.Write(std::span(&sample, 1));
    };
    const auto seconds = static_cast<double>(s);
    put(MetricByName("atlas_npu_hccs_retries_total"), 2, {"3"}, 30 * seconds);
    put(MetricByName("atlas_npu_hccs_retries_total"), 2, {"4"}, 7);
    put(MetricByName("atlas_npu_hccs_crc_errors_total"), 2, {"3"}, 5 * seconds);
    put(MetricByName("atlas_npu_ub_retries_total"), 5, {"1", "7", "request"}, 2 * seconds);
    put(MetricByName("atlas_npu_ub_retries_total"), 5, {"1", "7", "ack"}, seconds);
    put(MetricByName("atlas_npu_ub_crc_errors_total"), 5, {"1", "7"}, seconds);
    put(MetricByName("atlas_npu_network_pfc_frames_total"), 2, {"tx", "3"}, 60 * seconds);
    put(MetricByName("atlas_npu_network_pfc_frames_total"), 2, {"tx", "4"}, 70 * seconds);
    put(MetricByName("atlas_npu_network_pfc_frames_total"), 2, {"rx", "4"}, 20 * seconds);
    watch.Update(store, now_ns);
  }
  std::vector<std::tuple<int, std::string, double, double>> seen;
  for (const auto& [id, device] : watch.devices()) {
    for (const auto& [name, link] : device.links) seen.emplace_back(id, name, link.retries, link.crc_errors);
  }
  EXPECT_THAT(seen, ElementsAre(std::tuple(2, "HCCS link 3", 30, 5), std::tuple(2, "HCCS link 4", 0, 0),
                                std::tuple(5, "Unified Bus port 7 of die 1", 3, 1)));
  EXPECT_EQ(watch.devices().at(2).pfc_frames, 70) << "the limit is of one priority (analysis/rules/limits.cc)";
}

// Device 0 has both, device 1 only DDR.
TEST(HardwareWatchTest, MemoryIsTheHbmOrTheDdr) {
  MetricStore store;
  const auto put = [&store](MetricId metric, int device, double value) {
    const Sample sample{store.Intern(metric, device, {}), kTestNow, value};
    store.Write(std::span(&sample, 1));
  };
  put(MetricByName("atlas_npu_hbm_size_bytes"), 0, 32e9);
  put(MetricByName("atlas_npu_hbm_used_bytes"), 0, 16e9);
  for (int device : {0, 1}) {
    put(MetricByName("atlas_npu_ddr_size_bytes"), device, 8e9);
    put(MetricByName("atlas_npu_ddr_used_bytes"), device, 7e9);
  }
  HardwareWatch watch;
  watch.Update(store, kTestNow);
  EXPECT_EQ(watch.devices().at(0).memory_bytes, 32e9);
  EXPECT_EQ(watch.devices().at(0).memory_used_bytes, 16e9);
  EXPECT_EQ(watch.devices().at(1).memory_bytes, 8e9);
  EXPECT_EQ(watch.devices().at(1).memory_used_bytes, 7e9);
}

}  // namespace
}  // namespace profd
