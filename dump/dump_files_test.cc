#include "dump/dump_files.h"

#include <gtest/gtest.h>

#include "dump/parts_test_support.h"

namespace profd {
namespace {

using DumpFilesTest = DumpPartsTest;

TEST_F(DumpFilesTest, AFileIsOpenOnceInItsFolder) {
  DumpFile& first = Open(0, "hbm.data");
  DumpFile& second = Open(5, "hbm.data");
  SliceOptions options;
  options.base = "hbm.data";
  EXPECT_EQ(files_.Add(&Folder(0), options).status().code(), StatusCode::kAlreadyExists);
  DumpFile& own = *files_.Add(nullptr, options).value();
  for (const char* name : {"", "..", "a/b"}) {
    options.base = name;
    EXPECT_EQ(files_.Add(&Folder(0), options).status().code(), StatusCode::kInvalidArgument) << name;
  }
  EXPECT_EQ(files_.Find(0, "hbm.data"), &first);
  EXPECT_EQ(files_.Find(5, "hbm.data"), &second);
  EXPECT_EQ(files_.Find(DumpFiles::kOwn, "hbm.data"), &own);
  EXPECT_EQ(files_.Find(kVendorHostId, "hbm.data"), nullptr);
  for (uint32_t number = 0; number < 3; ++number) EXPECT_EQ(files_.at(number).number, number);
  EXPECT_EQ(files_.size(), 3u);
  EXPECT_EQ(second.PathOf(7), "device_5/data/hbm.data.5.slice_7");
}

TEST_F(DumpFilesTest, TheFoldersCountWhatIsWritten) {
  DumpFile& hbm = Open(0, "hbm.data", 100);
  DumpFile& host = Open(kVendorHostId, "host_cpu.data");
  ASSERT_TRUE(Append(hbm, 60).ok());
  ASSERT_TRUE(Append(host, 30).ok());
  // What is buffered counts.
  EXPECT_EQ(folders_.bytes(), 90u);
  EXPECT_EQ(Folder(0).bytes, 60u);
  ASSERT_TRUE(Append(hbm, 60).ok());  // the slice is full, and gets its .done
  ASSERT_TRUE(files_.Cut(host).ok());
  EXPECT_EQ(folders_.bytes(), SizeOf());
  ASSERT_TRUE(Append(hbm, 10).ok());
  ASSERT_TRUE(files_.CloseAll().ok());
  EXPECT_EQ(folders_.bytes(), SizeOf());
  EXPECT_EQ(Folder(0).bytes, SizeOf("device_0"));
  EXPECT_EQ(Folder(kVendorHostId).bytes, SizeOf("host"));
}

TEST_F(DumpFilesTest, DynamicFilesShareFewDescriptors) {
  DumpFile& hbm = Open(0, "hbm.data");
  for (int i = 0; i < 5; ++i) Open(kVendorHostId, std::to_string(i) + "-CpuUsage.data").dynamic = true;
  for (const auto& file : files_.all()) {
    ASSERT_TRUE(Append(*file, 10).ok());
    ASSERT_TRUE(files_.Flush(*file).ok());
    EXPECT_LE(files_.open_fds(), 3u);  // the channel's, and two
  }
  EXPECT_EQ(files_.open_fds(), 3u);
  ASSERT_TRUE(files_.FlushAll().ok());  // something came since the last one
  EXPECT_EQ(files_.open_fds(), 3u);
  ASSERT_TRUE(files_.FlushAll().ok());
  EXPECT_EQ(files_.open_fds(), 1u);
  EXPECT_TRUE(hbm.writer->holds_fd());
  EXPECT_EQ(SizeOf(), 60u);
}

TEST_F(DumpFilesTest, EveryFileIsClosedWhateverFails) {
  DumpFile& first = Open(0, "hbm.data");
  DumpFile& second = Open(5, "hbm.data");
  ASSERT_TRUE(Append(first, 10).ok());
  ASSERT_TRUE(Append(second, 10).ok());
  io_.free_bytes = 0;
  EXPECT_EQ(files_.CloseAll().code(), StatusCode::kResourceExhausted);
  EXPECT_EQ(first.writer->lost_bytes(), 10u);
  EXPECT_EQ(second.writer->lost_bytes(), 10u);
}

}  // namespace
}  // namespace profd
