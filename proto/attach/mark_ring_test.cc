#include <gtest/gtest.h>

#include <cstdlib>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "proto/attach/mark_ring_writer.h"

namespace profd::attach {
namespace {

// A ring in ordinary memory and a consumer as the layout describes it.
class TestRing {
 public:
  explicit TestRing(uint32_t slots) : slots_(slots) {
    memory_.reset(std::aligned_alloc(4096, RingBytes(slots)));
    std::memset(memory_.get(), 0xA5, RingBytes(slots));  // Format must not rely on zeros
    writer = MarkRingWriter::Format(memory_.get(), slots);
  }

  struct Taken {
    int64_t time_ns, value;
    int32_t thread;
    uint16_t kind;
    std::string name;
  };
  bool Take(Taken* out) {
    MarkSlot& slot = SlotAt(position);
    if (slot.sequence.load(std::memory_order_acquire) != position + 1) return false;
    *out = {slot.time_ns, slot.value, slot.thread, slot.kind, {slot.name, slot.name_bytes}};
    slot.sequence.store(position + slots_, std::memory_order_release);
    ++position;
    return true;
  }
  MarkSlot& SlotAt(uint64_t at) {
    auto* first =
        reinterpret_cast<MarkSlot*>(static_cast<std::byte*>(memory_.get()) + kRingHeaderBytes);
    return first[at & (slots_ - 1)];
  }
  MarkRing& ring() { return *static_cast<MarkRing*>(memory_.get()); }

  MarkRingWriter writer;
  uint64_t position = 0;

