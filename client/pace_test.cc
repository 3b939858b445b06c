#include "client/pace.h"

#include <gtest/gtest.h>

namespace profd::client {
namespace {

TEST(PaceTest, NeverMoreThanTheTimeAllows) {
  ManualClock clock;
  Pace pace(clock, [&clock](int64_t ms) {
    clock.steady_ns += ms * kNsPerMs;
    return true;
  });
  const int64_t begin_ns = clock.SteadyNs();
  EXPECT_TRUE(pace.Take(1u << 30)) << "without a limit nothing is waited for";
  EXPECT_EQ(clock.SteadyNs(), begin_ns);
  pace.SetLimit(1000);
  uint64_t moved = 0;
  for (uint64_t bytes : {1u, 5000u, 300u, 0u, 4096u}) {
    EXPECT_TRUE(pace.Take(bytes));
    moved += bytes;
    EXPECT_LE(moved * kNsPerSecond / 1000, static_cast<uint64_t>(clock.SteadyNs() - begin_ns));
  }
  // A pause is not made up for.
  clock.steady_ns += 3600 * kNsPerSecond;
  const int64_t after_ns = clock.SteadyNs();
  EXPECT_TRUE(pace.Take(2000));
  EXPECT_GE(clock.SteadyNs() - after_ns, 2 * kNsPerSecond);
}

TEST(PaceTest, EndsWhenItIsGivenUp) {
  ManualClock clock;
  Pace pace(clock, [](int64_t) { return false; });
  pace.SetLimit(1);
  EXPECT_FALSE(pace.Take(100));
}

}  // namespace
}  // namespace profd::client
