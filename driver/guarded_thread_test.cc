#include "driver/guarded_thread.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>
#include <condition_variable>
#include <future>
#include <memory>
#include <mutex>
#include <optional>
#include <thread>

namespace profd {
namespace {

using ::testing::HasSubstr;

// A gate that a job waits at, and answers that the test waits for.
class GuardedThreadTest : public ::testing::Test {
 protected:
  GuardedJob Job(std::string what, std::function<void()> run, int64_t deadline_ns) {
    return {std::move(what), std::move(run), deadline_ns,
            [this](const Status& status) {
              std::lock_guard lock(state_->mutex);
              answers_.push_back(status);
              state_->changed.notify_all();
            },
            nullptr};
  }
  Status Submit(GuardedThread& thread, std::string what, std::function<void()> run = [] {}, int64_t seconds = 60) {
    return thread.Submit(Job(std::move(what), std::move(run), In(seconds)));
  }
  // Shared with jobs that are left behind.
  struct State {
    std::mutex mutex;
    std::condition_variable changed;
    bool open = false;
    int waiting = 0;
    int late = 0;
  };
  std::function<void()> AtTheGate() {
    return [state = state_] {
      std::unique_lock lock(state->mutex);
      ++state->waiting;
      state->changed.notify_all();
      state->changed.wait(lock, [&] { return state->open; });
      --state->waiting;
      state->changed.notify_all();
    };
  }
  void Open() {
    std::lock_guard lock(state_->mutex);
    state_->open = true;
    state_->changed.notify_all();
  }
  void Until(const std::function<bool()>& reached) {
    std::unique_lock lock(state_->mutex);
    state_->changed.wait(lock, reached);
  }
  void UntilAnswers(size_t count) {
    Until([&] { return answers_.size() >= count; });
  }
  void UntilWaiting() {
    Until([&] { return state_->waiting > 0; });
  }
  std::vector<Status> answers() {
    std::lock_guard lock(state_->mutex);
    return answers_;
  }
  int64_t In(int64_t seconds) const { return clock_.SteadyNs() + seconds * kNsPerSecond; }

