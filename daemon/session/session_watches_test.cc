#include "daemon/session/session_watches.h"

#include <gtest/gtest.h>

#include "base/manual_executor.h"

namespace profd {
namespace {

TEST(SessionWatches, EachHearsOfItsOwnSessionUntilItGoes) {
  ManualClock clock;
  ManualExecutor time(clock);
  Strand control(time.executor());
  SessionWatches watches(control);
  int first = 0, second = 0, other = 0;
  const uint64_t watch = watches.Add("a", [&] { ++first; });
  watches.Add("a", [&] { ++second; });
  watches.Add("b", [&] { ++other; });
  watches.Notify("a");
  watches.Remove(watch);
  watches.Notify("a");
  watches.Notify("c");
  EXPECT_EQ(first, 1);
  EXPECT_EQ(second, 2);
  EXPECT_EQ(other, 0);
}

TEST(SessionWatches, OneMayGoWhenItIsCalled) {
  ManualClock clock;
  ManualExecutor time(clock);
  Strand control(time.executor());
  SessionWatches watches(control);
  int calls = 0;
  uint64_t watch = 0;
  watch = watches.Add("a", [&] {
    ++calls;
    watches.Remove(watch);
  });
  watches.Add("a", [&] { ++calls; });
  watches.Notify("a");
  EXPECT_EQ(calls, 2);
  watches.Notify("a");
  EXPECT_EQ(calls, 3);
}

}  // namespace
}  // namespace profd
