#include "base/log_limit.h"

#include <gtest/gtest.h>

namespace profd {
namespace {

TEST(LogLimit, AFewLinesAMinuteOfEachAndTheRestIsCounted) {
  LogLimit limit;
  uint64_t left_out = 99;
  const int64_t start = 5 * kNsPerSecond;
  for (uint64_t i = 0; i < LogLimit::kLinesPerMinute; ++i) {
    EXPECT_TRUE(limit.Allow(1000, start, &left_out));
    EXPECT_EQ(left_out, 0u);
  }
  for (int i = 0; i < 500; ++i) EXPECT_FALSE(limit.Allow(1000, start + kNsPerSecond, &left_out));
  EXPECT_TRUE(limit.Allow(1001, start, &left_out));
  EXPECT_EQ(left_out, 0u);
  EXPECT_TRUE(limit.Allow(1000, start + 60 * kNsPerSecond, &left_out));
  EXPECT_EQ(left_out, 500u);
}

TEST(LogLimit, ManyUsersTakeNoMoreMemory) {
  LogLimit limit;
  uint64_t left_out = 0;
  for (uint64_t uid = 0; uid < LogLimit::kMaxKeys; ++uid) EXPECT_TRUE(limit.Allow(uid, 1, &left_out));
  EXPECT_FALSE(limit.Allow(LogLimit::kMaxKeys, 1, &left_out));
  EXPECT_TRUE(limit.Allow(LogLimit::kMaxKeys, 61 * kNsPerSecond, &left_out));
}

}  // namespace
}  // namespace profd
