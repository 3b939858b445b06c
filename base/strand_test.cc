#include "base/strand.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <atomic>
#include <chrono>
#include <future>
#include <memory>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "base/fd.h"
#include "base/manual_executor.h"

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

#ifndef NDEBUG
TEST(StrandDeathTest, TasksOfAStrandRunOnItOnly) {
  GTEST_FLAG_SET(death_test_style, "threadsafe");
  Executor executor("test", 1);
  Strand strand(executor);
  Strand other(executor);
  EXPECT_DEATH(DCHECK_ON(strand), "strand_test.cc:[0-9]+: not on the strand strand");
  Timer timer(strand);
  EXPECT_DEATH(timer.After(0, [] {}), "not on the strand");
  std::promise<void> done;
  strand.Post([&] {
    DCHECK_ON(strand);
    EXPECT_FALSE(other.RunsHere()) << "the same thread, another strand";
    done.set_value();
  });
  ASSERT_EQ(done.get_future().wait_for(kPatience), std::future_status::ready);
  // Nothing runs on it any more: what is left is this thread's to take apart.
  executor.Stop();
  DCHECK_ON(strand);
}
#endif

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

TEST(ManualExecutor, RunsWhatIsPostedOnTheTestsOwnThread) {
  ManualClock clock;
  ManualExecutor manual(clock);
  Strand strand(manual.executor());
  DCHECK_ON(strand);
  std::vector<int> seen;
  strand.Post([&] {
    seen.push_back(1);
    strand.Post([&] { seen.push_back(2); });
  });
  EXPECT_TRUE(seen.empty());
  manual.RunReady();
  EXPECT_EQ(seen, (std::vector<int>{1, 2}));
  std::atomic<bool> came = false;
  std::thread other([&] {
    EXPECT_FALSE(strand.RunsHere());
    strand.Post([&] { came = true; });
  });
  EXPECT_TRUE(manual.RunUntil([&] { return came.load(); }));
  other.join();
}

TEST(ManualExecutor, TimersRunInOrderAtTheirInstants) {
  ManualClock clock;
  const int64_t start = clock.SteadyNs();
  ManualExecutor manual(clock);
  Strand strand(manual.executor());
  std::vector<std::pair<std::string, int64_t>> seen;
  auto note = [&](const std::string& name) {
    return [&seen, &clock, start, name] { seen.emplace_back(name, clock.SteadyNs() - start); };
  };
  Timer late(strand);
  Timer early(strand);
  Timer cancelled(strand);
  Timer moved(strand);
  auto gone = std::make_unique<Timer>(strand);
  late.After(3 * kNsPerSecond, note("late"));
  early.At(start + kNsPerSecond, [&] {
    note("early")();
    early.After(kNsPerSecond, note("again"));
  });
  cancelled.After(kNsPerSecond, note("cancelled"));
  cancelled.Cancel();
  moved.After(kNsPerSecond, note("replaced"));
  moved.After(10 * kNsPerSecond, note("moved"));
  gone->After(kNsPerSecond, note("gone"));
  gone.reset();
  EXPECT_EQ(manual.timers(), 3u);
  manual.Advance(kNsPerSecond - 1);
  EXPECT_TRUE(seen.empty());
  manual.Advance(4 * kNsPerSecond);
  EXPECT_EQ(seen, (std::vector<std::pair<std::string, int64_t>>{{"early", kNsPerSecond},
                                                                {"again", 2 * kNsPerSecond},
                                                                {"late", 3 * kNsPerSecond}}));
  EXPECT_EQ(clock.SteadyNs() - start, 5 * kNsPerSecond - 1);
  EXPECT_EQ(manual.timers(), 1u);
  manual.Advance(3600 * kNsPerSecond);
  EXPECT_EQ(seen.back(), (std::pair<std::string, int64_t>{"moved", 10 * kNsPerSecond}));
  // What is due already runs at once.
  late.At(start, note("due"));
  manual.RunReady();
  EXPECT_EQ(seen.back().first, "due");
  EXPECT_EQ(manual.timers(), 0u);
}

// A pipe becomes readable, is read, and becomes readable again; nothing comes after the watch is gone.
TEST(FdWatch, EachWaitIsAnsweredOnceUntilItsEnd) {
  int ends[2];
  ASSERT_EQ(::pipe(ends), 0);
  UniqueFd reader(ends[0]);
  UniqueFd writer(ends[1]);
  Executor executor("test", 1);
  Strand strand(executor);
  std::unique_ptr<FdWatch> watch;
  std::promise<std::string> came;
  strand.Post([&] {
    watch = std::make_unique<FdWatch>(strand, reader.get());
    watch->WhenReadable([&] {
      EXPECT_TRUE(strand.RunsHere());
      char first = 0;
      EXPECT_EQ(::read(reader.get(), &first, 1), 1);
      // The second byte is there already.
      watch->WhenReadable([&, first] {
        char second = 0;
        EXPECT_EQ(::read(reader.get(), &second, 1), 1);
        came.set_value({first, second});
      });
    });
  });
  ASSERT_EQ(::write(writer.get(), "ab", 2), 2);
  EXPECT_EQ(came.get_future().get(), "ab");
  std::promise<void> gone;
  strand.Post([&] {
    watch->WhenReadable([] { ADD_FAILURE() << "after its end"; });
    watch.reset();
    EXPECT_EQ(::write(writer.get(), "c", 1), 1);
    strand.Post([&] { gone.set_value(); });
  });
  gone.get_future().get();
  // The descriptor is still ours.
  char third = 0;
  EXPECT_EQ(::read(reader.get(), &third, 1), 1);
  EXPECT_EQ(third, 'c');
}

TEST(FdWatch, ReportsEndAsReadableAndSpaceAsWritable) {
  int ends[2];
  ASSERT_EQ(::pipe(ends), 0);
  UniqueFd reader(ends[0]);
  UniqueFd writer(ends[1]);
  Executor executor("test", 1);
  Strand strand(executor);
  std::unique_ptr<FdWatch> from;
  std::unique_ptr<FdWatch> to;
  std::promise<void> writable;
  std::promise<void> ended;
  strand.Post([&] {
    from = std::make_unique<FdWatch>(strand, reader.get());
    to = std::make_unique<FdWatch>(strand, writer.get());
    from->WhenReadable([&] { ended.set_value(); });
    to->WhenWritable([&] {
      to.reset();
      writer.Reset();
      writable.set_value();
    });
  });
  writable.get_future().get();
  ended.get_future().get();
  executor.Stop();
}

TEST(FdWatch, ReportsDescriptorsThatCannotBeWatched) {
  Executor executor("test", 1);
  Strand strand(executor);
  std::promise<bool> ok;
  strand.Post([&] { ok.set_value(FdWatch(strand, -1).ok()); });
  EXPECT_FALSE(ok.get_future().get());
}

}  // namespace
}  // namespace profd
