#include "dump/dump_space.h"

#include <gtest/gtest.h>

#include <filesystem>

#include "dump/parts_test_support.h"

namespace profd {
namespace {

constexpr uint64_t kMiB = 1 << 20;

class DumpSpacePartTest : public DumpPartsTest {
 protected:
  DumpSpacePartTest() { closed_.index().SetDir(folders_.own()); }
  DumpSpace Make(DumpSpace::Limits limits) {
    return DumpSpace({folders_, files_, closed_, manifest_writer_, manifest_}, limits);
  }
  DumpFile& Watched(int device, const std::string& base, uint64_t slice_bytes) {
    DumpFile& file = Open(device, base, slice_bytes);
    closed_.Watch(file);
    return file;
  }

  ClosedSlices closed_{{folders_, files_, manifest_, manifest_writer_, sync_, clock_}, {}};
};

TEST_F(DumpSpacePartTest, WithoutALimitEverythingFits) {
  DumpSpace space = Make({});
  EXPECT_TRUE(space.Fits(uint64_t{1} << 50));
  EXPECT_TRUE(space.Take(uint64_t{1} << 50).ok());
  EXPECT_FALSE(space.ages());
}

TEST_F(DumpSpacePartTest, WhatOthersTakeCountsAndTheEndIsSetAside) {
  DumpSpace space = Make({.bytes = kMiB});
  EXPECT_FALSE(space.Fits(kMiB));  // the manifest and the end need something
  ASSERT_TRUE(space.Take(kMiB / 2).ok());
  EXPECT_EQ(space.used(), kMiB / 2);
  const Status full = space.Take(kMiB / 2);
  EXPECT_TRUE(IsAtStorageLimit(full)) << full.ToString();
  EXPECT_EQ(space.used(), kMiB / 2);
  folders_.Shrink(nullptr, kMiB / 4);
  EXPECT_TRUE(space.Take(kMiB / 2).ok());
}

// More gaps make a longer manifest, of which two are there for a moment.
TEST_F(DumpSpacePartTest, TheManifestsGapsAreSetAside) {
  DumpSpace space = Make({.bytes = kMiB});
  const uint64_t free = kMiB / 2;
  ASSERT_TRUE(space.Fits(free));
  manifest_.channels.emplace_back().gaps.resize(free / 100);
  EXPECT_TRUE(space.Fits(free));  // not counted yet
  space.CountGaps();
  EXPECT_FALSE(space.Fits(free));
}

TEST_F(DumpSpacePartTest, TheOldestGoesForWhatComes) {
  DumpSpace space = Make({.bytes = kMiB, .ages = true});
  DumpFile& hbm = Watched(0, "hbm.data", 16 << 10);
  for (int i = 0; i < 200; ++i) {
    ASSERT_TRUE(space.Reserve(hbm, 16 << 10).ok()) << i;
    ASSERT_TRUE(Append(hbm, 16 << 10).ok());
    ASSERT_LE(space.used(), kMiB);
  }
  EXPECT_GT(manifest_.channels.at(0).aged.slices, 100u);
  closed_.NeverAge();
  EXPECT_FALSE(space.ages());
  EXPECT_TRUE(IsAtStorageLimit(space.Reserve(hbm, kMiB)));
}

TEST_F(DumpSpacePartTest, ADirectoryHasALimitOfItsOwn) {
  DumpSpace space = Make({.bytes = 4 * kMiB, .ages = true, .folder_bytes = kMiB});
  DumpFile& hbm = Watched(0, "hbm.data", 16 << 10);
  DumpFile& other = Watched(5, "hbm.data", 16 << 10);
  ASSERT_TRUE(space.Reserve(other, 16 << 10).ok());
  ASSERT_TRUE(Append(other, 16 << 10).ok());
  for (int i = 0; i < 100; ++i) {
    ASSERT_TRUE(space.Reserve(hbm, 16 << 10).ok()) << i;
    ASSERT_TRUE(Append(hbm, 16 << 10).ok());
    ASSERT_LE(Folder(0).bytes, kMiB);
    space.AgeFolders();
    ASSERT_LE(closed_.stored(Folder(0)), PlaceThreshold(kMiB));
  }
  EXPECT_EQ(Folder(5).bytes, SizeOf("device_5"));
  EXPECT_EQ(files_.at(1).writer->slices(), 1u);
  EXPECT_TRUE(std::filesystem::exists(folders_.path() + "/" + other.PathOf(0)));
  EXPECT_TRUE(IsAtStorageLimit(space.Reserve(hbm, 2 * kMiB)));
}

TEST_F(DumpSpacePartTest, OpenSlicesAreCutSoThatTheyMayGo) {
  DumpSpace space = Make({});
  DumpFile& hbm = Watched(0, "hbm.data", kMiB);
  ASSERT_TRUE(Append(hbm, 8 << 10).ok());
  EXPECT_FALSE(space.CutAll());  // not worth it
  ASSERT_TRUE(Append(hbm, 8 << 10).ok());
  EXPECT_TRUE(space.CutAll());
  EXPECT_EQ(hbm.writer->slices(), 1u);
  EXPECT_FALSE(space.CutAll());
}

}  // namespace
}  // namespace profd
