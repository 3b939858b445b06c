#include "proto/attach/activity_ring.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "proto/attach/activity_writer.h"

namespace profd::attach {
namespace {

constexpr int64_t kNow = 1'000'000'000'000;

// A ring in ordinary memory and a consumer as the layout describes it.
class TestRing {
 public:
  explicit TestRing(uint64_t bytes = kMinActivityBytes) : bytes_(bytes) {
    memory_.reset(std::aligned_alloc(4096, ActivityRingBytes(bytes)));
    std::memset(memory_.get(), 0, ActivityRingBytes(bytes));
    writer = std::make_unique<ActivityWriter>(memory_.get(), bytes, 7, 9);
  }

  struct Frame {
    FrameHead head;
    std::vector<std::byte> records;
    template <class Record>
    std::vector<Record> As() const {
      EXPECT_EQ(head.type, static_cast<uint16_t>(kTypeOf<Record>));
      std::vector<Record> all(head.count);
      EXPECT_EQ(records.size(), all.size() * sizeof(Record));
      std::memcpy(all.data(), records.data(), records.size());
      return all;
    }
  };
  // Everything up to the head, pads left out.
  std::vector<Frame> Take() {
    std::vector<Frame> frames;
    const std::byte* at = static_cast<std::byte*>(memory_.get()) + kActivityHeaderBytes;
    uint64_t tail = ring().tail;
    while (tail < ring().head) {
      Frame frame{};
      const uint64_t position = tail & (bytes_ - 1);
      std::memcpy(&frame.head, at + position, kPadHeadBytes);
      EXPECT_GE(frame.head.length, kPadHeadBytes);
      EXPECT_LE(position + frame.head.length, bytes_) << "a frame wraps";
      tail += frame.head.length;
      if (frame.head.type == static_cast<uint16_t>(ActivityType::kPad)) {
        EXPECT_EQ(tail % bytes_, 0u);
        ++pads;
        continue;
      }
      std::memcpy(&frame.head, at + position, sizeof frame.head);
      frame.records.assign(at + position + kFrameHeadBytes, at + position + frame.head.length);
      frames.push_back(frame);
    }
    ring().tail = tail;
    return frames;
  }
  std::map<uint32_t, std::string> Names(const std::vector<Frame>& frames) {
    std::map<uint32_t, std::string> names;
    for (const Frame& frame : frames) {
      if (frame.head.type != static_cast<uint16_t>(ActivityType::kNames)) continue;
      const std::byte* at = frame.records.data();
      for (int i = 0; i < frame.head.count; ++i) {
        NameHead head{};
        std::memcpy(&head, at, sizeof head);
        names[head.id] = {reinterpret_cast<const char*>(at) + sizeof head, head.bytes};
        at += sizeof head + AlignedUp8(head.bytes);
      }
      EXPECT_EQ(at, frame.records.data() + frame.records.size());
    }
    return names;
  }
  ActivityRing& ring() { return *static_cast<ActivityRing*>(memory_.get()); }

  std::unique_ptr<ActivityWriter> writer;
  int pads = 0;

