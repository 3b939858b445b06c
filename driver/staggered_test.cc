#include "driver/staggered.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <future>
#include <memory>
#include <thread>

#include "driver/testing/no_threads.h"

namespace profd {
namespace {

using std::chrono::milliseconds;
using ::testing::ElementsAre;

constexpr StaggerPace kSoon{milliseconds(20), milliseconds(100), milliseconds(20)};
constexpr StaggerPace kNever{std::chrono::hours(1), std::chrono::hours(1), std::chrono::hours(1)};

TEST(Staggered, JobsThatReturnRunOneAtATime) {
  int running = 0;
  std::vector<int> order;
  std::vector<std::function<void()>> jobs;
  for (int i = 0; i < 5; ++i) {
    jobs.push_back([&, i] {
      EXPECT_EQ(running++, 0);
      order.push_back(i);
      --running;
    });
  }
  EXPECT_THAT(RunStaggered("test", std::move(jobs), kNever),
              ElementsAre(StaggeredEnd::kReturned, StaggeredEnd::kReturned, StaggeredEnd::kReturned, StaggeredEnd::kReturned,
                          StaggeredEnd::kReturned));
  EXPECT_THAT(order, ElementsAre(0, 1, 2, 3, 4));
}

TEST(Staggered, OneThatHangsIsLeftBehind) {
  std::promise<void> back;
  std::promise<void> second_ran;
  auto used = std::make_shared<int>(0);
  const std::weak_ptr<int> watch = used;
  std::vector<std::function<void()>> jobs;
  jobs.push_back([used, gate = back.get_future().share()] { gate.wait(); });
  jobs.push_back([&second_ran] { second_ran.set_value(); });
  used.reset();
  const std::vector<StaggeredEnd> ends = RunStaggered("test", std::move(jobs), kSoon);
  EXPECT_EQ(ends[0], StaggeredEnd::kLeftBehind);
  second_ran.get_future().wait();  // on a loaded machine after the notification
  back.set_value();
  while (!watch.expired()) std::this_thread::yield();
}

TEST(Staggered, OneWithoutAThreadDoesNotBegin) {
  bool ran = false;
  std::vector<std::function<void()>> jobs;
  jobs.push_back([&ran] { ran = true; });
  const testing::NoThreads none;
  EXPECT_THAT(RunStaggered("test", std::move(jobs), kNever), ElementsAre(StaggeredEnd::kNoThread));
  EXPECT_FALSE(ran);
}

TEST(Staggered, NothingToDo) { EXPECT_TRUE(RunStaggered("test", {}, kNever).empty()); }

}  // namespace
}  // namespace profd
