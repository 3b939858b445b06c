#include "daemon/collect/sampler_pool.h"

#include <gtest/gtest.h>

#include <atomic>
#include <future>
#include <memory>
#include <utility>
#include <vector>

#include "base/clock.h"

namespace profd {
namespace {

int64_t NowNs() { return SystemClock().SteadyNs(); }

// Runs `body`, which answers when it is next due.
class TestTask final : public SamplerPool::Task {
 public:
  explicit TestTask(std::function<int64_t()> body) : body_(std::move(body)) {}
  int64_t Run() override {
    EXPECT_FALSE(busy_.exchange(true)) << "on two threads at once";
    const int64_t due = body_();
    busy_ = false;
    return due;
  }
  void End() override {
    EXPECT_FALSE(busy_.load());
    EXPECT_FALSE(ended_.exchange(true));
  }
  bool ended() const { return ended_; }

 private:
  std::function<int64_t()> body_;
  std::atomic<bool> busy_{false};
  std::atomic<bool> ended_{false};
};

void Remove(SamplerPool& pool, const SamplerPool::Task* task) {
  std::promise<void> done;
  pool.Remove(task, [&] { done.set_value(); });
  done.get_future().wait();
}

TEST(SamplerPool, RunsWhatIsDueNotEarlierAndInOrder) {
  std::promise<void> added;
  std::vector<int> order;
  std::promise<void> all;
  SamplerPool pool("sample", 1);
  // The only thread is kept busy until all are added.
  pool.Add(std::make_shared<TestTask>([&] {
             added.get_future().wait();
             return INT64_MAX;
           }),
           0);
  const int64_t begin = NowNs() + 20'000'000;
  auto once = [&](int number, int64_t due) {
    pool.Add(std::make_shared<TestTask>([&, number, due] {
               EXPECT_GE(NowNs(), due);
               order.push_back(number);
               if (order.size() == 3) all.set_value();
               return INT64_MAX;
             }),
             due);
  };
  once(3, begin + 2'000'000);
  once(1, begin);
  once(2, begin + 1'000'000);
  added.set_value();
  all.get_future().wait();
  pool.Stop();
  EXPECT_EQ(order, (std::vector<int>{1, 2, 3}));
}

TEST(SamplerPool, RunsUntilItIsRemovedAndNotLonger) {
  for (int threads : {1, 2, 3}) {
    SamplerPool pool("sample", threads);
    std::vector<std::shared_ptr<TestTask>> tasks;
    std::vector<std::atomic<int>> runs(8);
    for (auto& count : runs) {
      tasks.push_back(std::make_shared<TestTask>([&count] {
        ++count;
        return NowNs() + 100'000;
      }));
      pool.Add(tasks.back(), NowNs());
    }
    for (auto& count : runs) {
      while (count < 20) std::this_thread::yield();
    }
    for (size_t i = 0; i < tasks.size(); ++i) {
      Remove(pool, tasks[i].get());
      EXPECT_TRUE(tasks[i]->ended());
      EXPECT_EQ(tasks[i].use_count(), 1);
      const int so_far = runs[i];
      if (i + 1 < tasks.size()) {
        const int other = runs[i + 1];
        while (runs[i + 1] < other + 5) std::this_thread::yield();
      }
      EXPECT_EQ(runs[i], so_far);
    }
  }
}

TEST(SamplerPool, AnUnknownTaskIsRemovedAtOnce) {
  SamplerPool pool("sample", 1);
  TestTask task([] { return int64_t{0}; });
  Remove(pool, &task);
  EXPECT_FALSE(task.ended());
}

TEST(SamplerPool, RemovedWhileItRunsItEndsWhenThatIsOver) {
  SamplerPool pool("sample", 2);
  std::promise<void> running;
  std::promise<void> go_on;
  auto task = std::make_shared<TestTask>([&] {
    running.set_value();
    go_on.get_future().wait();
    return INT64_MAX;
  });
  pool.Add(task, 0);
  running.get_future().wait();
  std::promise<void> done;
  pool.Remove(task.get(), [&] { done.set_value(); });
  EXPECT_FALSE(task->ended());
  go_on.set_value();
  done.get_future().wait();
  EXPECT_TRUE(task->ended());
}

// One task hangs, from its first run on or after many short ones: the other continues all the same.
TEST(SamplerPool, ATaskThatHangsDoesNotStopTheOthers) {
  for (int short_runs : {0, 50}) {
    SamplerPool pool("sample", 2);
    std::promise<void> go_on;
    std::atomic<int> before{0};
    std::atomic<bool> hangs{false};
    pool.Add(std::make_shared<TestTask>([&] {
               if (before++ < short_runs) return NowNs() + 100'000;
               hangs = true;
               go_on.get_future().wait();
               return INT64_MAX;
             }),
             0);
    std::atomic<int> others{0};
    pool.Add(std::make_shared<TestTask>([&] {
               if (hangs) ++others;
               return NowNs() + 100'000;
             }),
             0);
    while (others < 20) std::this_thread::yield();
    go_on.set_value();
    pool.Stop();
  }
}

TEST(SamplerPool, StopLetsTasksGo) {
  SamplerPool pool("sample", 2);
  auto task = std::make_shared<TestTask>([] { return INT64_MAX; });
  pool.Add(task, INT64_MAX);
  pool.Stop();
  pool.Stop();
  EXPECT_EQ(task.use_count(), 1);
  EXPECT_FALSE(task->ended());
}

}  // namespace
}  // namespace profd
