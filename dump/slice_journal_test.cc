#include "dump/slice_journal.h"

#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/bytes.h"
#include "base/crc32c.h"
#include "dump/slice_index.h"
#include "dump/test_support.h"

namespace profd {
namespace {

SliceEntry Entry(int k, uint64_t records = 7) {
  return {.path = "device_0/data/hbm.data.0.slice_" + std::to_string(k), .bytes = 2097168, .records = records,
          .crc32c = 0x0000abcd, .first_ns = 1000 + k, .last_ns = 2000 + k, .closed_ns = 3000 + k};
}

TEST(SliceJournalTest, HasWhatWasWritten) {
  SliceEntry first = Entry(0);
  SliceEntry second = Entry(1);
  EXPECT_EQ(ClosedLine(first),
            "closed\tdevice_0/data/hbm.data.0.slice_0\t2097168\t7\t0000abcd\t1000\t2000\t3000\n");
  second.stored_bytes = 99;
  second.stored_crc32c = 0xffffffff;
  first.aged_ns = 5000;
  ForgottenSlices gone{"host/data/host_cpu.data", 3, 400, 50, 10, 20, 30};
  SliceJournal journal =
      ParseSliceJournal(ClosedLine(first) + ClosedLine(second) + CompressedLine(second) +
                        AgedLine(first) + ForgottenLine(gone));
  EXPECT_EQ(journal.bad_lines, 0u);
  EXPECT_FALSE(journal.torn);
  first.aged = second.compressed = true;
  EXPECT_EQ(journal.slices, (std::vector{first, second}));
  EXPECT_EQ(journal.Find(second.path), &journal.slices[1]);
  EXPECT_EQ(journal.Find("device_0/data/hbm.data.0.slice_2"), nullptr);
  EXPECT_EQ(journal.forgotten["host/data/host_cpu.data"], gone);
}

TEST(SliceJournalTest, ACutOffLineCountsForNothing) {
  const std::string whole = ClosedLine(Entry(0));
  const std::string next = ClosedLine(Entry(1));
  for (size_t cut = 1; cut < next.size(); ++cut) {
    SliceJournal journal = ParseSliceJournal(whole + next.substr(0, cut));
    EXPECT_TRUE(journal.torn) << cut;
    EXPECT_EQ(journal.slices.size(), 1u) << cut;
    EXPECT_EQ(journal.bad_lines, 0u) << cut;
  }
}

TEST(SliceJournalTest, NonsenseIsCountedAndLeftOut) {
  for (const std::string& line : std::initializer_list<std::string>{
           "closed\t../../etc/passwd\t1\t1\t00000000\t1\t2\t3\n",
           "closed\t/etc/passwd\t1\t1\t00000000\t1\t2\t3\n",
           "closed\tx.slice_0\t-1\t1\t00000000\t1\t2\t3\n",
           "closed\tx.slice_0\t1\t1\t0000000\t1\t2\t3\n",
           "closed\tx.slice_0\t1\t1\t0000000g\t1\t2\t3\n",
           "closed\tx.slice_0\t1\t1\t00000000\t1\t2\n",
           "closed\tx.slice_0\t1\t1\t00000000\t1\t2\t3\t4\t5\t6\n",
           "closed\tx.slice_0\t99999999999999999999999\t1\t00000000\t1\t2\t3\n",
           "compressed\tnobody.slice_0\t1\t00000000\n", "aged\tx.slice_0\t1\t1\t1\t1\n",
           "forgotten\tx\t1\n", std::string(40, '\0') + "\n"}) {
    SliceJournal journal = ParseSliceJournal(line + ClosedLine(Entry(3)));
    EXPECT_EQ(journal.bad_lines, 1u) << line;
    EXPECT_EQ(journal.slices.size(), 1u) << line;
  }
  // What a later version adds is not nonsense.
  EXPECT_EQ(ParseSliceJournal("moved\ta\tb\n").bad_lines, 0u);
}

TEST(SliceJournalTest, KnowsTheFileOfASlice) {
  EXPECT_EQ(FileOfSlice("host/data/host_cpu.data.slice_12"), "host/data/host_cpu.data");
  EXPECT_EQ(FileOfSlice("device_0/data/hbm.data.0.slice_3.zst"), "device_0/data/hbm.data.0");
  EXPECT_EQ(FileOfSlice("device_0/data/hbm.data.0.slice_3.done"), "");
  EXPECT_EQ(FileOfSlice("host/info.json"), "");
  EXPECT_EQ(FileOfSlice("host/data/x.slice_"), "");
}

class SliceIndexTest : public testing::Test {
 protected:
  SliceIndexTest() : dir_(::open(tmp_.path().c_str(), O_RDONLY | O_DIRECTORY)) {
    index_.SetDir(dir_.get());
  }
  SliceJournal Journal() { return ParseSliceJournal(ReadText(tmp_ / "slices.tsv")); }
  void ExpectSumIsRight() {
    const std::string text = ReadText(tmp_ / "slices.tsv");
    EXPECT_EQ(index_.bytes(), text.size());
    EXPECT_EQ(index_.crc32c(), Crc32c(AsBytes(text)));
  }

