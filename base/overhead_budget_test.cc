#include "base/overhead_budget.h"

#include <gtest/gtest.h>

namespace profd {
namespace {

class OverheadBudgetTest : public ::testing::Test {
 protected:
  OverheadBudgetTest() {
    budget_.SetLimit(0.10, 3);
    budget_.Update(now_ns_, cost_ns_);
  }
  // So many windows at this share of a core, in rounds of a second; how often the step changed.
  int Spend(double share, int windows = 1) {
    int changes = 0;
    for (int second = 0; second < windows * 10; ++second) {
      now_ns_ += 1'000'000'000;
      cost_ns_ += static_cast<int64_t>(share * 1e9);
      changes += budget_.Update(now_ns_, cost_ns_) ? 1 : 0;
    }
    return changes;
  }

  OverheadBudget budget_;
  int64_t now_ns_ = 1'000'000'000;
  int64_t cost_ns_ = 77;
};

TEST_F(OverheadBudgetTest, NothingIsLeftOutWithinTheShare) {
  EXPECT_EQ(Spend(0.099, 100), 0);
  EXPECT_EQ(budget_.step(), 0);
  EXPECT_NEAR(budget_.share(), 0.099, 1e-9);
}

TEST_F(OverheadBudgetTest, AStepAWindowUntilTheLast) {
  EXPECT_EQ(Spend(0.101), 1);
  EXPECT_EQ(budget_.step(), 1);
  EXPECT_EQ(Spend(0.5, 5), 2);
  EXPECT_EQ(budget_.step(), 3);
}

// Between half of the share and the share nothing changes.
TEST_F(OverheadBudgetTest, ResumesWhenTheCostWouldFit) {
  Spend(0.2, 2);
  EXPECT_EQ(Spend(0.051, 50), 0);
  EXPECT_EQ(Spend(0.049, OverheadBudget::kFirstRest - 1), 0);
  EXPECT_EQ(Spend(0.049), 1);
  EXPECT_EQ(budget_.step(), 1);
  EXPECT_EQ(Spend(0.049, OverheadBudget::kFirstRest), 1);
  EXPECT_EQ(budget_.step(), 0);
}

TEST_F(OverheadBudgetTest, WaitsLongerAfterResumingTooEarly) {
  Spend(0.2);
  for (int rest = OverheadBudget::kFirstRest; rest < 1000; rest = std::min(2 * rest, 1000)) {
    const int waits = std::min(rest, OverheadBudget::kLongestRest);
    EXPECT_EQ(Spend(0.01, waits - 1), 0);
    EXPECT_EQ(Spend(0.01), 1);
    EXPECT_EQ(budget_.step(), 0);
    EXPECT_EQ(Spend(0.2), 1);
  }
}

TEST_F(OverheadBudgetTest, WithoutALimitNothingIsLeftOut) {
  Spend(0.2);
  budget_.SetLimit(0, 3);
  EXPECT_EQ(budget_.step(), 0);
  EXPECT_EQ(Spend(5, 3), 0);
  // Fewer steps than have been taken.
  budget_.SetLimit(0.1, 3);
  Spend(0.2, 3);
  budget_.SetLimit(0.1, 1);
  EXPECT_EQ(budget_.step(), 1);
}

}  // namespace
}  // namespace profd
