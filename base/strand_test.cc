#include "base/strand.h"

#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <future>
#include <memory>
#include <vector>

namespace profd {
namespace {

constexpr std::chrono::seconds kPatience{20};

TEST(Strand, RunsTasksInOrderAndOneAtATime) {
  Executor executor("test", 4);
  Strand strand(executor);
  std::vector<int> seen;  // no lock: only the strand touches it
  std::promise<void> done;
  for (int i = 0; i < 1000; ++i) {
    strand.Post([&, i] {
      EXPECT_TRUE(strand.RunsHere());
      seen.push_back(i);
      if (i == 999) done.set_value();
    });
  }
  ASSERT_EQ(done.get_future().wait_for(kPatience), std::future_status::ready);
  for (int i = 0; i < 1000; ++i) ASSERT_EQ(seen[static_cast<size_t>(i)], i);
  EXPECT_FALSE(strand.RunsHere());
}

TEST(Timer, FiresOnItsStrandAndCancelledOnesDoNot) {
  Executor executor("test", 2);
  Strand strand(executor);
  std::promise<void> fired;
  std::atomic<bool> wrong = false;
  auto timer = std::make_shared<std::unique_ptr<Timer>>();
  auto cancelled = std::make_shared<std::unique_ptr<Timer>>();
  strand.Post([&, timer, cancelled] {
    *cancelled = std::make_unique<Timer>(strand);
    (*cancelled)->After(1'000'000, [&wrong] { wrong = true; });
    (*cancelled)->Cancel();
    *timer = std::make_unique<Timer>(strand);
    (*timer)->After(5'000'000, [&fired, &strand] {
      EXPECT_TRUE(strand.RunsHere());
      fired.set_value();
    });
  });
  ASSERT_EQ(fired.get_future().wait_for(kPatience), std::future_status::ready);
  EXPECT_FALSE(wrong);
  std::promise<void> gone;
  strand.Post([&, timer, cancelled] {
    timer->reset();
    cancelled->reset();
    gone.set_value();
  });
  gone.get_future().wait();
}

}  // namespace
}  // namespace profd
