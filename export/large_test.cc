#include "export/large.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <numeric>

#include "dump/test_support.h"

namespace profd::exporting {
namespace {

constexpr size_t kMany = 3'000'000;  // 24 MB

uint64_t Sum(const Large<uint64_t>& values) { return std::accumulate(values.begin(), values.end(), uint64_t{0}); }

TEST(Large, TrimmingLosesNothing) {
  TempDir dir;
  Large<uint64_t> values;
  {
    const SpillScope scope(dir.path());
    for (uint64_t i = 0; i < kMany; ++i) {
      values.push_back(i);
      if (i % 500'000 == 0) scope.Trim();
    }
    scope.Trim();
    EXPECT_EQ(Sum(values), uint64_t{kMany} * (kMany - 1) / 2);
    Large<uint64_t> moved = std::move(values);
    values = moved;
    scope.Trim();
  }
  // It outlives the scope.
  EXPECT_EQ(Sum(values), uint64_t{kMany} * (kMany - 1) / 2);
}

// In other sizes than they were freed in, and beside what is still in use.
TEST(Large, FreedMemoryIsUsedAgain) {
  TempDir dir;
  const SpillScope scope(dir.path());
  std::vector<Large<uint64_t>> kept;
  for (uint64_t round = 1; round <= 20; ++round) {
    Large<uint64_t> freed(kMany + round * 1000, round);
    kept.emplace_back(kMany / 3, 100 + round);
    EXPECT_EQ(Sum(freed), (kMany + round * 1000) * round);
    Release(&freed);
    kept.emplace_back(kMany * 2 / 3 + round, 200 + round);
    if (round % 4 == 0) scope.Trim();
    if (round % 3 == 0) kept.erase(kept.begin(), kept.begin() + 3);
  }
  for (const auto& values : kept) {
    EXPECT_EQ(Sum(values), values.size() * values.front());
    EXPECT_TRUE(std::ranges::all_of(values, [&values](uint64_t value) { return value == values.front(); }));
  }
}

TEST(Large, FreedAfterTheScope) {
  TempDir dir;
  Large<uint64_t> values;
  {
    const SpillScope scope(dir.path());
    Large<uint64_t> freed(kMany, 1);
    Release(&freed);
    values.assign(kMany * 2, 3);
    freed.assign(kMany / 2, 4);
  }
  EXPECT_EQ(Sum(values), kMany * 2 * 3);
  Release(&values);
}

TEST(Large, LeavesNoFiles) {
  TempDir dir;
  const SpillScope scope(dir.path());
  const Large<uint64_t> values(kMany, 1);
  EXPECT_EQ(Sum(values), kMany);
  EXPECT_TRUE(std::filesystem::is_empty(std::string(dir.path())));
}

TEST(Large, UsesMemoryWithoutAPlaceForFiles) {
  const SpillScope scope("/nonexistent/folder");
  const Large<uint64_t> values(kMany, 1);
  EXPECT_EQ(Sum(values), kMany);
}

TEST(Large, OnlyTheFirstScopeTakesEffect) {
  TempDir dir;
  const SpillScope first(dir.path());
  { const SpillScope second("/nonexistent/folder"); }
  const Large<uint64_t> values(kMany, 2);
  EXPECT_EQ(Sum(values), 2 * kMany);
}

}  // namespace
}  // namespace profd::exporting
