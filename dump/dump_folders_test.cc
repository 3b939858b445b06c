#include "dump/dump_folders.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>

#include "base/crc32c.h"
#include "dump/parts_test_support.h"

namespace profd {
namespace {

using DumpFoldersTest = DumpPartsTest;

TEST_F(DumpFoldersTest, ControlFilesHaveTheirDevicesNameAndAreCounted) {
  ASSERT_TRUE(folders_.WriteControl(Folder(kVendorHostId), "info.json", "{}").ok());
  ASSERT_TRUE(folders_.WriteControl(Folder(5), "info.json", "{\"a\":1}").ok());
  ASSERT_TRUE(folders_.WriteControl(Folder(5), "sample.json", "{}").ok());
  EXPECT_EQ(Text("host/info.json"), "{}");
  EXPECT_EQ(Text("device_5/info.json.5"), "{\"a\":1}");
  const std::set<std::string> of_device = {"info.json.5", "info.json.5.done", "sample.json", "sample.json.done"};
  EXPECT_EQ(FilesBelow(folders_.path() + "/device_5"), of_device);
  EXPECT_EQ(folders_.bytes(), SizeOf());
  EXPECT_EQ(Folder(5).bytes, SizeOf("device_5"));
  EXPECT_EQ(folders_.entries(), 3u);
  EXPECT_EQ(folders_.listed().at("device_5/info.json.5").crc32c, Crc32c(AsBytes("{\"a\":1}")));
  // Each is written once.
  EXPECT_FALSE(folders_.WriteControl(Folder(5), "info.json", "{}").ok());
  EXPECT_EQ(folders_.bytes(), SizeOf());
}

TEST_F(DumpFoldersTest, AReplacedControlFileCountsAsItIs) {
  ASSERT_TRUE(folders_.WriteControl(Folder(5), "dev_start.log", "long enough").ok());
  uint64_t before = 11;
  for (const std::string& text : {std::string(200, 'x'), std::string("short")}) {
    ASSERT_TRUE(folders_.ReplaceControl(Folder(5), "dev_start.log", text, before).ok());
    before = text.size();
    EXPECT_EQ(Text("device_5/dev_start.log.5"), text);
    EXPECT_EQ(folders_.bytes(), SizeOf());
    EXPECT_EQ(Folder(5).bytes, SizeOf());
    EXPECT_EQ(folders_.listed().at("device_5/dev_start.log.5").crc32c, Crc32c(AsBytes(text)));
  }
  EXPECT_EQ(folders_.entries(), 1u);
  // One that cannot be replaced stays as it was, and is listed as it is.
  io_.free_bytes = 0;
  EXPECT_FALSE(folders_.ReplaceControl(Folder(5), "dev_start.log", "other", before).ok());
  EXPECT_EQ(Text("device_5/dev_start.log.5"), "short");
  EXPECT_EQ(folders_.listed().at("device_5/dev_start.log.5").crc32c, Crc32c(AsBytes("short")));
  EXPECT_EQ(folders_.bytes(), SizeOf());
}

TEST_F(DumpFoldersTest, AFolderThatIsRemovedIsNoticed) {
  EXPECT_TRUE(folders_.CheckStillThere().ok());
  std::filesystem::remove_all(folders_.path() + "/device_0/data");
  EXPECT_EQ(folders_.CheckStillThere().code(), StatusCode::kDataLoss);
}

// An administrator moves the dump root to another folder, or something takes its place.
TEST_F(DumpFoldersTest, AFolderThatIsMovedIsNoticedUntilItIsBack) {
  const std::string root = root_.path();
  std::filesystem::rename(root, root + ".away");
  EXPECT_THAT(folders_.CheckStillThere().message(), ::testing::HasSubstr(folders_.path() + " was moved away"));
  std::filesystem::create_directories(folders_.path());
  EXPECT_EQ(folders_.CheckStillThere().code(), StatusCode::kDataLoss) << "another folder of the same name";
  std::filesystem::remove_all(root);
  std::ofstream(root) << "a file";
  EXPECT_EQ(folders_.CheckStillThere().code(), StatusCode::kDataLoss);
  std::filesystem::remove(root);
  std::filesystem::rename(root + ".away", root);
  EXPECT_TRUE(folders_.CheckStillThere().ok());
  ASSERT_TRUE(root_.MakeRun(folders_.name(), Myself()).ok());
  EXPECT_TRUE(folders_.CheckStillThere().ok()) << "its place in a run";
}

}  // namespace
}  // namespace profd