  SystemClock clock_;
  std::shared_ptr<State> state_ = std::make_shared<State>();
  std::vector<Status> answers_;
};

TEST_F(GuardedThreadTest, RunsJobsInOrderAndAnswersOnce) {
  std::vector<int> order;
  {
    GuardedThread thread("test", clock_);
    for (int i = 0; i < 10; ++i) {
      ASSERT_TRUE(Submit(thread, "job", [&order, i] { order.push_back(i); }).ok());
    }
    UntilAnswers(10);
  }
  EXPECT_EQ(order, (std::vector<int>{0, 1, 2, 3, 4, 5, 6, 7, 8, 9}));
  for (const Status& status : answers()) EXPECT_TRUE(status.ok());
  EXPECT_EQ(answers().size(), 10u);
}

TEST_F(GuardedThreadTest, AnOverdueJobIsAnsweredAndTheThreadRecovers) {
  GuardedThread thread("test", clock_);
  const int64_t before = clock_.SteadyNs();
  GuardedJob stuck = Job("reading of device 3", AtTheGate(), In(5));
  stuck.late = [state = state_] {
    std::lock_guard lock(state->mutex);
    ++state->late;
    state->changed.notify_all();
  };
  ASSERT_TRUE(thread.Submit(std::move(stuck)).ok());
  ASSERT_TRUE(Submit(thread, "behind it").ok());
  UntilWaiting();
  thread.CheckDeadlines(before);
  EXPECT_TRUE(answers().empty());
  EXPECT_TRUE(thread.Health().ok());

  thread.CheckDeadlines(In(10));
  ASSERT_EQ(answers().size(), 2u);
  EXPECT_EQ(answers()[0].code(), StatusCode::kDeadlineExceeded);
  EXPECT_EQ(answers()[1].code(), StatusCode::kUnavailable);
  EXPECT_THAT(thread.Health().message(), HasSubstr("reading of device 3 has not returned"));
  EXPECT_EQ(Submit(thread, "later").code(), StatusCode::kUnavailable);
  EXPECT_EQ(answers().size(), 3u);
  thread.CheckDeadlines(In(20));
  EXPECT_EQ(answers().size(), 3u);

  Open();
  Until([&] { return state_->late == 1; });
  while (!thread.Health().ok()) std::this_thread::yield();
  EXPECT_TRUE(Submit(thread, "again").ok());
  UntilAnswers(4);
  EXPECT_TRUE(answers()[3].ok());
}

TEST_F(GuardedThreadTest, AJobNotReachedInTimeNeverRuns) {
  GuardedThread thread("test", clock_);
  std::atomic<bool> ran{false};
  ASSERT_TRUE(Submit(thread, "slow", AtTheGate(), 1000).ok());
  UntilWaiting();
  ASSERT_TRUE(Submit(thread, "impatient", [&] { ran = true; }, 1).ok());
  thread.CheckDeadlines(In(10));
  ASSERT_EQ(answers().size(), 1u);
  EXPECT_EQ(answers()[0].code(), StatusCode::kDeadlineExceeded);
  EXPECT_TRUE(thread.Health().ok());
  Open();
  UntilAnswers(2);
  EXPECT_TRUE(answers()[1].ok());
  EXPECT_FALSE(ran);
}

// What waits behind many calls that are all in time is in time itself.
TEST_F(GuardedThreadTest, TheLimitOfACallDoesNotCountItsTimeInTheQueue) {
  GuardedThread thread("test", clock_);
  ASSERT_TRUE(Submit(thread, "slow", AtTheGate(), 1000).ok());
  UntilWaiting();
  // The call may outlast the test.
  const auto begun = std::make_shared<std::promise<void>>();
  std::promise<void> go;
  GuardedJob quick = Job("behind it", [begun, end = go.get_future().share()] { begun->set_value(); end.wait(); }, In(60));
  quick.run_limit_ns = 20 * kNsPerSecond;
  ASSERT_TRUE(thread.Submit(std::move(quick)).ok());
  thread.CheckDeadlines(In(40));
  EXPECT_TRUE(answers().empty());
  Open();
  begun->get_future().wait();
  UntilAnswers(1);
  thread.CheckDeadlines(In(10));
  EXPECT_EQ(answers().size(), 1u);
  thread.CheckDeadlines(In(30));  // before the deadline in the queue, but it is not in there
  ASSERT_EQ(answers().size(), 2u);
  EXPECT_THAT(answers()[1].message(), HasSubstr("behind it has not returned"));
  go.set_value();
}

TEST_F(GuardedThreadTest, ACallThatCameTooLateIsStuckUntilItIsUndone) {
  GuardedThread thread("test", clock_);
  const auto undoing = std::make_shared<std::promise<void>>();
  std::promise<void> go;
  GuardedJob stuck = Job("starting", AtTheGate(), In(5));
  stuck.key = 7;
  stuck.late = [undoing, end = go.get_future().share()] { undoing->set_value(); end.wait(); };
  ASSERT_TRUE(thread.Submit(std::move(stuck)).ok());
  UntilWaiting();
  thread.CheckDeadlines(In(10));
  Open();
  undoing->get_future().wait();
  EXPECT_EQ(thread.StuckKey(), 7);
  go.set_value();
  while (!thread.Health().ok()) std::this_thread::yield();
}

TEST_F(GuardedThreadTest, TheQueueIsBounded) {
  GuardedThread thread("test", clock_, {.queue = 2});
  ASSERT_TRUE(Submit(thread, "slow", AtTheGate()).ok());
  UntilWaiting();
  EXPECT_TRUE(Submit(thread, "a").ok());
  EXPECT_TRUE(Submit(thread, "b").ok());
  EXPECT_EQ(Submit(thread, "c").code(), StatusCode::kResourceExhausted);
  EXPECT_EQ(answers().size(), 1u);
  Open();
  UntilAnswers(4);
}

TEST_F(GuardedThreadTest, TheDestructorNeverHangs) {
  std::optional<GuardedThread> thread;
  thread.emplace("test", clock_, GuardedThread::Options{.queue = 8, .grace_ns = 1000});
  ASSERT_TRUE(Submit(*thread, "stuck", AtTheGate()).ok());
  ASSERT_TRUE(Submit(*thread, "queued").ok());
  UntilWaiting();
  thread.reset();
  ASSERT_EQ(answers().size(), 2u);
  for (const Status& status : answers()) EXPECT_EQ(status.code(), StatusCode::kCancelled);
  Open();
  Until([&] { return state_->waiting == 0; });
  EXPECT_EQ(answers().size(), 2u);
}

TEST_F(GuardedThreadTest, TheDestructorLeavesAThreadAlreadyKnownToBeStuck) {
  std::optional<GuardedThread> thread(std::in_place, "test", clock_);
  ASSERT_TRUE(Submit(*thread, "stuck", AtTheGate(), 1).ok());
  UntilWaiting();
  thread->CheckDeadlines(In(10));
  thread.reset();
  EXPECT_EQ(answers().size(), 1u);
  Open();
  Until([&] { return state_->waiting == 0; });
}

TEST_F(GuardedThreadTest, SubmittingFromManyThreads) {
  std::atomic<int> ran{0};
  {
    GuardedThread thread("test", clock_, {.queue = 10000});
    std::vector<std::thread> threads;
    for (int i = 0; i < 4; ++i) {
      threads.emplace_back([&] {
        for (int k = 0; k < 500; ++k) {
          EXPECT_TRUE(Submit(thread, "job", [&] { ++ran; }, 600).ok());
          if (k % 50 == 0) thread.CheckDeadlines(clock_.SteadyNs());
        }
      });
    }
    for (std::thread& t : threads) t.join();
    UntilAnswers(2000);
  }
  EXPECT_EQ(ran, 2000);
}

}  // namespace
}  // namespace profd
