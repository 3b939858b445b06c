#include "daemon/rpc/read_queue.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <chrono>
#include <future>
#include <mutex>
#include <vector>

namespace profd::rpc {
namespace {

using ::testing::ElementsAre;
constexpr auto kPatience = std::chrono::seconds(60);

// A step that continues until it is let go.
struct Gate {
  std::promise<void> begun;
  std::promise<void> go;
  std::function<void()> Step() {
    return [this, open = go.get_future().share()] {
      begun.set_value();
      open.wait();
    };
  }
  bool Begun() { return begun.get_future().wait_for(kPatience) == std::future_status::ready; }
};

TEST(ReadQueue, UsersTakeTurns) {
  ReadQueue queue;
  // One thread is busy for the whole test, so the other one alone decides about the order.
  Gate other;
  Gate first;
  queue.Post(99, other.Step());
  ASSERT_TRUE(other.Begun());
  queue.Post(1, first.Step());
  ASSERT_TRUE(first.Begun());
  std::mutex mutex;
  std::vector<uint32_t> order;
  std::promise<void> done;
  auto note = [&](uint32_t uid) {
    return [&, uid] {
      std::lock_guard lock(mutex);
      order.push_back(uid);
      if (order.size() == 7) done.set_value();
    };
  };
  for (int i = 0; i < 4; ++i) queue.Post(1, note(1));
  for (int i = 0; i < 2; ++i) queue.Post(2, note(2));
  queue.Post(3, note(3));
  first.go.set_value();
  ASSERT_EQ(done.get_future().wait_for(kPatience), std::future_status::ready);
  std::lock_guard lock(mutex);
  EXPECT_THAT(order, ElementsAre(2, 3, 1, 2, 1, 1, 1));
  other.go.set_value();
}

// A step that takes its time, as the listing of a hundred thousand files does, delays no other reader.
TEST(ReadQueue, OneUserHasOneStepUnderWay) {
  ReadQueue queue;
  Gate slow;
  queue.Post(1, slow.Step());
  ASSERT_TRUE(slow.Begun());
  std::promise<void> next;
  std::promise<void> others;
  queue.Post(1, [&] { next.set_value(); });
  queue.Post(2, [&] { others.set_value(); });
  EXPECT_EQ(others.get_future().wait_for(kPatience), std::future_status::ready);
  std::future<void> waits = next.get_future();
  EXPECT_NE(waits.wait_for(std::chrono::seconds(0)), std::future_status::ready);
  slow.go.set_value();
  EXPECT_EQ(waits.wait_for(kPatience), std::future_status::ready);
}

}  // namespace
}  // namespace profd::rpc
