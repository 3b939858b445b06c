#include "daemon/recorder/recorder_ring.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>
#include <cstdlib>
#include <deque>
#include <new>
#include <random>
#include <thread>

#include "base/bytes.h"
#include "base/clock.h"
#include "daemon/data/dump_writer.h"
#include "daemon/recorder/clock_track.h"
#include "driver/records/lpm.h"

namespace {
std::atomic<uint64_t> g_allocations{0};
}  // namespace

// Not inlined: the compiler would take free() for a mismatch with new.
[[gnu::noinline]] void* operator new(size_t size) {
  g_allocations.fetch_add(1, std::memory_order_relaxed);
  if (void* memory = std::malloc(size == 0 ? 1 : size)) return memory;
  std::abort();
}
[[gnu::noinline]] void operator delete(void* memory) noexcept { std::free(memory); }
[[gnu::noinline]] void operator delete(void* memory, size_t) noexcept { std::free(memory); }

namespace profd {
namespace {

using ::testing::ElementsAre;

constexpr int64_t kSecond = kNsPerSecond;

class RecorderRingTest : public ::testing::Test {
 protected:
  void Make(size_t bytes, int64_t age_ns, size_t routes) {
    ring_ = RecorderRing::Create({bytes, age_ns}, now_).value();
    for (size_t i = 0; i < routes; ++i) {
      ring_->AddRoute(true);
      auto epoch = std::make_shared<ChannelEpoch>();
      epoch->number = 1;
      ring_->BeginEpoch(static_cast<uint32_t>(i), epoch);
    }
  }
  // A block whose bytes tell its number.
  void Put(uint32_t route, uint64_t seq, size_t size, uint32_t epoch = 1) {
    std::vector<std::byte> bytes(size, static_cast<std::byte>(seq));
    BlockInfo info{.seq = seq, .epoch = epoch, .records = 1, .host_ns = now_};
    ring_->Append(route, info, bytes);
  }
  static std::vector<uint64_t> Drain(const std::shared_ptr<BlockSource>& source) {
    std::vector<uint64_t> seqs;
    ReplayBlock block;
    while (source != nullptr && source->Next(&block)) {
      seqs.push_back(block.info.seq);
      for (std::byte byte : block.bytes) {
        if (byte != static_cast<std::byte>(block.info.seq)) ADD_FAILURE() << "bytes changed";
      }
    }
    return seqs;
  }
  std::vector<uint64_t> Held(uint32_t route) { return Drain(ring_->Read(route, 0)); }