  TempDir tmp_;
  UniqueFd dir_;
  FullDiskIo io_;
  SliceIndex index_{io_, Myself()};
};

TEST_F(SliceIndexTest, EveryLineIsThereAtOnce) {
  index_.Closed(Entry(0));
  EXPECT_EQ(Journal().slices.size(), 1u);
  index_.Compressed(Entry(0).path, 50, 1);
  EXPECT_TRUE(Journal().slices[0].compressed);
  EXPECT_TRUE(index_.Find(Entry(0).path)->compressed);
  EXPECT_TRUE(index_.Aged(Entry(0).path, 9, [this] {
    // Before anything is removed.
    EXPECT_TRUE(Journal().Find(Entry(0).path)->aged);
    return true;
  }));
  EXPECT_TRUE(Journal().slices[0].aged);
  EXPECT_EQ(index_.Find(Entry(0).path), nullptr);
  ExpectSumIsRight();
}

TEST_F(SliceIndexTest, LossesAreThereAtOnceAndGoWhenTheManifestHasThem) {
  const JournalLoss loss{3, 1, "hbm", LossReason::kDriver, 17, 408, 1000, 2000, 5};
  index_.Lost(loss);
  EXPECT_EQ(Journal().losses, std::vector{loss});
  EXPECT_EQ(Journal().bad_lines, 0u);
  // A day of losses is no larger than some minutes of them.
  for (int second = 0; second < 86'400; second += 10) {
    for (int line = 0; line < 10; ++line) index_.Lost(loss);
    index_.ManifestReplaced();
  }
  const JournalLoss late{-1, 0, "host_cpu", LossReason::kLate, 1, 0, 3000, 4000, 1};
  index_.Lost(late);
  EXPECT_LT(index_.lines(), 20'000u);
  EXPECT_EQ(Journal().losses.back(), late);
  ExpectSumIsRight();
}

TEST_F(SliceIndexTest, AFullDiskDelaysLinesAndTearsNone) {
  index_.Closed(Entry(0));
  io_.free_bytes = 10;
  index_.Closed(Entry(1));
  EXPECT_EQ(Journal().slices.size(), 1u);
  EXPECT_FALSE(Journal().torn);
  EXPECT_FALSE(index_.Flush().ok());
  io_.free_bytes = SIZE_MAX;
  EXPECT_TRUE(index_.Flush().ok());
  EXPECT_EQ(Journal().slices.size(), 2u);
  ExpectSumIsRight();
}

TEST_F(SliceIndexTest, ForgetsOldRemovals) {
  constexpr int kSlices = 20'000;
  for (int k = 0; k < kSlices; ++k) {
    index_.Closed(Entry(k));
    if (k >= 10) index_.Aged(Entry(k - 10).path, k, [] { return true; });
  }
  EXPECT_LT(index_.lines(), 10'000u);
  ExpectSumIsRight();
  SliceJournal journal = Journal();
  EXPECT_EQ(journal.bad_lines, 0u);
  uint64_t there = 0;
  uint64_t gone = journal.forgotten["device_0/data/hbm.data.0"].slices;
  EXPECT_GT(gone, 0u);
  for (const SliceEntry& slice : journal.slices) (slice.aged ? gone : there) += 1;
  EXPECT_EQ(there, 10u);
  EXPECT_EQ(gone, uint64_t{kSlices - 10});
  EXPECT_EQ(journal.forgotten["device_0/data/hbm.data.0"].from_ns, 1000);
}

}  // namespace
}  // namespace profd
