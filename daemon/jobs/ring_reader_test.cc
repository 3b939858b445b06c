#include "daemon/jobs/ring_reader.h"

#include <gtest/gtest.h>

#include <thread>
#include <vector>

#include "base/clock.h"
#include "daemon/jobs/test_support.h"

namespace profd {
namespace {

using attach::MarkKind;

constexpr int64_t kNow = 1000 * kNsPerSecond;

class RingReaderTest : public ::testing::Test {
 protected:
  Result<RingReader::Round> Take() { return reader_->Take(100, kNow, &scratch_); }

  TestRing ring_;
  std::unique_ptr<RingReader> reader_ = RingReader::Map(ring_.fd()).value();
  MarkScratch scratch_;
};

TEST_F(RingReaderTest, TakesWhatWasPublished) {
  ring_.Put(MarkKind::kMark, "forward", 0, 100);
  ring_.Put(MarkKind::kStepBegin, "ignored", 12, 200);
  ring_.Put(MarkKind::kRangePop, "", 0, 300);
  auto round = Take();
  ASSERT_TRUE(round.ok());
  EXPECT_EQ(round->slots, 3u);
  ASSERT_EQ(scratch_.marks().size(), 3u);
  EXPECT_EQ(scratch_.marks()[0].name, "forward");
  EXPECT_EQ(scratch_.marks()[0].time_ns, 100);
  EXPECT_EQ(scratch_.marks()[0].thread, 7);
  EXPECT_EQ(scratch_.marks()[1].kind, MarkKind::kStepBegin);
  EXPECT_EQ(scratch_.marks()[1].value, 12);
  EXPECT_EQ(scratch_.marks()[1].name, "");
  EXPECT_EQ(Take()->slots, 0u);
}

TEST_F(RingReaderTest, ADomainStandsBeforeTheName) {
  ring_.Put(MarkKind::kRangeStart, "communication\x1f" "all-\x1freduce\n", 9);
  ring_.Put(MarkKind::kRangeEnd, "ignored\x1fignored", 9);
  ring_.Put(MarkKind::kMark, "\x1f");
  ring_.Put(MarkKind::kFrame, "file.py:f:1", 5);
  ring_.Put(MarkKind::kStack, "ignored", 5);
  ring_.Put(static_cast<MarkKind>(10), "unknown");
  auto round = Take();
  ASSERT_TRUE(round.ok());
  EXPECT_EQ(round->bad, 1u);
  ASSERT_EQ(scratch_.marks().size(), 5u);
  EXPECT_EQ(scratch_.marks()[0].domain, "communication");
  EXPECT_EQ(scratch_.marks()[0].name, "all-?reduce?");
  EXPECT_EQ(scratch_.marks()[0].value, 9);
  EXPECT_EQ(scratch_.marks()[1].kind, MarkKind::kRangeEnd);
  EXPECT_EQ(scratch_.marks()[1].name, "");
  EXPECT_EQ(scratch_.marks()[1].domain, "");
  EXPECT_EQ(scratch_.marks()[2].name, "");
  EXPECT_EQ(scratch_.marks()[3].name, "file.py:f:1");
  EXPECT_EQ(scratch_.marks()[4].name, "");
}

TEST_F(RingReaderTest, TakesNoMoreThanAsked) {
  for (int i = 0; i < 20; ++i) ring_.Put(MarkKind::kMark, "x");
  EXPECT_EQ(reader_->Take(7, kNow, &scratch_)->slots, 7u);
  EXPECT_EQ(reader_->Waiting(), 13u);
  EXPECT_EQ(Take()->slots, 13u);
}

TEST(RingReader, EveryMarkIsTakenOrCountedAsLost) {
  constexpr int kThreads = 8;
  constexpr int kEach = 20'000;
  TestRing ring(1024);
  auto reader = RingReader::Map(ring.fd());
  MarkScratch scratch;
  uint64_t taken = 0;
  uint64_t lost = 0;
  auto take = [&] {
    auto round = (*reader)->Take(MarkScratch::kSlots, kNow, &scratch);
    ASSERT_TRUE(round.ok()) << round.status().ToString();
    taken += round->slots;
    lost += round->dropped;
  };
  std::vector<std::thread> threads;
  for (int t = 0; t < kThreads; ++t) {
    threads.emplace_back([&ring] {
      for (int i = 0; i < kEach; ++i) ring.Put(MarkKind::kMark, "mark");
    });
  }
  while (taken + lost < kThreads * kEach / 2) take();
  for (std::thread& thread : threads) thread.join();
  for (int i = 0; i < 3; ++i) take();
  EXPECT_EQ(taken + lost, static_cast<uint64_t>(kThreads * kEach));
  EXPECT_GT(taken, 0u);
}

TEST_F(RingReaderTest, TimestampsInTheFutureAreSetToNow) {
  ring_.Put(MarkKind::kMark, "a", 0, kNow + kNsPerSecond);
  ring_.Put(MarkKind::kMark, "b", 0, kNow + kNsPerSecond + 1);
  ring_.Put(MarkKind::kMark, "c", 0, INT64_MAX);
  ring_.Put(MarkKind::kMark, "d", 0, -1);
  auto round = Take();
  EXPECT_EQ(round->clamped, 3u);
  EXPECT_EQ(scratch_.marks()[0].time_ns, kNow + kNsPerSecond);
  for (size_t i = 1; i < 4; ++i) EXPECT_EQ(scratch_.marks()[i].time_ns, kNow) << i;
}

TEST_F(RingReaderTest, UnknownKindsAreLeftOut) {
  ring_.Put(static_cast<MarkKind>(0), "a");
  ring_.Put(static_cast<MarkKind>(99), "b");
  ring_.Put(MarkKind::kMark, "c");
  auto round = Take();
  EXPECT_EQ(round->bad, 2u);
  ASSERT_EQ(scratch_.marks().size(), 1u);
  EXPECT_EQ(scratch_.marks()[0].name, "c");
}

TEST(RingReader, BrokenRingsAreGivenUp) {
  MarkScratch scratch;
  auto broken = [&scratch](auto spoil) {
    TestRing ring;
    auto reader = RingReader::Map(ring.fd());
    EXPECT_TRUE(reader.ok());
    ring.Put(MarkKind::kMark, "x");
    spoil(ring);
    return (*reader)->Take(100, kNow, &scratch).status().code();
  };
  EXPECT_EQ(broken([](TestRing& ring) { ring.slot(0).sequence = 77; }), StatusCode::kDataLoss);
  EXPECT_EQ(broken([](TestRing& ring) { ring.slot(1).sequence = 0; }), StatusCode::kDataLoss);
  EXPECT_EQ(broken([](TestRing& ring) { ring.slot(0).name_bytes = 89; }), StatusCode::kDataLoss);
  EXPECT_EQ(broken([](TestRing&) {}), StatusCode::kOk);
  TestRing ring;
  auto reader = RingReader::Map(ring.fd());
  ring.header().dropped = 5;
  EXPECT_EQ((*reader)->Take(100, kNow, &scratch)->dropped, 5u);
  ring.header().dropped = 4;
  EXPECT_EQ((*reader)->Take(100, kNow, &scratch).status().code(), StatusCode::kDataLoss);
}

TEST_F(RingReaderTest, HeaderChangesAfterwardsDoNotMatter) {
  ring_.Put(MarkKind::kMark, "x");
  ring_.header().slots = 1U << 30;
  ring_.header().head = 12345;
  ring_.header().magic = 0;
  EXPECT_EQ(Take()->slots, 1u);
}

TEST(RingReader, ContinuesWhereAnotherStopped) {
  TestRing ring;
  MarkScratch scratch;
  {
    auto first = RingReader::Map(ring.fd());
    for (int i = 0; i < 10; ++i) ring.Put(MarkKind::kMark, "x");
    ASSERT_EQ((*first)->Take(10, kNow, &scratch)->slots, 10u);
  }
  ring.header().head = 3;  // as one that was killed leaves it
  for (uint32_t i = 0; i < attach::kMinRingSlots; ++i) ring.Put(MarkKind::kMark, "y");
  auto second = RingReader::Map(ring.fd());
  ASSERT_TRUE(second.ok()) << second.status().ToString();
  EXPECT_EQ((*second)->Take(1000, kNow, &scratch)->slots, attach::kMinRingSlots);
  EXPECT_EQ(scratch.marks()[0].name, "y");
  EXPECT_EQ(ring.header().head.load(), 10u + attach::kMinRingSlots);
}

TEST(RingReader, RefusesInvalidRings) {
  auto refused = [](const UniqueFd& fd) {
    return RingReader::Map(fd).status().code() == StatusCode::kInvalidArgument;
  };
  EXPECT_TRUE(refused(TestRing(256, 0).fd()));
  EXPECT_TRUE(refused(TestRing(256, F_SEAL_SHRINK).fd()));
  EXPECT_TRUE(refused(TestRing(256, F_SEAL_GROW).fd()));
  EXPECT_TRUE(refused(TestRing(256, F_SEAL_SHRINK | F_SEAL_GROW, 4096).fd()));
  EXPECT_TRUE(refused(TestRing(128).fd()));
  EXPECT_TRUE(refused(TestRing(attach::kMaxRingSlots * 2).fd()));
  for (auto spoil : {+[](TestRing& r) { r.header().magic = 1; },
                     +[](TestRing& r) { r.header().version = 2; },
                     +[](TestRing& r) { r.header().slots = 512; },
                     +[](TestRing& r) { r.header().slots = 0; },
                     +[](TestRing& r) { r.slot(3).sequence = 2; },
                     +[](TestRing& r) { r.slot(3).sequence = 1U << 20 | 3; }}) {
    TestRing ring;
    spoil(ring);
    EXPECT_TRUE(refused(ring.fd()));
  }
  UniqueFd null(::open("/dev/null", O_RDWR | O_CLOEXEC));
  EXPECT_TRUE(refused(null));
  EXPECT_TRUE(refused(UniqueFd()));
}

std::string Cleaned(std::string text) {
  MakePrintable(text);
  return text;
}

TEST(MakePrintable, LeavesOnlyWhatCanBeShown) {
  EXPECT_EQ(Cleaned("plain \u8bad\u7ec3 \u00b5s \U0001F600"), "plain \u8bad\u7ec3 \u00b5s \U0001F600");
  EXPECT_EQ(Cleaned("a\033[2J\n\x7f"), "a?[2J??");
  EXPECT_EQ(Cleaned(std::string("a\0b", 3)), "a?b");
  EXPECT_EQ(Cleaned("\u202ex\u200b\u0085"), "???x?????");
  EXPECT_EQ(Cleaned("\xe8\xae"), "??");
  EXPECT_EQ(Cleaned("\xc0\x80\xed\xa0\x80\xf4\x90\x80\x80\xff"), "??????????");
  EXPECT_EQ(Cleaned(""), "");
}

}  // namespace
}  // namespace profd