 private:
  struct Free {
    void operator()(void* memory) const { std::free(memory); }
  };
  uint32_t slots_;
  std::unique_ptr<void, Free> memory_;
};

TEST(MarkRing, SlotsAreAPowerOfTwoWithinTheLimits) {
  EXPECT_EQ(RingSlotsFor(0), kDefaultRingSlots);
  EXPECT_EQ(RingSlotsFor(1), kMinRingSlots);
  EXPECT_EQ(RingSlotsFor(257), 512U);
  EXPECT_EQ(RingSlotsFor(1024), 1024U);
  EXPECT_EQ(RingSlotsFor(UINT32_MAX), kMaxRingSlots);
}

TEST(MarkRing, GeometryIsInTheHeader) {
  TestRing ring(256);
  EXPECT_EQ(ring.ring().magic, kRingMagic);
  EXPECT_EQ(ring.ring().version, kRingVersion);
  EXPECT_EQ(ring.ring().slots, 256U);
  EXPECT_EQ(ring.ring().tail.load(), 0U);
}

TEST(MarkRing, TakesPublishedMarks) {
  TestRing ring(256);
  EXPECT_TRUE(ring.writer.Publish({MarkKind::kStepBegin, 17, -3, 42, "x"}));
  TestRing::Taken taken;
  ASSERT_TRUE(ring.Take(&taken));
  EXPECT_EQ(taken.time_ns, 17);
  EXPECT_EQ(taken.value, -3);
  EXPECT_EQ(taken.thread, 42);
  EXPECT_EQ(taken.kind, static_cast<uint16_t>(MarkKind::kStepBegin));
  EXPECT_EQ(taken.name, "x");
  EXPECT_FALSE(ring.Take(&taken));
}

TEST(MarkRing, AFullRingDropsTheNewOnes) {
  TestRing ring(256);
  for (int i = 0; i < 300; ++i) {
    EXPECT_EQ(ring.writer.Publish({MarkKind::kMark, i, 0, 0, {}}), i < 256);
  }
  EXPECT_EQ(ring.writer.published(), 256U);
  EXPECT_EQ(ring.writer.dropped(), 44U);
  TestRing::Taken taken;
  ASSERT_TRUE(ring.Take(&taken));
  EXPECT_EQ(taken.time_ns, 0);
  EXPECT_TRUE(ring.writer.Publish({MarkKind::kMark, 1000, 0, 0, {}}));
  EXPECT_FALSE(ring.writer.Publish({MarkKind::kMark, 1001, 0, 0, {}}));
}

TEST(MarkRing, ABrokenRingDoesNotLoopEndlessly) {
  TestRing ring(256);
  ring.SlotAt(0).sequence.store(1'000'000);
  EXPECT_FALSE(ring.writer.Publish({}));
  EXPECT_EQ(ring.writer.dropped(), 1U);
}

TEST(MarkRing, NamesAreCutBeforeABrokenCharacter) {
  EXPECT_EQ(CutMarkName(nullptr), "");
  // Not a literal: g++ 12 with -O2 would warn of what lies behind one.
  const std::string step = "step";
  EXPECT_EQ(CutMarkName(step.c_str()), "step");
  const std::string fits(kMarkNameBytes, 'n');
  EXPECT_EQ(CutMarkName(fits.c_str()), fits);
  EXPECT_EQ(CutMarkName((fits + "n").c_str()), fits);
  const std::string two = "\xC3\xA9", three = "\xE2\x82\xAC", four = "\xF0\x9F\x98\x80";
  for (const std::string& character : {two, three, four}) {
    for (size_t before = kMarkNameBytes - character.size() + 1; before < kMarkNameBytes; ++before) {
      const std::string name = std::string(before, 'n') + character + "tail";
      EXPECT_EQ(CutMarkName(name.c_str()), std::string(before, 'n'));
    }
    const std::string last = std::string(kMarkNameBytes - character.size(), 'n') + character;
    EXPECT_EQ(CutMarkName((last + "more").c_str()), last);
  }
  const std::string no_utf8(200, '\x80');
  EXPECT_EQ(CutMarkName(no_utf8.c_str()).size(), kMarkNameBytes - 3);
}

TEST(MarkRing, TheHeadIsFoundAgain) {
  for (const int published : {0, 1, 200, 256}) {
    for (int taken = 0; taken <= published; taken += 50) {
      for (const int more : {0, 30}) {
        TestRing ring(256);
        TestRing::Taken mark;
        for (int i = 0; i < published; ++i) ring.writer.Publish({});
        for (int i = 0; i < taken; ++i) ASSERT_TRUE(ring.Take(&mark));
        // More than was free before, so that slots the consumer emptied are used again.
        for (int i = 0; i < more; ++i) ring.writer.Publish({});
        ring.writer.MendHead();
        EXPECT_EQ(ring.ring().head.load(), ring.position) << published << " " << taken;
      }
    }
  }
}

// Exact accounting: every mark of 64 threads is either taken once, in its thread's order, or
// counted.
TEST(MarkRing, SixtyFourThreadsLoseNothingUncounted) {
  constexpr int kThreads = 64;
  constexpr int64_t kMarks = 4000;
  TestRing ring(256);
  std::atomic<int> running = kThreads;
  std::atomic<uint64_t> refused = 0;
  std::vector<std::thread> threads;
  for (int thread = 0; thread < kThreads; ++thread) {
    threads.emplace_back([&, thread] {
      const std::string name = "thread " + std::to_string(thread);
      for (int64_t i = 0; i < kMarks; ++i) {
        if (!ring.writer.Publish({MarkKind::kMark, i, i * thread, thread, name})) ++refused;
      }
      --running;
    });
  }
  std::vector<int64_t> last(kThreads, -1);
  uint64_t taken_count = 0;
  auto drain = [&] {
    TestRing::Taken taken;
    while (ring.Take(&taken)) {
      ASSERT_GE(taken.thread, 0);
      ASSERT_LT(taken.thread, kThreads);
      EXPECT_EQ(taken.name, "thread " + std::to_string(taken.thread));
      EXPECT_EQ(taken.value, taken.time_ns * taken.thread);
      int64_t& before = last[static_cast<size_t>(taken.thread)];
      EXPECT_GT(taken.time_ns, before);
      before = taken.time_ns;
      ++taken_count;
    }
  };
  while (running > 0) drain();
  for (std::thread& thread : threads) thread.join();
  drain();
  EXPECT_EQ(ring.writer.published(), taken_count);
  EXPECT_EQ(ring.writer.dropped(), refused.load());
  EXPECT_EQ(ring.writer.published() + ring.writer.dropped(), uint64_t{kThreads} * kMarks);
}

}  // namespace
}  // namespace profd::attach