  int64_t now_ = 1000 * kSecond;
  std::shared_ptr<RecorderRing> ring_;
};

// One entry for a loss that continues: it must not push out what is held.
TEST_F(RecorderRingTest, LossesKeepTheirPlace) {
  Make(1 << 20, 3600 * kSecond, 1);
  Put(0, 1, 100);
  ring_->AppendLoss(0, {0, 2, 1, now_, 3, 72});
  ring_->AppendLoss(0, {0, 2, 1, now_, 2, 48});
  Put(0, 2, 100);
  ring_->AppendLoss(0, {0, 2, 1, now_, 1, 24});
  auto source = ring_->Read(0, now_ - 1);
  ring_->AppendLoss(0, {0, 2, 1, now_, 4, 96});  // continues, but after what the reader was promised
  std::vector<std::pair<size_t, uint64_t>> found;  // bytes held, records lost
  ReplayBlock block;
  while (source->Next(&block)) found.emplace_back(block.bytes.size(), block.loss.records);
  EXPECT_THAT(found, ElementsAre(std::pair(100u, 0u), std::pair(0u, 5u), std::pair(100u, 0u),
                                 std::pair(0u, 1u)));
}

TEST_F(RecorderRingTest, GivesBackWhatItWasGiven) {
  Make(1 << 20, 10 * kSecond, 2);
  Put(0, 1, 100);
  Put(1, 2, 0);
  Put(0, 3, 33);
  EXPECT_THAT(Held(0), ElementsAre(1, 3));
  EXPECT_THAT(Held(1), ElementsAre(2));
  EXPECT_THAT(Drain(ring_->Read(std::vector<bool>{true, true}, 0)), ElementsAre(1, 2, 3));
  EXPECT_THAT(Drain(ring_->Read(std::vector<bool>{false, true}, 0)), ElementsAre(2));
  auto source = ring_->Read(0, 0);
  ReplayBlock block;
  ASSERT_TRUE(source->Next(&block));
  EXPECT_EQ(block.info.records, 1u);
  EXPECT_EQ(block.info.host_ns, now_);
  ASSERT_NE(block.epoch, nullptr);
  EXPECT_EQ(block.epoch->number, 1u);
}

TEST_F(RecorderRingTest, AgeLimitHoldsAtEveryInstant) {
  Make(1 << 20, 10 * kSecond, 1);
  for (uint64_t i = 1; i <= 30; ++i) {
    now_ += kSecond;
    Put(0, i, 50);
    EXPECT_LE(now_ - ring_->stats().oldest_ns, 10 * kSecond);
  }
  EXPECT_EQ(Held(0).front(), 20u);
  EXPECT_EQ(ring_->stats().evicted_early, 0u);
  EXPECT_EQ(ring_->stats().expired, 19u);
  // It also goes when nothing comes any more.
  ring_->Expire(now_ + 11 * kSecond);
  EXPECT_EQ(ring_->stats().blocks, 0u);
  EXPECT_EQ(ring_->stats().bytes, 0u);
  EXPECT_EQ(ring_->Read(0, 0), nullptr);
  EXPECT_EQ(ring_->stats().complete_from_ns, now_);
}

TEST_F(RecorderRingTest, TheOldestOfAllRoutesGoesFirst) {
  Make(1 << 20, 1000 * kSecond, 3);
  // Route 2 is slow; its old blocks leave in their turn all the same.
  for (uint64_t i = 1; i <= 400; ++i) {
    ++now_;
    Put(i % 10 == 0 ? 2 : static_cast<uint32_t>(i % 2), i, 9000);
  }
  RecorderRing::Stats stats = ring_->stats();
  EXPECT_GT(stats.evicted_early, 0u);
  EXPECT_LE(stats.bytes, stats.max_bytes);
  std::vector<uint64_t> held = Drain(ring_->Read(std::vector<bool>{true, true, true}, 0));
  ASSERT_FALSE(held.empty());
  for (size_t i = 0; i < held.size(); ++i) EXPECT_EQ(held[i], held[0] + i);
  EXPECT_EQ(held.back(), 400u);
  EXPECT_EQ(stats.evicted_early, held.front() - 1);
  EXPECT_EQ(stats.complete_from_ns, 1000 * kSecond + static_cast<int64_t>(held.front()) - 1);
}

TEST_F(RecorderRingTest, NothingBeforeTheRequestedInstant) {
  Make(1 << 20, 100 * kSecond, 1);
  for (uint64_t i = 1; i <= 10; ++i) {
    now_ += kSecond;
    Put(0, i, 8);
  }
  EXPECT_THAT(Drain(ring_->Read(0, now_ - 2 * kSecond)), ElementsAre(9, 10));
  EXPECT_THAT(Drain(ring_->Read(std::vector<bool>{true}, now_ - 1)), ElementsAre(10));
}

TEST_F(RecorderRingTest, LaterBlocksAreNotRead) {
  Make(1 << 20, 100 * kSecond, 2);
  Put(0, 1, 8);
  auto one = ring_->Read(0, 0);
  auto all = ring_->Read(std::vector<bool>{true, true}, 0);
  Put(0, 2, 8);
  Put(1, 3, 8);
  EXPECT_THAT(Drain(one), ElementsAre(1));
  EXPECT_THAT(Drain(all), ElementsAre(1));
}

TEST_F(RecorderRingTest, AReaderThatIsOvertakenReportsIt) {
  Make(1 << 20, 1000 * kSecond, 2);
  for (uint64_t i = 1; i <= 8; ++i) Put(0, i, 100'000);
  auto one = ring_->Read(0, 0);
  auto all = ring_->Read(std::vector<bool>{true, true}, 0);
  for (uint64_t i = 9; i <= 14; ++i) Put(1, i, 100'000);
  for (auto& source : {one, all}) {
    ReplayBlock block;
    ASSERT_TRUE(source->Next(&block));
    EXPECT_GT(block.info.seq, 1u);
    EXPECT_TRUE(block.after_loss);
    while (source->Next(&block)) {
      EXPECT_FALSE(block.after_loss);
      EXPECT_LE(block.info.seq, 8u);
    }
  }
}

TEST_F(RecorderRingTest, AReaderOfWhichNothingIsLeftReportsIt) {
  Make(1 << 20, 1000 * kSecond, 2);
  for (uint64_t i = 1; i <= 8; ++i) Put(0, i, 100'000);
  auto one = ring_->Read(0, 0);
  auto all = ring_->Read(std::vector<bool>{true, true}, 0);
  for (uint64_t i = 9; i <= 30; ++i) Put(1, i, 100'000);
  for (auto& source : {one, all}) {
    ReplayBlock block;
    EXPECT_FALSE(source->Next(&block));
    EXPECT_TRUE(source->lost_end());
  }
}

TEST_F(RecorderRingTest, WhatLeavesAfterItWasReadIsNoLoss) {
  Make(1 << 20, 1000 * kSecond, 2);
  Put(0, 1, 100'000);
  auto one = ring_->Read(0, 0);
  auto all = ring_->Read(std::vector<bool>{true, true}, 0);
  ReplayBlock block;
  for (auto& source : {one, all}) ASSERT_TRUE(source->Next(&block));
  for (uint64_t i = 2; i <= 30; ++i) Put(1, i, 100'000);
  for (auto& source : {one, all}) {
    EXPECT_FALSE(source->Next(&block));
    EXPECT_FALSE(source->lost_end());
  }
}

TEST_F(RecorderRingTest, RunsAreDistinguished) {
  Make(1 << 20, 100 * kSecond, 1);
  Put(0, 1, 8);
  auto second = std::make_shared<ChannelEpoch>();
  second->number = 2;
  ring_->BeginEpoch(0, second);
  Put(0, 2, 8, 1);  // the rest of the first
  Put(0, 3, 8, 2);
  Put(0, 4, 8, 7);  // of no run there was
  EXPECT_EQ(ring_->stats().dropped, 1u);
  auto source = ring_->Read(0, 0);
  ReplayBlock block;
  std::vector<uint32_t> runs;
  while (source->Next(&block)) runs.push_back(block.epoch->number);
  EXPECT_THAT(runs, ElementsAre(1, 1, 2));
}

TEST_F(RecorderRingTest, ABlockThatIsTooLargeIsCounted) {
  Make(1 << 20, 100 * kSecond, 1);
  Put(0, 1, 600'000);
  EXPECT_EQ(ring_->stats().dropped, 1u);
  EXPECT_EQ(ring_->stats().bytes, 0u);
}

// Against the plainest model there is: a list.
TEST_F(RecorderRingTest, SameAsAListUnderRandomLoad) {
  constexpr uint32_t kRoutes = 7;
  Make(1 << 20, kSecond / 2, kRoutes);
  struct Block {
    uint64_t seq;
    uint32_t route;
    int64_t at;
  };
  std::deque<Block> model;
  std::mt19937 random(7);
  for (uint64_t i = 1; i <= 20'000; ++i) {
    now_ += static_cast<int64_t>(random() % 3'000'000);
    auto route = static_cast<uint32_t>(random() % kRoutes);
    // First the bytes are the tighter limit, then the age.
    size_t size = i < 10'000 && random() % 20 == 0 ? random() % 200'000 : random() % 700;
    Put(route, i, size);
    model.push_back({i, route, now_});
    while (now_ - model.front().at > kSecond / 2) model.pop_front();
    RecorderRing::Stats stats = ring_->stats();
    ASSERT_LE(stats.bytes, stats.max_bytes);
    ASSERT_LE(stats.blocks, model.size());
    while (model.size() > stats.blocks) model.pop_front();
    ASSERT_EQ(stats.oldest_ns, model.front().at);
    if (i % 997 != 0) continue;
    std::vector<uint64_t> wanted;
    for (const Block& block : model) {
      if (block.route == route) wanted.push_back(block.seq);
    }
    ASSERT_EQ(Held(route), wanted);
    ASSERT_EQ(ring_->StatsOf(route).blocks, wanted.size());
  }
  EXPECT_GT(ring_->stats().evicted_early, 0u);
  EXPECT_GT(ring_->stats().expired, 0u);
}

TEST_F(RecorderRingTest, SteadyStateAllocatesNothing) {
  Make(1 << 20, 1000 * kSecond, 4);
  std::vector<std::byte> bytes(700);
  BlockInfo info;
  info.epoch = 1;
  auto turn = [&](uint64_t blocks) {
    for (uint64_t i = 0; i < blocks; ++i) {
      info.host_ns = ++now_;
      ring_->Append(static_cast<uint32_t>(i % 4), info, bytes);
    }
  };
  turn(3000);
  uint64_t before = g_allocations.load();
  turn(3000);
  EXPECT_EQ(g_allocations.load(), before);
  EXPECT_GT(ring_->stats().evicted_early, 3000u);
}

TEST_F(RecorderRingTest, WritersAndReadersAtOnce) {
  Make(1 << 20, kSecond, 4);
  std::atomic<bool> stop{false};
  std::vector<std::thread> writers;
  for (uint32_t route = 0; route < 4; ++route) {
    writers.emplace_back([this, route, &stop] {
      std::vector<std::byte> bytes(300 + route);
      BlockInfo info;
      info.epoch = 1;
      for (uint64_t seq = 1; !stop; ++seq) {
        info.seq = seq;
        info.host_ns = static_cast<int64_t>(seq) * 1000;
        ring_->Append(route, info, bytes);
      }
    });
  }
  for (int i = 0; i < 50; ++i) {
    std::vector<uint64_t> last(4, 0);
    auto source = ring_->Read(std::vector<bool>(4, true), 0);
    ReplayBlock block;
    while (source->Next(&block)) {
      ASSERT_EQ(block.bytes.size(), 300 + block.route);
      ASSERT_GT(block.info.seq, last[block.route]);
      last[block.route] = block.info.seq;
    }
  }
  stop = true;
  for (std::thread& writer : writers) writer.join();
}

TEST(ClockTrack, TakesTheDriftOut) {
  ClockTrack track;
  ClockPair out;
  EXPECT_FALSE(track.At(5, 50e6, 0, &out));
  // The device's clock runs 50 ppm fast, its counter at 50 MHz of that.
  auto pair = [](int64_t host_s) {
    return ClockPair{.host_ns = host_s * kSecond, .device_ns = 7 * kSecond + host_s * 1'000'050'000,
                     .device_count = static_cast<uint64_t>(host_s) * 50'002'500,
                     .host_count = static_cast<uint64_t>(host_s) * 100'000'000, .uncertainty_ns = 300};
  };
  for (int64_t s : {100, 110, 120}) track.Add(pair(s));
  for (int64_t s : {60, 100, 104, 117, 120, 130}) {
    ASSERT_TRUE(track.At(s * kSecond, 50e6, 100e6, &out));
    ClockPair right = pair(s);
    EXPECT_EQ(out.host_ns, right.host_ns);
    EXPECT_NEAR(static_cast<double>(out.device_ns - right.device_ns), 0, 2);
    EXPECT_NEAR(static_cast<double>(static_cast<int64_t>(out.device_count - right.device_count)),
                0, 1);
    EXPECT_NEAR(static_cast<double>(static_cast<int64_t>(out.host_count - right.host_count)), 0, 1);
  }
}

TEST(ClockTrack, OnePairAndAReset) {
  ClockTrack track;
  ClockPair p{.host_ns = 100 * kSecond, .device_ns = 50 * kSecond, .device_count = 1'000'000'000};
  track.Add(p);
  ClockPair out;
  ASSERT_TRUE(track.At(99 * kSecond, 50e6, 100e6, &out));
  EXPECT_EQ(out.device_ns, 49 * kSecond);
  EXPECT_EQ(out.device_count, 950'000'000u);
  ClockTrack uncounted;  // by a driver without the counter
  uncounted.Add({.host_ns = 100 * kSecond, .device_ns = 50 * kSecond});
  ASSERT_TRUE(uncounted.At(101 * kSecond, 50e6, 100e6, &out));
  EXPECT_EQ(out.device_ns, 51 * kSecond);
  EXPECT_EQ(out.device_count, 0u);
  // The card was reset: its clock begins anew.
  p.host_ns = 110 * kSecond;
  p.device_ns = kSecond;
  track.Add(p);
  EXPECT_EQ(track.pairs().size(), 1u);
}

TEST(ClockTrack, IsBounded) {
  ClockTrack track(4);
  for (int64_t i = 1; i <= 9; ++i) {
    ClockPair p;
    p.host_ns = p.device_ns = i * kSecond;
    track.Add(p);
  }
  EXPECT_EQ(track.pairs().size(), 4u);
  EXPECT_EQ(track.pairs().front().host_ns, 6 * kSecond);
}

// Nothing may change for as long as the ring reaches back.
TEST_F(RecorderRingTest, TheLastChangesBeforeTheBeginAreKept) {
  using records::LpmRecord;
  using Changes = std::vector<std::pair<uint32_t, uint32_t>>;  // kind, value
  ring_ = RecorderRing::Create({1 << 20, 10 * kSecond}, now_).value();
  const uint32_t other = ring_->AddRoute(false);
  const uint32_t route = ring_->AddRoute(true, true);
  auto epoch = std::make_shared<ChannelEpoch>();
  epoch->number = 1;
  ring_->BeginEpoch(route, epoch);
  auto change = [&](uint32_t kind, uint32_t value) {
    std::vector<std::byte> bytes(LpmRecord::kSize);
    StoreUnchecked(std::span(bytes), 0, uint32_t{1});
    StoreUnchecked(std::span(bytes), LpmRecord::kTypeAt, kind);
    StoreUnchecked(std::span(bytes), LpmRecord::kEntries + sizeof(uint64_t), value);
    ring_->Append(route, {.epoch = 1, .records = 1, .host_ns = now_}, bytes);
  };
  auto changes = [&](const std::shared_ptr<BlockSource>& source) {
    Changes found;
    ReplayBlock block;
    while (source != nullptr && source->Next(&block)) {
      EXPECT_EQ(block.route, route);
      for (auto rest = block.bytes; rest.size() >= LpmRecord::kSize; rest = rest.subspan(LpmRecord::kSize)) {
        const LpmRecord record(rest.first(LpmRecord::kSize));
        found.emplace_back(record.type(), record.entry(0).value);
      }
    }
    return found;
  };
  EXPECT_EQ(changes(ring_->Read(route, 0)), Changes());
  change(LpmRecord::kFrequencyMhz, 1800);
  change(LpmRecord::kAicoreMillivolts, 900);
  now_ += 5 * kSecond;
  change(LpmRecord::kFrequencyMhz, 1000);
  now_ += kSecond;
  const Changes last = {{LpmRecord::kAicoreMillivolts, 900}, {LpmRecord::kFrequencyMhz, 1000}};
  EXPECT_EQ(changes(ring_->Read(route, now_ - kNsPerMs)), last) << "older, but held";
  now_ += 60 * kSecond;
  ring_->Expire(now_);
  EXPECT_EQ(ring_->stats().blocks, 0u);
  EXPECT_EQ(changes(ring_->Read(route, now_ - kSecond)), last);
  EXPECT_EQ(changes(ring_->Read({true, true}, now_ - kSecond)), last);
  EXPECT_EQ(changes(ring_->Read({true, false}, now_ - kSecond)), Changes());
  EXPECT_EQ(ring_->Read(other, now_ - kSecond), nullptr);
  change(LpmRecord::kFrequencyMhz, 1200);
  EXPECT_EQ(changes(ring_->Read(route, now_ - kSecond)),
            (Changes{{LpmRecord::kAicoreMillivolts, 900}, {LpmRecord::kFrequencyMhz, 1000}, {LpmRecord::kFrequencyMhz, 1200}}));
}

}  // namespace
}  // namespace profd
