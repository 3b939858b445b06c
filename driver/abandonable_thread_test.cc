#include "driver/abandonable_thread.h"

#include <gtest/gtest.h>
#include <pthread.h>

#include <array>
#include <future>
#include <memory>
#include <string>

#include "base/clock.h"

namespace profd {
namespace {

TEST(AbandonableThreadTest, ABodyThatReturnsIsJoined) {
  AbandonableThread thread;
  EXPECT_FALSE(thread.joinable());
  EXPECT_TRUE(thread.JoinWithin(0)) << "there is none";
  auto held = std::make_shared<std::string>();
  ASSERT_TRUE(thread.Start("profd-a-long-name", [held] {
    std::array<char, 16> name{};
    ::pthread_getname_np(::pthread_self(), name.data(), name.size());
    *held = name.data();
  }));
  EXPECT_TRUE(thread.joinable());
  EXPECT_TRUE(thread.JoinWithin(60 * kNsPerSecond));
  EXPECT_FALSE(thread.joinable());
  EXPECT_EQ(*held, "profd-a-long-na");
  EXPECT_EQ(held.use_count(), 1) << "what the body held is gone";
}

// The call that hangs is the wait for `come_back`.
struct Call {
  std::promise<void> come_back;
  std::promise<int> returned;
  int state = 7;
};

TEST(AbandonableThreadTest, ABodyThatHangsIsLeftBehindAndFindsItsStateLater) {
  auto call = std::make_shared<Call>();
  std::future<int> returned = call->returned.get_future();
  {
    AbandonableThread thread;
    ASSERT_TRUE(thread.Start("hangs", [call] {
      call->come_back.get_future().wait();
      call->returned.set_value(call->state);
    }));
    EXPECT_FALSE(thread.JoinWithin(kNsPerMs));
    EXPECT_FALSE(thread.joinable());
    EXPECT_TRUE(thread.JoinWithin(kNsPerMs)) << "there is none any more";
  }
  call->come_back.set_value();
  EXPECT_EQ(returned.get(), 7);
}

TEST(AbandonableThreadTest, AnAbandonedOneIsReplaced) {
  auto call = std::make_shared<Call>();
  std::future<int> returned = call->returned.get_future();
  AbandonableThread thread;
  ASSERT_TRUE(thread.Start("first", [call] {
    call->come_back.get_future().wait();
    call->returned.set_value(1);
  }));
  thread.Abandon();
  ASSERT_TRUE(thread.Start("second", [] {}));
  EXPECT_TRUE(thread.JoinWithin(60 * kNsPerSecond)) << "the first hangs still";
  call->come_back.set_value();
  EXPECT_EQ(returned.get(), 1);
}

TEST(AbandonableThreadTest, ItsOwnThreadDoesNotWaitForItself) {
  auto thread = std::make_unique<AbandonableThread>();
  std::promise<bool> joined;
  std::promise<void> started;
  AbandonableThread* raw = thread.get();
  ASSERT_TRUE(thread->Start("own", [&joined, raw, go = started.get_future().share()] {
    go.wait();
    joined.set_value(raw->JoinWithin(60 * kNsPerSecond));
  }));
  started.set_value();
  EXPECT_FALSE(joined.get_future().get());
}

}  // namespace
}  // namespace profd