 private:
  struct Free {
    void operator()(void* memory) const { std::free(memory); }
  };
  uint64_t bytes_;
  std::unique_ptr<void, Free> memory_;
};

KernelRecord Kernel(uint64_t correlation) {
  KernelRecord kernel{};
  kernel.correlation = correlation;
  return kernel;
}

TEST(ActivityRing, SizesAreAPowerOfTwoWithinTheLimits) {
  EXPECT_EQ(ActivityBytesFor(0), uint64_t{8} << 20);
  EXPECT_EQ(ActivityBytesFor(1), uint64_t{1} << 20);
  EXPECT_EQ(ActivityBytesFor((uint64_t{2} << 20) + 1), uint64_t{4} << 20);
  EXPECT_EQ(ActivityBytesFor(UINT64_MAX), uint64_t{256} << 20);
}

TEST(ActivityRing, GeometryAndClockAreInTheHeader) {
  TestRing ring;
  EXPECT_EQ(std::memcmp(&ring.ring().magic, "PRFACTV1", 8), 0);
  EXPECT_EQ(ring.ring().version, 1u);
  EXPECT_EQ(ring.ring().bytes, uint64_t{1} << 20);
  EXPECT_EQ(ring.ring().made_real_ns, 7);
  EXPECT_EQ(ring.ring().made_raw_ns, 9);
  EXPECT_EQ(ring.ring().head, 0u);
}

TEST(ActivityRing, NothingIsSeenBeforeItIsFlushed) {
  TestRing ring;
  ring.writer->AddAt(kNow, Kernel(1));
  EXPECT_EQ(ring.ring().head, 0u);
  ring.writer->Flush();
  EXPECT_EQ(ring.writer->published(), 1u);
  ASSERT_EQ(ring.Take().size(), 1u);
  ring.writer->Flush();
  EXPECT_TRUE(ring.Take().empty());
}

TEST(ActivityRing, StartsAreOffsetsFromTheFramesBase) {
  TestRing ring;
  const std::vector<int64_t> starts = {kNow, kNow - 1'000'000'000, kNow + 3'000'000'000, kNow + 17};
  for (const int64_t start : starts) ring.writer->AddAt(start, Kernel(0));
  ring.writer->Flush();
  const auto frames = ring.Take();
  ASSERT_EQ(frames.size(), 1u);
  const auto kernels = frames[0].As<KernelRecord>();
  ASSERT_EQ(kernels.size(), starts.size());
  for (size_t i = 0; i < starts.size(); ++i) {
    EXPECT_EQ(frames[0].head.base_ns + kernels[i].start, starts[i]);
  }
}

TEST(ActivityRing, ATimeTooFarFromTheBaseBeginsAFrame) {
  TestRing ring;
  const std::vector<int64_t> starts = {kNow, kNow + 5'000'000'000, kNow, kNow - 5'000'000'000, 0};
  for (const int64_t start : starts) ring.writer->AddAt(start, Kernel(0));
  ring.writer->Flush();
  const auto frames = ring.Take();
  ASSERT_EQ(frames.size(), starts.size());
  for (size_t i = 0; i < starts.size(); ++i) {
    EXPECT_EQ(frames[i].head.base_ns + frames[i].As<KernelRecord>()[0].start, starts[i]);
  }
}

TEST(ActivityRing, TypesHaveFramesOfTheirOwn) {
  TestRing ring;
  for (uint64_t i = 1; i <= 100; ++i) {
    ring.writer->AddAt(kNow, Kernel(i));
    ApiRecord api{};
    api.correlation = i;
    ring.writer->AddAt(kNow, api);
  }
  ring.writer->Add(ClockRecord{1, 2, 3}, kNow);
  ring.writer->Flush();
  const auto frames = ring.Take();
  ASSERT_EQ(frames.size(), 3u);
  EXPECT_EQ(frames[0].As<ClockRecord>()[0].first_vendor_ns, 3);
  EXPECT_EQ(frames[1].As<KernelRecord>().size(), 100u);
  EXPECT_EQ(frames[2].As<ApiRecord>()[99].correlation, 100u);
}

TEST(ActivityRing, EqualTextsAreOneName) {
  TestRing ring;
  std::string first = "MatMul";
  std::string second = "MatMul";
  const uint32_t id = ring.writer->Intern(first.c_str());
  EXPECT_EQ(id, 1u);
  EXPECT_EQ(ring.writer->Intern(second.c_str()), id);
  EXPECT_EQ(ring.writer->Intern(""), 0u);
  EXPECT_EQ(ring.writer->Intern(nullptr), 0u);
  // The vendor may free a text and have another one at the same address.
  first = "Conv2D";
  EXPECT_EQ(ring.writer->Intern(first.c_str()), 2u);
  first = "MatMul";
  EXPECT_EQ(ring.writer->Intern(first.c_str()), id);
  ring.writer->Flush();
  const auto names = ring.Names(ring.Take());
  EXPECT_EQ(names, (std::map<uint32_t, std::string>{{1, "MatMul"}, {2, "Conv2D"}}));
}

TEST(ActivityRing, NamesComeBeforeTheRecordsThatHaveThem) {
  TestRing ring;
  for (int i = 0; i < 3000; ++i) {
    KernelRecord kernel = Kernel(0);
    kernel.name = ring.writer->Intern(("kernel " + std::to_string(i)).c_str());
    ring.writer->AddAt(kNow, kernel);
  }
  ring.writer->Flush();
  std::map<uint32_t, std::string> known;
  size_t kernels = 0;
  for (const auto& frame : ring.Take()) {
    if (frame.head.type == static_cast<uint16_t>(ActivityType::kNames)) {
      known.merge(ring.Names({frame}));
      continue;
    }
    for (const KernelRecord& kernel : frame.As<KernelRecord>()) {
      EXPECT_EQ(known[kernel.name], "kernel " + std::to_string(kernels++));
    }
  }
  EXPECT_EQ(kernels, 3000u);
}

TEST(ActivityRing, LongNamesAreCutBeforeABrokenCharacter) {
  TestRing ring;
  // The mark has three bytes: of the character's two the first has space, the second not.
  const std::string begin(kMaxActivityNameBytes - 4, 'n');
  const uint32_t id = ring.writer->Intern((begin + "\xC3\xA9" + "and more").c_str());
  EXPECT_EQ(ring.writer->Intern((begin + "\xC3\xA9" + "and other").c_str()), id);
  EXPECT_NE(ring.writer->Intern(begin.c_str()), id);
  const std::string longest(kMaxActivityNameBytes, 'n');
  const uint32_t longest_id = ring.writer->Intern(longest.c_str());
  ring.writer->Flush();
  const auto names = ring.Names(ring.Take());
  EXPECT_EQ(names.at(id), begin + "\xE2\x80\xA6") << "which shows that there was more";
  EXPECT_EQ(names.at(longest_id), longest);
}

TEST(ActivityRing, NamesThatAreTooManyHaveOneNumberAndAreCounted) {
  TestRing ring;
  for (uint32_t i = 1; i < kMaxActivityNames; ++i) {
    ASSERT_EQ(ring.writer->Intern(std::to_string(i).c_str()), i);
  }
  ring.writer->Flush();
  ring.Take();
  EXPECT_EQ(ring.writer->Intern("one too many"), kMaxActivityNames);
  EXPECT_EQ(ring.writer->Intern("another"), kMaxActivityNames);
  EXPECT_EQ(ring.writer->Intern("17"), 17u);
  EXPECT_EQ(ring.writer->Intern(""), 0u) << "none";
  ring.writer->Flush();
  EXPECT_EQ(ring.ring().names_refused, 2u);
  EXPECT_EQ(ring.Names(ring.Take())[kMaxActivityNames], "(too many names)");
}

TEST(ActivityRing, TooMuchTextHasOneNumber) {
  TestRing ring;
  const std::string padding(kMaxActivityNameBytes - 8, 'x');
  uint32_t given = 0;
  for (int i = 0; i < 3000; ++i) {
    given = std::max(given, ring.writer->Intern((std::to_string(10'000'000 + i) + padding).c_str()));
  }
  // 8 MiB have space for 2048 of 4096 bytes; the last one is the text of all that are too many.
  EXPECT_EQ(given, 2048u);
  ring.writer->Flush();
  EXPECT_EQ(ring.ring().names_refused, 3000u - 2047u);
}

TEST(ActivityRing, ANewConsumerIsSentAllNames) {
  TestRing ring;
  ring.ring().generation = 1;
  ring.writer->Intern("a");
  ring.writer->Intern("b");
  ring.writer->Flush();
  EXPECT_EQ(ring.Names(ring.Take()).size(), 2u);
  ring.writer->Flush();
  EXPECT_TRUE(ring.Take().empty());
  ring.ring().generation += 1;
  ring.writer->Flush();
  EXPECT_EQ(ring.Names(ring.Take()), (std::map<uint32_t, std::string>{{1, "a"}, {2, "b"}}));
}

// Exact accounting over many turns of the ring: every record comes, in order, or is counted as lost.
TEST(ActivityRing, AFullRingDropsTheNewOnesAndReportsIt) {
  TestRing ring;
  constexpr uint64_t kAdded = 300'000;
  uint64_t taken = 0;
  uint64_t lost = 0;
  uint64_t last = 0;
  const auto take = [&] {
    for (const auto& frame : ring.Take()) {
      if (frame.head.type == static_cast<uint16_t>(ActivityType::kLoss)) {
        for (const LossRecord& loss : frame.As<LossRecord>()) {
          EXPECT_EQ(loss.type, static_cast<uint16_t>(ActivityType::kKernel));
          EXPECT_EQ(loss.reason, static_cast<uint16_t>(LossReason::kRingFull));
          EXPECT_EQ(loss.from_ns, kNow + static_cast<int64_t>(last) + 1) << "where the gap begins";
          EXPECT_EQ(loss.to_ns, loss.from_ns + static_cast<int64_t>(loss.count) - 1);
          lost += loss.count;
          last += loss.count;
        }
        continue;
      }
      for (const KernelRecord& kernel : frame.As<KernelRecord>()) {
        EXPECT_EQ(kernel.correlation, ++last);
        EXPECT_EQ(frame.head.base_ns + kernel.start, kNow + static_cast<int64_t>(last));
        ++taken;
      }
    }
  };
  for (uint64_t i = 1; i <= kAdded; ++i) {
    ring.writer->AddAt(kNow + static_cast<int64_t>(i), Kernel(i));
    if (i % 60'013 == 0) take();  // 40 bytes each: a ring and a half
  }
  ring.writer->Flush();
  take();
  ring.writer->Flush();
  take();
  EXPECT_GT(lost, 0u);
  EXPECT_GT(ring.pads, 0);
  EXPECT_EQ(taken + lost, kAdded);
  EXPECT_EQ(ring.writer->dropped(), lost);
}

TEST(ActivityRing, LostBytesAreReported) {
  TestRing ring;
  ring.writer->CountLostBytes(LossReason::kNoBuffer, 100, kNow);
  ring.writer->CountLostBytes(LossReason::kNoBuffer, 20, kNow + 5);
  ring.writer->CountLostBytes(LossReason::kUnknownKind, 0, kNow);
  ring.writer->Flush();
  const auto frames = ring.Take();
  ASSERT_EQ(frames.size(), 1u);
  const auto losses = frames[0].As<LossRecord>();
  ASSERT_EQ(losses.size(), 1u);
  EXPECT_EQ(losses[0].count, 120u);
  EXPECT_EQ(losses[0].type, 0u);
  EXPECT_EQ(losses[0].reason, 2u);
  EXPECT_EQ(losses[0].from_ns, kNow);
  EXPECT_EQ(losses[0].to_ns, kNow + 5);
  EXPECT_EQ(ring.ring().lost_bytes, 120u);
}

TEST(ActivityRing, ASpoiltTailIsAFullRing) {
  TestRing ring;
  for (const uint64_t tail : {uint64_t{8}, UINT64_MAX - 7}) {
    ring.ring().tail = tail;
    std::vector<KernelRecord> many(30'000);
    for (const KernelRecord& kernel : many) ring.writer->AddAt(kNow, kernel);
    ring.writer->Flush();
  }
  EXPECT_EQ(ring.writer->published() + ring.writer->dropped(), 60'000u);
  EXPECT_LE(ring.ring().head, kMinActivityBytes);
}

}  // namespace
}  // namespace profd::attach
