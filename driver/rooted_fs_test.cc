#include "driver/rooted_fs.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>

#include <array>
#include <filesystem>
#include <fstream>

#include "base/testing/temp_dir.h"

namespace profd {
namespace {

namespace stdfs = std::filesystem;
using ::testing::ElementsAre;

class RootedFsTest : public ::testing::TestWithParam<RootedFs::Resolver> {
 protected:
  void SetUp() override {
    stdfs::create_directories(base_ / "root/class/net");
    stdfs::create_directories(base_ / "root/devices/pci0");
    Write("outside", "secret");
    Write("root/stat", "cpu 1 2 3\n");
    Write("root/devices/pci0/speed", "200000\n");
    stdfs::create_symlink("../../devices/pci0", base_ / "root/class/net/eth0");
    stdfs::create_symlink("../outside", base_ / "root/up");
    stdfs::create_symlink(base_ / "outside", base_ / "root/absolute");
    stdfs::create_symlink("../../..", base_ / "root/class/net/wayout");
    stdfs::create_symlink("loop", base_ / "root/loop");
  }

  void Write(const std::string& name, std::string_view content) {
    std::ofstream(base_ / name) << content;
  }
  RootedFs Root() {
    Result<RootedFs> root = RootedFs::OpenRoot((base_ / "root").string(), GetParam());
    EXPECT_TRUE(root.ok());
    return std::move(root).value();
  }

  TempDir dir_;
  const stdfs::path base_ = dir_.path();
};

TEST_P(RootedFsTest, ReadsFilesAndThroughInnerSymlinks) {
  RootedFs fs = Root();
  EXPECT_EQ(fs.ReadFile("stat", 100).value_or("?"), "cpu 1 2 3\n");
  EXPECT_EQ(fs.ReadFile("./class//net/eth0/speed", 100).value_or("?"), "200000\n");
  std::array<char, 5> buffer{};
  Result<size_t> got = fs.ReadInto("stat", buffer);
  ASSERT_TRUE(got.ok());
  EXPECT_EQ(std::string_view(buffer.data(), *got), "cpu 1");
}

TEST_P(RootedFsTest, NothingLeavesTheRoot) {
  RootedFs fs = Root();
  EXPECT_EQ(fs.Open("../outside").status().code(), StatusCode::kInvalidArgument);
  EXPECT_EQ(fs.Open("class/../../outside").status().code(), StatusCode::kInvalidArgument);
  EXPECT_EQ(fs.Open("/etc/passwd").status().code(), StatusCode::kInvalidArgument);
  EXPECT_EQ(fs.Open(std::string_view("a\0b", 3)).status().code(), StatusCode::kInvalidArgument);
  EXPECT_EQ(fs.Open("up").status().code(), StatusCode::kPermissionDenied);
  EXPECT_EQ(fs.Open("absolute").status().code(), StatusCode::kPermissionDenied);
  EXPECT_EQ(fs.Open("class/net/wayout/outside").status().code(), StatusCode::kPermissionDenied);
  EXPECT_EQ(fs.Open("loop").status().code(), StatusCode::kFailedPrecondition);
}

TEST_P(RootedFsTest, MissingAndWrongKindsSaySo) {
  RootedFs fs = Root();
  EXPECT_EQ(fs.Open("nothing").status().code(), StatusCode::kNotFound);
  EXPECT_FALSE(fs.Exists("nothing"));
  EXPECT_TRUE(fs.Exists("class/net/eth0"));
  EXPECT_EQ(fs.List("stat").status().code(), StatusCode::kFailedPrecondition);
  EXPECT_EQ(fs.Open("stat/below").status().code(), StatusCode::kFailedPrecondition);
}

TEST_P(RootedFsTest, ListsSortedAndFollowsLinks) {
  RootedFs fs = Root();
  Result<std::vector<std::string>> names = fs.List("");
  ASSERT_TRUE(names.ok());
  EXPECT_THAT(*names, ElementsAre("absolute", "class", "devices", "loop", "stat", "up"));
  names = fs.List("class/net/eth0");
  ASSERT_TRUE(names.ok());
  EXPECT_THAT(*names, ElementsAre("speed"));
}

// The kernel gives a directory of this size in several pieces.
TEST_P(RootedFsTest, ListsLargeDirectories) {
  std::filesystem::create_directory(base_ / "root/large");
  std::vector<std::string> expected;
  for (int i = 10000; i < 12000; ++i) {
    expected.push_back(std::to_string(i) + std::string(30, 'n'));
    Write("root/large/" + expected.back(), "");
  }
  EXPECT_EQ(Root().List("large").value_or({}), expected);
}

TEST_P(RootedFsTest, LinkTextIsNotFollowed) {
  RootedFs fs = Root();
  EXPECT_EQ(fs.ReadLink("class/net/eth0").value_or("?"), "../../devices/pci0");
  EXPECT_FALSE(fs.ReadLink("stat").ok());
}

TEST_P(RootedFsTest, FileLimitIsExact) {
  Write("root/big", std::string(10000, 'x'));
  RootedFs fs = Root();
  EXPECT_EQ(fs.ReadFile("big", 9999).status().code(), StatusCode::kOutOfRange);
  EXPECT_EQ(fs.ReadFile("big", 10000).value_or("").size(), 10000u);
  EXPECT_EQ(fs.ReadFile("big", 20000).value_or("").size(), 10000u);
}

TEST_P(RootedFsTest, KeptFileSeesNewContent) {
  RootedFs fs = Root();
  Result<KeptFile> file = fs.Keep("stat");
  ASSERT_TRUE(file.ok());
  std::array<char, 64> buffer{};
  EXPECT_EQ(file->Read(buffer).value_or("?"), "cpu 1 2 3\n");
  Write("root/stat", "cpu 4\n");
  EXPECT_EQ(file->Read(buffer).value_or("?"), "cpu 4\n");
  EXPECT_EQ(KeptFile().Read(buffer).status().code(), StatusCode::kFailedPrecondition);
}

TEST_P(RootedFsTest, AFifoDoesNotBlock) {
  ASSERT_EQ(::mkfifo((base_ / "root/fifo").c_str(), 0600), 0);
  RootedFs fs = Root();
  EXPECT_EQ(fs.ReadFile("fifo", 10).value_or("?"), "");
}

INSTANTIATE_TEST_SUITE_P(Resolvers, RootedFsTest,
                         ::testing::Values(RootedFs::Resolver::kKernelIfAble,
                                           RootedFs::Resolver::kByHand));

TEST(RootedFsProcTest, ReadsOurselvesThroughTheSelfLink) {
  Result<RootedFs> proc = RootedFs::OpenRoot("/proc");
  ASSERT_TRUE(proc.ok());
  EXPECT_FALSE(proc->ReadFile("self/stat", 4096).value_or("").empty());
  // A magic link: what it names is outside.
  EXPECT_FALSE(proc->Open("self/exe").ok());
}

TEST(RootedFsProcTest, MissingRootIsAnError) {
  EXPECT_EQ(RootedFs::OpenRoot("/no/such/root").status().code(), StatusCode::kNotFound);
}

}  // namespace
}  // namespace profd
