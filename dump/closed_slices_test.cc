#include "dump/closed_slices.h"

#include <gtest/gtest.h>

#include <filesystem>
#include <optional>

#include "dump/parts_test_support.h"

namespace profd {
namespace {

class ClosedSlicesTest : public DumpPartsTest {
 protected:
  ClosedSlices& Make(ClosedSlices::Options options = {}) {
    ClosedSlices& closed = closed_.emplace(
        ClosedSlices::Dump{folders_, files_, manifest_, manifest_writer_, sync_, clock_}, options);
    closed.index().SetDir(folders_.own());
    return closed;
  }
  DumpFile& Watched(const std::string& base, uint64_t slice_bytes = 100) {
    DumpFile& file = Open(0, base, slice_bytes);
    closed_->Watch(file);
    return file;
  }
  bool IsThere(const std::string& path) { return std::filesystem::exists(folders_.path() + "/" + path); }

  std::optional<ClosedSlices> closed_;
};

TEST_F(ClosedSlicesTest, TheOldestGoesFirstAndIsCounted) {
  ClosedSlices& closed = Make();
  DumpFile& hbm = Watched("hbm.data");
  hbm.channel_id = 1;
  DumpFile& other = Watched("other.data");
  other.collector = "host_cpu";
  for (int i = 0; i < 2; ++i) {
    for (DumpFile* file : {&other, &hbm}) {
      clock_.Advance(kNsPerSecond);
      ASSERT_TRUE(Append(*file, 100, clock_.raw_ns).ok());
    }
  }
  const int64_t second_ns = clock_.raw_ns - 2 * kNsPerSecond;
  EXPECT_EQ(closed.OldestNs(), second_ns - kNsPerSecond);
  const uint64_t before = SizeOf();
  EXPECT_EQ(folders_.bytes(), before);
  EXPECT_TRUE(closed.RemoveOldest(nullptr));
  EXPECT_FALSE(IsThere(other.PathOf(0)));
  EXPECT_TRUE(IsThere(hbm.PathOf(0)));
  EXPECT_EQ(SizeOf(), before * 3 / 4);
  EXPECT_EQ(closed.AgeFor(1), before / 4);
  EXPECT_FALSE(IsThere(hbm.PathOf(0)));
  EXPECT_EQ(folders_.bytes(), SizeOf());
  // The last slice of a file stays.
  EXPECT_FALSE(closed.RemoveOldest(nullptr));
  EXPECT_EQ(closed.OldestNs(), 0);
  EXPECT_TRUE(IsThere(hbm.PathOf(1)));
  ASSERT_EQ(manifest_.channels.size(), 2u);
  EXPECT_EQ(manifest_.channels[1].channel, 1u);
  EXPECT_EQ(manifest_.channels[1].aged.records, 1u);
  EXPECT_EQ(manifest_.channels[1].aged.bytes, 100u);
  EXPECT_EQ(manifest_.channels[1].aged.from_ns, second_ns);
  EXPECT_EQ(manifest_.aged_for_space, 1u);  // not what a limit removed
  const std::vector<AgedCount> aged = closed.TakeAged();
  ASSERT_EQ(aged.size(), 2u);
  EXPECT_EQ(aged[0].collector, "host_cpu");
  EXPECT_EQ(aged[1].bytes, 100u);
  EXPECT_TRUE(closed.TakeAged().empty());
  EXPECT_TRUE(manifest_writer_.TakeDue());
}

TEST_F(ClosedSlicesTest, TheLastSliceGoesOnlyBeforeWhatComes) {
  ClosedSlices& closed = Make();
  DumpFile& hbm = Watched("hbm.data");
  ASSERT_TRUE(Append(hbm, 100).ok());
  EXPECT_FALSE(closed.RemoveOldest(nullptr));
  EXPECT_FALSE(closed.RemoveOldest(&Folder(5)));
  hbm.appending = true;
  EXPECT_FALSE(closed.RemoveOldest(&Folder(5)));
  // A full volume may refuse what is about to come.
  EXPECT_EQ(closed.AgeFor(1), 0u);
  EXPECT_TRUE(closed.RemoveOldest(&Folder(0)));
}

TEST_F(ClosedSlicesTest, WithoutAgeingEverythingStays) {
  ClosedSlices& closed = Make();
  DumpFile& hbm = Watched("hbm.data");
  for (int i = 0; i < 3; ++i) ASSERT_TRUE(Append(hbm, 100).ok());
  closed.NeverAge();
  EXPECT_FALSE(closed.RemoveOldest(nullptr));
  EXPECT_EQ(closed.AgeFor(1), 0u);
  EXPECT_EQ(closed.OldestNs(), 0);
  EXPECT_TRUE(IsThere(hbm.PathOf(0)));
}

TEST_F(ClosedSlicesTest, CompressedSlicesTakeWhatTheyTake) {
  constexpr uint64_t kSlice = 64 << 10;
  ClosedSlices& closed = Make({.compress = 1, .most_bytes = kSlice});
  DumpFile& hbm = Watched("hbm.data", kSlice);
  DumpFile& large = Watched("large.data", 2 * kSlice);
  ASSERT_TRUE(Append(hbm, kSlice).ok());
  ASSERT_TRUE(Append(hbm, kSlice).ok());
  ASSERT_TRUE(Append(large, 2 * kSlice).ok());
  closed.FinishCompressing();
  EXPECT_TRUE(IsThere(large.PathOf(0)));
  EXPECT_EQ(folders_.bytes(), SizeOf());
  EXPECT_EQ(Folder(0).bytes, SizeOf("device_0"));
  EXPECT_EQ(closed.stored(Folder(0)), SizeOf("device_0"));
  for (uint32_t slice : {0, 1}) {
    EXPECT_EQ(closed.index().Find(hbm.PathOf(slice))->compressed, IsThere(hbm.PathOf(slice) + ".zst"));
  }
  // Its compressed form is what goes.
  EXPECT_TRUE(closed.RemoveOldest(nullptr));
  EXPECT_FALSE(IsThere(hbm.PathOf(0)) || IsThere(hbm.PathOf(0) + ".zst"));
  EXPECT_EQ(folders_.bytes(), SizeOf());
}

}  // namespace
}  // namespace profd
