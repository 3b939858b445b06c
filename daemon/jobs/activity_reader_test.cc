#include "daemon/jobs/activity_reader.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/stat.h>

#include <thread>

#include "base/clock.h"
#include "daemon/jobs/test_support.h"

namespace profd {
namespace {

using attach::ActivityType;
using attach::KernelRecord;

constexpr int64_t kNow = 1000 * kNsPerSecond;

std::unique_ptr<ActivityReader> Open(TestActivityRing& ring) {
  auto reader = ActivityReader::Map(UniqueFd(::dup(ring.fd().get())));
  EXPECT_TRUE(reader.ok()) << reader.status().ToString();
  return reader.ok() ? std::move(reader).value() : nullptr;
}

class ActivityReaderTest : public ::testing::Test {
 protected:
  Result<ActivityReader::Round> Take() { return reader_->Take(ActivityScratch::kBytes, kNow, &scratch_); }

  TestActivityRing ring_;
  std::unique_ptr<ActivityReader> reader_ = Open(ring_);
  ActivityScratch scratch_;
};

TEST_F(ActivityReaderTest, TakesWhatWasPublished) {
  ring_.PutKernel(kNow, "MatMul", 41);
  ring_.PutKernel(kNow + 5, "\033Add", 42);
  ring_.writer().Flush();
  auto round = Take();
  ASSERT_TRUE(round.ok()) << round.status().ToString();
  EXPECT_EQ(round->records, 2u);
  EXPECT_EQ(round->bytes, ring_.header().head.load());
  ASSERT_EQ(scratch_.frames().size(), 2u);
  EXPECT_EQ(scratch_.frames()[0].type, ActivityType::kNames);
  const ActivityFrame& frame = scratch_.frames()[1];
  const auto kernels = frame.As<KernelRecord>();
  ASSERT_EQ(kernels.size(), 2u);
  EXPECT_TRUE(frame.As<attach::ApiRecord>().empty());
  EXPECT_EQ(kernels[1].correlation, 42u);
  EXPECT_EQ(frame.base_ns + kernels[1].start, kNow + 5);
  EXPECT_EQ(reader_->names().Find(kernels[0].name), "MatMul");
  EXPECT_EQ(reader_->names().Find(kernels[1].name), "?Add");
  EXPECT_EQ(reader_->names().Find(3), "");
  EXPECT_EQ(ring_.header().tail.load(), ring_.header().head.load());
  EXPECT_EQ(Take()->bytes, 0u);
}

TEST_F(ActivityReaderTest, TakesNoMoreThanAsked) {
  for (int i = 0; i < 20'000; ++i) ring_.PutKernel(kNow);
  ring_.writer().Flush();
  const uint64_t all = reader_->Waiting();
  size_t records = 0;
  for (uint64_t left = all; left > 0;) {
    auto round = reader_->Take(attach::kMaxFrameBytes, kNow, &scratch_);
    ASSERT_TRUE(round.ok());
    ASSERT_GT(round->bytes, 0u);
    EXPECT_LE(round->bytes, attach::kMaxFrameBytes);
    records += round->records;
    left -= round->bytes;
    EXPECT_EQ(reader_->Waiting(), left);
  }
  EXPECT_EQ(records, 20'000u);
}

TEST_F(ActivityReaderTest, EveryRecordIsTakenOrCountedAsLost) {
  constexpr uint64_t kAdded = 400'000;
  uint64_t taken = 0;
  uint64_t dropped = 0;
  uint64_t reported = 0;
  const auto take = [&] {
    auto round = Take();
    ASSERT_TRUE(round.ok()) << round.status().ToString();
    dropped += round->dropped;
    for (const ActivityFrame& frame : scratch_.frames()) {
      for (const KernelRecord& kernel : frame.As<KernelRecord>()) {
        ++taken;
        EXPECT_EQ(kernel.correlation, taken + reported);
      }
      for (const attach::LossRecord& loss : frame.As<attach::LossRecord>()) reported += loss.count;
    }
  };
  std::thread process([this] {
    for (uint64_t i = 1; i <= kAdded; ++i) ring_.PutKernel(kNow, "MatMul", i);
    ring_.writer().Flush();
  });
  while (taken + dropped < kAdded / 4) take();  // what the ring dropped it may report only at the next flush
  process.join();
  take();
  ring_.writer().Flush();  // a record of losses that did not fit
  take();
  EXPECT_EQ(taken + dropped, kAdded);
  EXPECT_EQ(reported, dropped);
}

// The process writes a clock for each buffer of the vendor's; in a full ring it drops and counts these, too.
TEST_F(ActivityReaderTest, ADroppedClockIsNoDroppedRecord) {
  constexpr uint64_t kAdded = 40'000;  // 1.6 MB for a ring of 1 MiB
  for (uint64_t i = 0; i < kAdded; ++i) ring_.PutKernel(kNow);
  for (int i = 0; i < 1000; ++i) {  // more than a frame of kernels leaves
    ring_.writer().Add(attach::ClockRecord{1, 1, 1}, kNow);
    ring_.writer().Flush();
  }
  ASSERT_GT(ring_.header().dropped[static_cast<size_t>(ActivityType::kClock)].load(), 0u);
  auto round = Take();
  ASSERT_TRUE(round.ok()) << round.status().ToString();
  uint64_t kernels = 0;
  for (const ActivityFrame& frame : scratch_.frames()) kernels += frame.As<KernelRecord>().size();
  EXPECT_EQ(kernels + round->dropped, kAdded);
}

TEST_F(ActivityReaderTest, FramesFromTheFutureBeginNow) {
  ring_.PutKernel(kNow + 3600 * kNsPerSecond);
  ring_.writer().Flush();
  auto round = Take();
  ASSERT_TRUE(round.ok());
  EXPECT_EQ(round->clamped, 1u);
  EXPECT_EQ(scratch_.frames().back().base_ns, kNow);
}

TEST(ActivityReader, CountsRecordsThatEndedBeforeTheyBegan) {
  TestActivityRing ring;
  ActivityScratch scratch;
  ring.writer().CountClamped();
  auto reader = Open(ring);
  ring.writer().CountClamped();
  ring.writer().CountClamped();
  ring.PutKernel(kNow);
  ring.PutKernel(kNow + 3600 * kNsPerSecond);  // a frame of its own
  ring.writer().Flush();
  EXPECT_EQ(reader->Take(ActivityScratch::kBytes, kNow, &scratch)->clamped, 3u);
  EXPECT_EQ(reader->Take(ActivityScratch::kBytes, kNow, &scratch)->clamped, 0u);
}

TEST(ActivityReader, NamesThatWereTooManyAreCountedFromItsBeginOn) {
  TestActivityRing ring;
  ActivityScratch scratch;
  ring.header().names_refused = 4;
  auto reader = Open(ring);
  EXPECT_EQ(reader->Take(ActivityScratch::kBytes, kNow, &scratch)->names_refused, 0u);
  ring.header().names_refused = 11;
  EXPECT_EQ(reader->Take(ActivityScratch::kBytes, kNow, &scratch)->names_refused, 7u);
  ring.header().names_refused = 2;
  EXPECT_EQ(reader->Take(ActivityScratch::kBytes, kNow, &scratch)->names_refused, 0u) << "a count that is none";
}

TEST(ActivityReader, ContinuesWhereAnotherStopped) {
  TestActivityRing ring;
  ActivityScratch scratch;
  {
    auto first = Open(ring);
    ring.PutKernel(kNow, "a", 1);
    ring.writer().Flush();
    ASSERT_EQ(first->Take(ActivityScratch::kBytes, kNow, &scratch)->records, 1u);
    ring.PutKernel(kNow, "b", 2);
    ring.writer().Flush();
  }
  auto second = Open(ring);
  EXPECT_EQ(ring.header().generation.load(), 2u);
  auto round = second->Take(ActivityScratch::kBytes, kNow, &scratch);
  ASSERT_TRUE(round.ok()) << round.status().ToString();
  EXPECT_EQ(round->records, 1u);
  EXPECT_EQ(scratch.frames().back().As<KernelRecord>()[0].correlation, 2u);
  EXPECT_EQ(second->names().Find(1), "");
  ring.writer().Flush();
  ASSERT_TRUE(second->Take(ActivityScratch::kBytes, kNow, &scratch).ok());
  EXPECT_EQ(second->names().Find(1), "a");
  EXPECT_EQ(second->names().Find(2), "b");
}

TEST(ActivityReader, LossesAreCountedFromWhereItBegan) {
  TestActivityRing ring;
  ring.header().dropped[2] = 100;
  ring.header().lost_bytes = 8;
  auto reader = Open(ring);
  ActivityScratch scratch;
  ring.header().dropped[2] = 103;
  ring.header().dropped[4] = 4;
  ring.header().lost_bytes = 24;
  auto round = reader->Take(ActivityScratch::kBytes, kNow, &scratch);
  EXPECT_EQ(round->dropped, 7u);
  EXPECT_EQ(round->lost_bytes, 16u);
  EXPECT_EQ(reader->Take(ActivityScratch::kBytes, kNow, &scratch)->dropped, 0u);
  ring.header().dropped[4] = 3;
  EXPECT_EQ(reader->Take(ActivityScratch::kBytes, kNow, &scratch).status().code(),
            StatusCode::kDataLoss);
}

// The first frame of a ring is of names (24 bytes of "MatMul" behind a head), the second of one kernel.
constexpr size_t kFirstFrame = 0;
constexpr size_t kFirstName = attach::kFrameHeadBytes;
constexpr size_t kSecondFrame = kFirstName + 16;
constexpr size_t kFirstKernel = kSecondFrame + attach::kFrameHeadBytes;

template <class T>
void Poke(TestActivityRing& ring, size_t at, T value) {
  std::memcpy(ring.frames() + at, &value, sizeof value);
}

TEST(ActivityReader, BrokenRingsAreGivenUp) {
  ActivityScratch scratch;
  auto taken = [&scratch](auto spoil) {
    TestActivityRing ring;
    auto reader = Open(ring);
    ring.PutKernel(kNow);
    ring.writer().Flush();
    EXPECT_EQ(ring.header().head.load(), kFirstKernel + sizeof(KernelRecord));
    spoil(ring);
    return reader->Take(ActivityScratch::kBytes, kNow, &scratch).status();
  };
  EXPECT_TRUE(taken([](TestActivityRing&) {}).ok());
  using Spoil = void (*)(TestActivityRing&);
  const Spoil kSpoils[] = {
      [](TestActivityRing& r) { r.header().head += attach::kMinActivityBytes; },
      [](TestActivityRing& r) { r.header().head -= 1; },
      [](TestActivityRing& r) { r.header().head -= 8; },  // cuts the last frame
      [](TestActivityRing& r) { r.header().head = UINT64_MAX; },
      [](TestActivityRing& r) { Poke<uint32_t>(r, kFirstFrame, 0); },
      [](TestActivityRing& r) { Poke<uint32_t>(r, kFirstFrame, 8); },
      [](TestActivityRing& r) { Poke<uint32_t>(r, kFirstFrame, 33); },
      [](TestActivityRing& r) { Poke<uint32_t>(r, kFirstFrame, UINT32_MAX - 7); },
      [](TestActivityRing& r) { Poke<uint16_t>(r, kFirstFrame + 4, 0); },   // a pad in the middle
      [](TestActivityRing& r) { Poke<uint16_t>(r, kFirstFrame + 4, 10); },  // no type
      [](TestActivityRing& r) { Poke<uint16_t>(r, kFirstFrame + 6, 0); },   // no names
      [](TestActivityRing& r) { Poke<uint16_t>(r, kFirstFrame + 6, 2); },
      [](TestActivityRing& r) { Poke<uint32_t>(r, kFirstName, 0); },
      [](TestActivityRing& r) { Poke<uint32_t>(r, kFirstName, attach::kMaxActivityNames + 1); },
      [](TestActivityRing& r) { Poke<uint16_t>(r, kFirstName + 4, 0); },
      [](TestActivityRing& r) { Poke<uint16_t>(r, kFirstName + 4, 9); },
      [](TestActivityRing& r) { Poke<uint16_t>(r, kSecondFrame + 6, 2); },
      [](TestActivityRing& r) { Poke<uint16_t>(r, kSecondFrame + 4, 4); },  // size of another type
      [](TestActivityRing& r) {
        Poke<uint32_t>(r, kFirstKernel + offsetof(KernelRecord, name),
                       attach::kMaxActivityNames + 1);
      },
  };
  for (size_t i = 0; i < std::size(kSpoils); ++i) {
    const Status status = taken(kSpoils[i]);
    EXPECT_EQ(status.code(), StatusCode::kDataLoss) << i << ": " << status.ToString();
  }
}

template <class Record>
Status TakeOne(const Record& record) {
  TestActivityRing ring;
  auto reader = Open(ring);
  ring.writer().Add(record, kNow);
  ring.writer().Flush();
  ActivityScratch scratch;
  return reader->Take(ActivityScratch::kBytes, kNow, &scratch).status();
}

TEST(ActivityReader, RecordsWithoutSenseEndTheRing) {
  attach::ApiRecord api{};
  EXPECT_TRUE(TakeOne(api).ok());
  api.level = 4;
  EXPECT_FALSE(TakeOne(api).ok());
  attach::MarkerRecord marker{};
  EXPECT_TRUE(TakeOne(marker).ok());
  marker.source = 2;
  EXPECT_FALSE(TakeOne(marker).ok());
  marker = {};
  marker.domain = 65536;
  EXPECT_FALSE(TakeOne(marker).ok());
  attach::MemoryRecord memory{};
  EXPECT_FALSE(TakeOne(memory).ok());
  memory.operation = 4;
  EXPECT_TRUE(TakeOne(memory).ok());
  attach::LossRecord loss{};
  EXPECT_FALSE(TakeOne(loss).ok());
  loss.reason = 1;
  EXPECT_TRUE(TakeOne(loss).ok());
  loss.type = 10;
  EXPECT_FALSE(TakeOne(loss).ok());
  attach::CommunicationRecord communication{};
  EXPECT_TRUE(TakeOne(communication).ok());
  communication.communicator = 65536;
  EXPECT_FALSE(TakeOne(communication).ok());
  EXPECT_TRUE(TakeOne(attach::ExternalCorrelationRecord{}).ok());
  EXPECT_TRUE(TakeOne(attach::ClockRecord{}).ok());
}

TEST(ActivityReader, ANameThatChangesEndsTheRing) {
  ActivityNameTable names;
  EXPECT_TRUE(names.Learn(1, "a").ok());
  EXPECT_TRUE(names.Learn(1, "a").ok());
  EXPECT_EQ(names.Learn(1, "b").code(), StatusCode::kDataLoss);
  EXPECT_TRUE(names.Learn(7, "g").ok());
  EXPECT_EQ(names.Find(7), "g");
  EXPECT_EQ(names.Find(6), "");
  EXPECT_EQ(names.Find(0), "");
  EXPECT_EQ(names.Find(UINT32_MAX), "");
}

TEST(ActivityReader, TextIsBounded) {
  ActivityNameTable names;
  const std::string text(attach::kMaxActivityNameBytes, 'n');
  uint32_t id = 0;
  while (names.Learn(++id, text).ok()) ASSERT_LT(id, attach::kMaxActivityNames);
  EXPECT_EQ(id - 1, attach::kMaxActivityNamesBytes / text.size());
}

// A process can take the pages out of its ring: reading them must not make the daemon own new ones.
TEST_F(ActivityReaderTest, AGapStaysAGap) {
  ring_.header().head = attach::kMinActivityBytes;
  ASSERT_EQ(::fallocate(ring_.fd().get(), FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE,
                        attach::kActivityHeaderBytes, attach::kMinActivityBytes),
            0);
  EXPECT_EQ(Take().status().code(),
            StatusCode::kDataLoss);
  struct stat info {};
  ASSERT_EQ(::fstat(ring_.fd().get(), &info), 0);
  EXPECT_EQ(info.st_blocks * 512, static_cast<off_t>(attach::kActivityHeaderBytes));
}

TEST_F(ActivityReaderTest, HeaderChangesAfterwardsDoNotMatter) {
  ring_.PutKernel(kNow);
  ring_.writer().Flush();
  ring_.header().bytes = uint64_t{1} << 40;
  ring_.header().tail = 12345;
  ring_.header().magic = 0;
  EXPECT_EQ(Take()->records, 1u);
}

TEST(ActivityReader, RefusesInvalidRings) {
  auto refused = [](const UniqueFd& fd) {
    return ActivityReader::Map(UniqueFd(::dup(fd.get()))).status().code() == StatusCode::kInvalidArgument;
  };
  constexpr uint64_t kBytes = attach::kMinActivityBytes;
  EXPECT_TRUE(refused(TestActivityRing(kBytes, 0).fd()));
  EXPECT_TRUE(refused(TestActivityRing(kBytes, F_SEAL_SHRINK).fd()));
  EXPECT_TRUE(refused(TestActivityRing(kBytes, F_SEAL_GROW).fd()));
  EXPECT_TRUE(refused(TestActivityRing(kBytes, F_SEAL_SHRINK | F_SEAL_GROW, 4096).fd()));
  EXPECT_TRUE(refused(TestActivityRing(kBytes / 2).fd()));
  EXPECT_TRUE(refused(TestActivityRing(attach::kMaxActivityBytes * 2).fd()));
  for (auto spoil : {+[](TestActivityRing& r) { r.header().magic = 1; },
                     +[](TestActivityRing& r) { r.header().version = 2; },
                     +[](TestActivityRing& r) { r.header().bytes = kBytes * 2; },
                     +[](TestActivityRing& r) { r.header().bytes = 0; },
                     +[](TestActivityRing& r) { r.header().tail = 8; },
                     +[](TestActivityRing& r) { r.header().head = kBytes + 8; },
                     +[](TestActivityRing& r) { r.header().head = r.header().tail = 4; }}) {
    TestActivityRing ring;
    spoil(ring);
    EXPECT_TRUE(refused(ring.fd()));
  }
  EXPECT_TRUE(refused(TestRing().fd()));
  EXPECT_TRUE(refused(UniqueFd()));
}

}  // namespace
}  // namespace profd
