#include "analysis/cluster/statistics.h"

#include <gtest/gtest.h>

namespace profd::analysis {
namespace {

// Values 0 ... n-1 of a straight line in the range up to 1, the first of them moved down until the ratio is `ratio`.
std::vector<double> WithRatio(size_t n, size_t inner, size_t outer, double ratio) {
  std::vector<double> values(n);
  for (size_t i = 0; i < n; ++i) values[i] = static_cast<double>(i) / static_cast<double>(n);
  const double high = values[n - outer];
  // (inner - x) / (high - x) = ratio
  values[0] = (values[inner] - ratio * high) / (1 - ratio);
  return values;
}

struct Dixon {
  size_t n;
  size_t inner;
  size_t outer;
  double critical;
};

// One of each ratio at its ends, and values of Dixon's table.
class DixonTest : public testing::TestWithParam<Dixon> {};

TEST_P(DixonTest, DecidesAtTheCriticalValue) {
  const Dixon& at = GetParam();
  EXPECT_FALSE(LowOutlier(WithRatio(at.n, at.inner, at.outer, at.critical - 0.002)));
  EXPECT_EQ(LowOutlier(WithRatio(at.n, at.inner, at.outer, at.critical + 0.002)), 0u);
}

INSTANTIATE_TEST_SUITE_P(Statistics, DixonTest,
                         testing::Values(Dixon{4, 1, 1, 0.920}, Dixon{7, 1, 1, 0.680}, Dixon{8, 1, 2, 0.723}, Dixon{10, 1, 2, 0.638},
                                         Dixon{11, 2, 2, 0.707}, Dixon{13, 2, 2, 0.649}, Dixon{14, 2, 3, 0.672}, Dixon{30, 2, 3, 0.484},
                                         Dixon{100, 2, 3, 0.341}));

TEST(StatisticsTest, FewValuesHaveNoOutlier) {
  EXPECT_FALSE(LowOutlier({}));
  EXPECT_FALSE(LowOutlier(std::vector<double>{1, 100}));
  EXPECT_FALSE(LowOutlier(std::vector<double>{1, 100, 100.1}));
  EXPECT_FALSE(LowOutlier(std::vector<double>{1, 100, 100, 100.1, 100.1, 100.1}));
  EXPECT_EQ(LowOutlier(std::vector<double>{100.2, 100, 100.1, 1}), 3u);
  EXPECT_EQ(HighOutlier(std::vector<double>{100.2, 100, 100.1, 200}), 3u);
  EXPECT_FALSE(HighOutlier(std::vector<double>{100.2, 100, 100.1, 1}));
}

TEST(StatisticsTest, ThreeDeviationsDecideForMany) {
  // 100 values of 0 and of 2 by turns, and one below.
  const auto values = [](double low) {
    std::vector<double> all(100);
    for (size_t i = 0; i < all.size(); ++i) all[i] = i % 2 == 0 ? 0 : 2;
    all.push_back(low);
    return all;
  };
  // -2.1 is 2.948 deviations below the mean, -2.2 is 3.034.
  EXPECT_FALSE(LowOutlier(values(-2.1)));
  EXPECT_EQ(LowOutlier(values(-2.2)), 100u);
}

TEST(StatisticsTest, SpreadIsOfAllValues) {
  const Spread spread = SpreadOf(std::vector<double>{2, 4, 4, 4, 5, 5, 7, 9});
  EXPECT_DOUBLE_EQ(spread.mean, 5);
  EXPECT_DOUBLE_EQ(spread.deviation, 2);
  EXPECT_DOUBLE_EQ(spread.ScoreOf(9), 2);
  EXPECT_EQ(SpreadOf(std::vector<double>{0.1, 0.1, 0.1}).ScoreOf(0.1), 0);
  EXPECT_EQ(SpreadOf({}).ScoreOf(1), 0);
}

}  // namespace
}  // namespace profd::analysis
