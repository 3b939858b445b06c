#include "export/large.h"

#include <gtest/gtest.h>

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

TEST(Large, LeavesNoFiles) {
  TempDir dir;
  const SpillScope scope(dir.path());
  const Large<uint64_t> values(kMany, 1);
  EXPECT_EQ(Sum(values), kMany);
  EXPECT_TRUE(std::filesystem::is_empty(std::string(dir.path())));
}

TEST(Large, IsMemoryWhereThereIsNoPlaceForFiles) {
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
