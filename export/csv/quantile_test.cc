#include "export/csv/quantile.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <vector>

namespace profd::exporting::csv {
namespace {

std::vector<double> Values(size_t count) {
  std::vector<double> values;
  uint64_t state = 7;
  for (size_t i = 0; i < count; ++i) {
    state = state * 6364136223846793005 + 1442695040888963407;
    values.push_back(static_cast<double>(state >> 40) / 1024 + 1e-9);
  }
  return values;
}

TEST(ExactQuantile, IsThatOfASortedList) {
  auto spool = Spool::Create(::testing::TempDir());
  ASSERT_TRUE(spool.ok());
  for (size_t in_memory : {size_t{16}, size_t{100000}}) {
    std::vector<double> values = Values(1000);
    values[10] = values[20];  // equal ones
    ExactQuantile quantile(**spool, in_memory);
    for (double value : values) quantile.Add(value);
    std::ranges::sort(values);
    ASSERT_EQ(quantile.size(), 1000u);
    for (uint64_t k : {0u, 1u, 499u, 979u, 980u, 999u}) {
      EXPECT_EQ(quantile.Smallest(k).value_or(-1), values[k]) << k;
    }
    EXPECT_FALSE(quantile.Smallest(1000).ok());
  }
}

TEST(ExactQuantile, OnlyPositiveValuesCount) {
  auto spool = Spool::Create(::testing::TempDir());
  ASSERT_TRUE(spool.ok());
  ExactQuantile quantile(**spool);
  for (double value : {0.0, -1.0, 2.5}) quantile.Add(value);
  EXPECT_EQ(quantile.size(), 1u);
  EXPECT_EQ(quantile.Smallest(0).value_or(-1), 2.5);
}

TEST(ExactQuantile, TwoBecomeOne) {
  auto spool = Spool::Create(::testing::TempDir());
  ASSERT_TRUE(spool.ok());
  ExactQuantile first(**spool, 4);
  ExactQuantile second(**spool, 4);
  for (int i = 1; i <= 10; ++i) first.Add(i);
  for (int i = 11; i <= 21; ++i) second.Add(i);
  first.Merge(second);
  EXPECT_EQ(first.size(), 21u);
  EXPECT_EQ(first.Smallest(0).value_or(-1), 1);
  EXPECT_EQ(first.Smallest(15).value_or(-1), 16);
  EXPECT_EQ(first.Smallest(20).value_or(-1), 21);
}

}  // namespace
}  // namespace profd::exporting::csv
