#include "daemon/jobs/step_clock.h"

#include <gtest/gtest.h>

namespace profd {
namespace {

constexpr int64_t kMs = 1'000'000;

TEST(StepClock, TakesTheMedianOfTheLastSteps) {
  StepClock clock;
  EXPECT_EQ(clock.step(), std::nullopt);
  EXPECT_EQ(clock.MedianSeconds(), 0);
  int64_t now = 0;
  for (int step = 0; step < 40; ++step) {
    int64_t duration = (step < 24 ? 500 : step == 30 ? 9000 : 100) * kMs;
    clock.Begin(step, now);
    clock.End(step, now + duration);
    now += duration + 50 * kMs;
  }
  EXPECT_EQ(clock.step(), 39);
  EXPECT_DOUBLE_EQ(clock.MedianSeconds(), 0.1);
}

TEST(StepClock, AStepWithoutAnEndLastsUntilTheNext) {
  StepClock clock;
  clock.Begin(1, 0);
  clock.Begin(2, 200 * kMs);
  EXPECT_DOUBLE_EQ(clock.MedianSeconds(), 0.2);
  clock.Begin(10, 900 * kMs);  // steps in between were not reported
  EXPECT_DOUBLE_EQ(clock.MedianSeconds(), 0.2);
}

TEST(StepClock, IgnoresWhatDoesNotFit) {
  StepClock clock;
  clock.End(1, 5);
  clock.Begin(2, 100);
  clock.End(1, 200);
  clock.End(2, 50);  // before it began
  EXPECT_EQ(clock.MedianSeconds(), 0);
  clock.Begin(INT64_MAX, 300);
  clock.Begin(INT64_MIN, 400);
  EXPECT_EQ(clock.step(), INT64_MIN);
}

}  // namespace
}  // namespace profd
