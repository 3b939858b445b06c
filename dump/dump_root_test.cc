#include "dump/dump_root.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>

#include <filesystem>

#include "dump/test_support.h"

namespace profd {
namespace {

namespace fs = std::filesystem;

constexpr int64_t kWall = 1'767'225'600'123'456'789;  // 2026-01-01 00:00:00.123 UTC

class DumpRootTest : public testing::Test {
 protected:
  void SetUp() override {
    ::setenv("TZ", "UTC", 1);
    ::tzset();
  }
  DumpRoot OpenOk(const std::string& path) {
    Result<DumpRoot> root = DumpRoot::Open(path);
    EXPECT_TRUE(root.ok()) << root.status().ToString();
    return std::move(root).value();
  }
  struct stat StatOf(const std::string& path) {
    struct stat st {};
    EXPECT_EQ(::lstat(path.c_str(), &st), 0) << path;
    return st;
  }
  TempDir tmp_;
};

TEST_F(DumpRootTest, CreatesItselfWithoutLettingOthersList) {
  OpenOk(tmp_ / "a/b/root");
  EXPECT_EQ(StatOf(tmp_ / "a/b/root").st_mode & 07777, 0711u);
}

TEST_F(DumpRootTest, RefusesLinksAndWritableRoots) {
  fs::create_directory(tmp_ / "real");
  fs::create_directory_symlink(tmp_ / "real", tmp_ / "link");
  for (const char* path : {"link", "link/"}) {
    Result<DumpRoot> root = DumpRoot::Open(tmp_ / path);
    ASSERT_FALSE(root.ok()) << path;
    EXPECT_EQ(root.status().code(), StatusCode::kPermissionDenied);
    EXPECT_THAT(root.status().message(), testing::HasSubstr("name the directory itself"));
  }
  for (mode_t mode : {0777u, 0775u, 0772u}) {
    ASSERT_EQ(::chmod((tmp_ / "real").c_str(), mode), 0);
    Result<DumpRoot> root = DumpRoot::Open(tmp_ / "real");
    ASSERT_FALSE(root.ok());
    EXPECT_EQ(root.status().code(), StatusCode::kPermissionDenied);
    EXPECT_THAT(root.status().message(), testing::AllOf(testing::HasSubstr("written by others"), testing::EndsWith("chmod go-w")));
  }
  ASSERT_EQ(::chmod((tmp_ / "real").c_str(), 0755), 0);
  EXPECT_TRUE(DumpRoot::Open(tmp_ / "real").ok());
  EXPECT_FALSE(DumpRoot::Open(tmp_ / "real/..").ok());
  EXPECT_FALSE(DumpRoot::Open("/").ok());
}

TEST_F(DumpRootTest, NamesDumpsAsTheVendorDoes) {
  DumpRoot root = OpenOk(tmp_ / "root");
  Result<DumpRoot::NewDump> first = root.CreateDump(Myself(), kWall);
  ASSERT_TRUE(first.ok()) << first.status().ToString();
  EXPECT_THAT(first->name, testing::MatchesRegex("PROF_000001_20260101000000123_[A-R]{16}"));
  EXPECT_TRUE(DumpRoot::IsDumpName(first->name));
  struct stat st = StatOf(tmp_ / ("root/" + first->name));
  EXPECT_EQ(st.st_mode & 07777, 0750u);
  EXPECT_EQ(st.st_uid, ::geteuid());
  Result<DumpRoot::NewDump> second = root.CreateDump(Myself(), kWall);
  ASSERT_TRUE(second.ok());
  EXPECT_THAT(second->name, testing::StartsWith("PROF_000002_"));
  // A new daemon continues to count; 999999 is followed by 1.
  Result<DumpRoot::NewDump> third = OpenOk(tmp_ / "root").CreateDump(Myself(), kWall);
  EXPECT_THAT(third->name, testing::StartsWith("PROF_000003_"));
  fs::create_directory(tmp_ / "root/PROF_999999_20260101000000123_ABCDEFGHABCDEFGH");
  Result<DumpRoot::NewDump> wrapped = OpenOk(tmp_ / "root").CreateDump(Myself(), kWall);
  EXPECT_THAT(wrapped->name, testing::StartsWith("PROF_000001_"));
}

TEST_F(DumpRootTest, GivesDumpsToTheirOwner) {
  if (::geteuid() != 0) GTEST_SKIP() << "only root can give files away";
  DumpRoot root = OpenOk(tmp_ / "root");
  Result<DumpRoot::NewDump> made = root.CreateDump({4711, 4712}, kWall);
  ASSERT_TRUE(made.ok());
  ASSERT_TRUE(WriteNewFile(SystemDumpIo(), made->dir.get(), "x", "text", {4711, 4712}).ok());
  for (const std::string& path : {made->name, made->name + "/x"}) {
    struct stat st = StatOf(tmp_ / ("root/" + path));
    EXPECT_EQ(st.st_uid, 4711u);
    EXPECT_EQ(st.st_gid, 4712u);
  }
  EXPECT_EQ(StatOf(tmp_ / ("root/" + made->name + "/x")).st_mode & 07777, 0640u);
}

TEST_F(DumpRootTest, NewFilesNeverGoThroughWhatIsThere) {
  DumpRoot root = OpenOk(tmp_ / "root");
  Result<DumpRoot::NewDump> made = root.CreateDump(Myself(), kWall);
  ASSERT_TRUE(made.ok());
  WriteText(tmp_ / "victim", "precious");
  std::string dir = tmp_ / ("root/" + made->name);
  fs::create_symlink(tmp_ / "victim", dir + "/info.json");
  fs::create_hard_link(tmp_ / "victim", dir + "/sample.json");
  fs::create_directory_symlink(tmp_.path(), dir + "/host");
  for (const char* name : {"info.json", "sample.json"}) {
    EXPECT_FALSE(WriteNewFile(SystemDumpIo(), made->dir.get(), name, "x", Myself()).ok());
  }
  EXPECT_FALSE(MakeDirAt(made->dir.get(), "host", Myself()).ok());
  EXPECT_FALSE(OpenDirAt(made->dir.get(), "host").ok());
  // Replacing takes the name away from the link and leaves its target alone.
  ASSERT_TRUE(
      ReplaceFile(SystemDumpIo(), made->dir.get(), "info.json", "new", Myself(), true).ok());
  EXPECT_EQ(ReadText(dir + "/info.json"), "new");
  EXPECT_FALSE(fs::is_symlink(dir + "/info.json"));
  EXPECT_EQ(ReadText(tmp_ / "victim"), "precious");
}

TEST_F(DumpRootTest, RemovesADumpAndNothingElse) {
  DumpRoot root = OpenOk(tmp_ / "root");
  Result<DumpRoot::NewDump> made = root.CreateDump(Myself(), kWall);
  ASSERT_TRUE(made.ok());
  fs::create_directories(tmp_ / "outside/deep");
  WriteText(tmp_ / "outside/deep/file", "stays");
  std::string dir = tmp_ / ("root/" + made->name);
  fs::create_directories(dir + "/device_0/data");
  WriteText(dir + "/device_0/data/x", "x");
  fs::create_directory_symlink(tmp_ / "outside", dir + "/device_0/link");
  fs::create_symlink(tmp_ / "outside/deep/file", dir + "/file");
  ASSERT_EQ(::mkfifo((dir + "/pipe").c_str(), 0600), 0);
  EXPECT_TRUE(root.Remove(made->name).ok());
  EXPECT_TRUE(fs::is_empty(tmp_ / "root"));
  EXPECT_EQ(ReadText(tmp_ / "outside/deep/file"), "stays");
  EXPECT_EQ(root.Remove(made->name).code(), StatusCode::kNotFound);
  for (const char* name : {"../outside", "outside", "", ".", "PROF_1_2_AAAAA/../../outside"}) {
    EXPECT_EQ(root.Remove(name).code(), StatusCode::kInvalidArgument) << name;
  }
  // A link with a dump's name is neither followed nor removed.
  std::string link = "PROF_000009_20260101000000123_ABCDEFGHABCDEFGH";
  fs::create_directory_symlink(tmp_ / "outside", tmp_ / ("root/" + link));
  EXPECT_FALSE(root.Remove(link).ok());
  EXPECT_FALSE(root.OpenDump(link).ok());
  EXPECT_EQ(ReadText(tmp_ / "outside/deep/file"), "stays");
}

TEST_F(DumpRootTest, FinishesRemovalsThatACrashCutShort) {
  fs::create_directories(tmp_ / "root/.removing_PROF_000001_20260101000000123_ABCDEFGH/host/data");
  WriteText(tmp_ / "root/.removing_PROF_000001_20260101000000123_ABCDEFGH/host/data/x", "x");
  ASSERT_EQ(::chmod((tmp_ / "root").c_str(), 0755), 0);
  OpenOk(tmp_ / "root").RemoveLeftovers();
  EXPECT_TRUE(fs::is_empty(tmp_ / "root"));
}

TEST_F(DumpRootTest, ListsDumpsWithSizes) {
  DumpRoot root = OpenOk(tmp_ / "root");
  Result<DumpRoot::NewDump> made = root.CreateDump(Myself(), kWall);
  ASSERT_TRUE(made.ok());
  std::string dir = tmp_ / ("root/" + made->name);
  fs::create_directories(dir + "/host/data");
  WriteText(dir + "/host/data/a", std::string(1000, 'a'));
  WriteText(dir + "/b", std::string(24, 'b'));
  fs::create_directory(tmp_ / "root/lost+found");
  WriteText(tmp_ / "root/PROF_000002_20260101000000123_ABCDEFGH", "a file, no dump");
  Result<std::vector<std::string>> names = root.Names();
  ASSERT_TRUE(names.ok());
  EXPECT_THAT(*names, ::testing::Contains(made->name));
  EXPECT_THAT(*names, ::testing::Not(::testing::Contains("lost+found")));
  EXPECT_EQ(root.BytesOf(made->name).value_or(0), 1024u);
  EXPECT_FALSE(root.BytesOf("PROF_000002_20260101000000123_ABCDEFGH").ok());
  EXPECT_EQ(root.BytesOf("PROF_000009_20260101000000123_ABCDEFGH").status().code(), StatusCode::kNotFound);
  EXPECT_GT(*root.FreeBytes(), 0u);
  EXPECT_GE(*root.SizeBytes(), *root.FreeBytes());
}

TEST_F(DumpRootTest, KnowsSafeNames) {
  EXPECT_TRUE(IsSafeName("4242-CpuUsage.data"));
  EXPECT_TRUE(IsSafeName(std::string(96, 'x')));
  for (const char* name : {"", ".", "..", "a/b", "/etc/passwd", "a b", "a\n", "\xc3\xa4", "a*"}) {
    EXPECT_FALSE(IsSafeName(name)) << name;
  }
  EXPECT_FALSE(IsSafeName(std::string(97, 'x')));
  EXPECT_FALSE(IsSafeName(std::string_view("a\0b", 3)));
}

}  // namespace
}  // namespace profd
