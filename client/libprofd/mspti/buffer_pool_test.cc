#include "client/libprofd/mspti/buffer_pool.h"

#include <gtest/gtest.h>

#include <atomic>
#include <set>
#include <thread>
#include <vector>

#include "client/libprofd/mspti/clock_pair.h"
#include "client/libprofd/mspti/mspti_abi.h"

namespace profd::lib::mspti {
namespace {

uint8_t* Lend(BufferPool& pool) {
  uint8_t* buffer = nullptr;
  size_t size = 0;
  pool.Lend(&buffer, &size);
  EXPECT_NE(buffer, nullptr);
  EXPECT_GE(size, kLeastBuffer);
  EXPECT_EQ(reinterpret_cast<uintptr_t>(buffer) % kBufferAlignment, 0u);
  return buffer;
}

// A host whose two clocks are `kApart` apart, and where the first reads are far from each other.
TEST(ClockPair, IsTheOneWithTheLeastBetweenItsReads) {
  constexpr int64_t kApart = 1'000'000'000;
  int64_t raw_ns = 5'000;
  int reads = 0;
  const ClockPair pair = ClockPair::Of([&](clockid_t clock) {
    raw_ns += ++reads == 3 ? 20'000'000 : 100;  // away from the CPU after the wall clock was read
    return clock == CLOCK_REALTIME ? raw_ns + kApart : raw_ns;
  });
  EXPECT_EQ(pair.real_ns - pair.raw_ns, kApart);
  EXPECT_EQ(reads, 6) << "one round more, and none after a close one";
}

TEST(ClockPair, IsTheBestOfAFewOnAHostThatIsNeverQuiet) {
  int64_t raw_ns = 0;
  int reads = 0;
  const ClockPair pair = ClockPair::Of([&](clockid_t) {
    raw_ns += ++reads == 12 ? 10'000 : 50'000;
    return raw_ns;
  });
  EXPECT_EQ(pair.raw_ns - pair.real_ns, -20'000) << "of the fourth round, half of what came between";
  EXPECT_EQ(reads, 24) << "it ends";
}

TEST(BufferPool, LendsEachOnce) {
  BufferPool pool;
  ASSERT_TRUE(pool.Open());
  std::set<uint8_t*> lent;
  for (int i = 0; i < BufferPool::kFirst; ++i) lent.insert(Lend(pool));
  EXPECT_EQ(lent.size(), static_cast<size_t>(BufferPool::kFirst));
  EXPECT_EQ(pool.free_count(), 0);
}

TEST(BufferPool, NeverDeclines) {
  BufferPool pool;
  ASSERT_TRUE(pool.Open());
  std::set<uint8_t*> lent;
  for (int i = 0; i < BufferPool::kFirst; ++i) lent.insert(Lend(pool));
  uint8_t* trash = Lend(pool);
  EXPECT_FALSE(lent.contains(trash));
  EXPECT_EQ(Lend(pool), trash);
  pool.TakeBack(trash, 1000);
  pool.TakeBack(trash, 24);
  BufferPool::Full full;
  EXPECT_FALSE(pool.Next(&full));
  EXPECT_EQ(pool.TakeLostBytes(), 1024u);
  EXPECT_EQ(pool.TakeLostBytes(), 0u);
}

TEST(BufferPool, GivesThemInTheOrderOfTheirReturn) {
  BufferPool pool;
  ASSERT_TRUE(pool.Open());
  uint8_t* first = Lend(pool);
  uint8_t* second = Lend(pool);
  pool.TakeBack(second, 16);
  pool.TakeBack(first, 8);
  BufferPool::Full full;
  ASSERT_TRUE(pool.Next(&full));
  EXPECT_EQ(full.data, second);
  EXPECT_EQ(full.valid, 16u);
  pool.Free(full.index);
  ASSERT_TRUE(pool.Next(&full));
  EXPECT_EQ(full.data, first);
  EXPECT_GT(full.clock.real_ns, 0);
  pool.Free(full.index);
  EXPECT_FALSE(pool.Next(&full));
  EXPECT_EQ(pool.free_count(), BufferPool::kFirst);
}

TEST(BufferPool, GrowsWhileFewAreFreeUpToItsLimit) {
  BufferPool pool;
  ASSERT_TRUE(pool.Open());
  pool.GrowIfShort();
  EXPECT_EQ(pool.made(), BufferPool::kFirst);
  for (int i = 0; i < 100; ++i) {
    Lend(pool);
    pool.GrowIfShort();
  }
  EXPECT_EQ(pool.made(), BufferPool::kMost);
}

TEST(BufferPool, IgnoresForeignBuffers) {
  BufferPool pool;
  ASSERT_TRUE(pool.Open());
  uint8_t other = 0;
  pool.TakeBack(nullptr, 0);
  pool.TakeBack(&other, 100);
  BufferPool::Full full;
  EXPECT_FALSE(pool.Next(&full));
  EXPECT_EQ(pool.TakeLostBytes(), 0u);
  uint8_t* mine = Lend(pool);
  pool.TakeBack(mine, SIZE_MAX);
  ASSERT_TRUE(pool.Next(&full));
  EXPECT_EQ(full.valid, BufferPool::kBufferBytes);
}

TEST(BufferPool, TrimmedBuffersCanBeLent) {
  BufferPool pool;
  ASSERT_TRUE(pool.Open());
  *Lend(pool) = 1;
  pool.Trim();
  EXPECT_EQ(pool.free_count(), BufferPool::kFirst - 1);
  *Lend(pool) = 1;
}

// Every byte that eight threads fill comes back or is counted.
TEST(BufferPool, ThreadsLoseNothingUncounted) {
  BufferPool pool;
  ASSERT_TRUE(pool.Open());
  constexpr int kThreads = 8;
  constexpr uint64_t kEach = 2000;
  std::atomic<int> running = kThreads;
  std::vector<std::thread> threads;
  for (int t = 0; t < kThreads; ++t) {
    threads.emplace_back([&] {
      for (uint64_t i = 0; i < kEach; ++i) {
        uint8_t* buffer = nullptr;
        size_t size = 0;
        pool.Lend(&buffer, &size);
        pool.TakeBack(buffer, 64);
      }
      --running;
    });
  }
  uint64_t bytes = 0;
  const auto take = [&] {
    for (BufferPool::Full full; pool.Next(&full);) {
      EXPECT_EQ(full.valid, 64u);
      bytes += full.valid;
      pool.Free(full.index);
    }
  };
  while (running > 0) take();
  for (std::thread& thread : threads) thread.join();
  take();
  EXPECT_EQ(bytes + pool.TakeLostBytes(), 64u * kThreads * kEach);
}

}  // namespace
}  // namespace profd::lib::mspti
