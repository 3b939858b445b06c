#include "driver/block.h"

#include <gtest/gtest.h>

#include <cstring>
#include <optional>
#include <thread>
#include <vector>

namespace profd {
namespace {

TEST(BlockPoolTest, GivesTheSmallestClassThatFits) {
  BlockPool pool(4 << 20);
  EXPECT_EQ(pool.Get(0).buffer().size(), 512u);
  EXPECT_EQ(pool.Get(512).buffer().size(), 512u);
  EXPECT_EQ(pool.Get(513).buffer().size(), 4096u);
  EXPECT_EQ(pool.Get(4097).buffer().size(), 8192u);
  EXPECT_EQ(pool.Get(16385).buffer().size(), 32768u);
  EXPECT_EQ(pool.Get(BlockPool::kMaxBlockBytes).buffer().size(), BlockPool::kMaxBlockBytes);
  EXPECT_FALSE(pool.Get(BlockPool::kMaxBlockBytes + 1));
}

TEST(BlockPoolTest, ABlockKeepsItsBytesAndFactsUntilTheLastRef) {
  BlockPool pool(1 << 20);
  BlockBuilder builder = pool.Get(100);
  std::memcpy(builder.buffer().data(), "hello", 5);
  BlockInfo info{.device = 3, .seq = 9};
  BlockRef block = std::move(builder).Finish(info, 5);
  EXPECT_FALSE(builder);  // NOLINT: moved-from on purpose
  BlockRef other = block;
  block.Reset();
  EXPECT_FALSE(block);
  ASSERT_TRUE(other);
  EXPECT_EQ(other.info().device, 3u);
  EXPECT_EQ(other.info().seq, 9u);
  ASSERT_EQ(other.bytes().size(), 5u);
  EXPECT_EQ(std::memcmp(other.bytes().data(), "hello", 5), 0);
  EXPECT_GE(other.footprint(), 512u);
  EXPECT_EQ(pool.stats().in_use_bytes, other.footprint());
  other.Reset();
  EXPECT_EQ(pool.stats().in_use_bytes, 0u);
}

TEST(BlockPoolTest, MemoryIsReusedAndNeverExceedsTheLimit) {
  BlockPool pool(100 * 1024);
  std::vector<BlockBuilder> held;
  while (true) {
    BlockBuilder builder = pool.Get(32 * 1024);
    if (!builder) break;
    held.push_back(std::move(builder));
  }
  EXPECT_EQ(held.size(), 3u);
  EXPECT_EQ(pool.stats().refused, 1u);
  std::byte* first = held[0].buffer().data();
  held.erase(held.begin());
  BlockBuilder again = pool.Get(32 * 1024);
  ASSERT_TRUE(again);
  EXPECT_EQ(again.buffer().data(), first);
  EXPECT_LE(pool.stats().allocated_bytes, 100u * 1024);
}

TEST(BlockPoolTest, LeavesSomeForOthers) {
  BlockPool pool(1 << 20);
  std::vector<BlockBuilder> blocks;
  while (BlockBuilder block = pool.Get(4096, 256 << 10)) blocks.push_back(std::move(block));
  EXPECT_LE(pool.stats().in_use_bytes, size_t{768} << 10);
  EXPECT_GT(pool.stats().in_use_bytes, size_t{760} << 10);
  EXPECT_EQ(pool.stats().refused, 1u);
  EXPECT_TRUE(pool.Get(4096));
  blocks.pop_back();
  EXPECT_TRUE(pool.Get(4096, 256 << 10));
}

TEST(BlockPoolTest, ParkedMemoryOfOtherSizesIsFreed) {
  BlockPool pool(300 * 1024);
  {
    std::vector<BlockBuilder> small;
    while (small.size() < 400) small.push_back(pool.Get(512));
  }
  size_t before = pool.stats().allocated_bytes;
  EXPECT_GE(before, 400u * 512);
  BlockBuilder large = pool.Get(BlockPool::kMaxBlockBytes);
  ASSERT_TRUE(large);
  EXPECT_LE(pool.stats().allocated_bytes, 300u * 1024);
  EXPECT_FALSE(pool.Get(BlockPool::kMaxBlockBytes));
}

TEST(BlockPoolTest, TrimGivesBackUnusedBlocks) {
  BlockPool pool(8 << 20);
  {
    std::vector<BlockBuilder> burst;
    for (int i = 0; i < 16; ++i) burst.push_back(pool.Get(BlockPool::kMaxBlockBytes));
    for (int i = 0; i < 16; ++i) burst.push_back(pool.Get(100));
  }
  BlockBuilder held = pool.Get(4000);
  const size_t in_use = pool.stats().in_use_bytes;
  EXPECT_GT(pool.stats().allocated_bytes, 4U << 20);
  pool.Trim(1 << 20);
  EXPECT_LE(pool.stats().allocated_bytes, in_use + (1 << 20));
  EXPECT_GT(pool.stats().allocated_bytes, in_use) << "some is kept";
  pool.Trim(0);
  EXPECT_EQ(pool.stats().allocated_bytes, in_use);
  EXPECT_EQ(pool.stats().in_use_bytes, in_use);
  EXPECT_TRUE(pool.Get(BlockPool::kMaxBlockBytes)) << "and more can be had";
}

TEST(BlockPoolTest, BlocksOutliveThePool) {
  std::optional<BlockPool> pool(std::in_place, size_t{1 << 20});
  BlockRef block = pool->Get(10).Finish({}, 3);
  BlockBuilder builder = pool->Get(10);
  pool.reset();
  EXPECT_EQ(block.bytes().size(), 3u);
  builder.buffer()[0] = std::byte{1};
}

TEST(BlockPoolTest, ThreadsShareBlocksAndPool) {
  BlockPool pool(64 * 1024);
  auto work = [&pool](BlockRef shared) {
    for (int i = 0; i < 2000; ++i) {
      BlockRef copy = shared;
      BlockBuilder builder = pool.Get(i % 2 == 0 ? 100 : 4000);
      if (!builder) continue;
      builder.buffer()[0] = copy.bytes()[0];
      BlockRef mine = std::move(builder).Finish({}, 1);
      EXPECT_EQ(mine.bytes()[0], std::byte{42});
    }
  };
  BlockBuilder builder = pool.Get(1);
  builder.buffer()[0] = std::byte{42};
  BlockRef shared = std::move(builder).Finish({}, 1);
  std::vector<std::thread> threads;
  for (int i = 0; i < 4; ++i) threads.emplace_back(work, shared);
  shared.Reset();
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(pool.stats().in_use_bytes, 0u);
}

}  // namespace
}  // namespace profd
