#include "client/libprofd/aclprof/result_directory.h"

#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdlib>
#include <ctime>
#include <filesystem>
#include <fstream>

#include "base/testing/temp_dir.h"

namespace profd::lib::aclprof {
namespace {

using testing::HasSubstr;
using testing::StartsWith;
namespace fs = std::filesystem;

class ResultDirectoryTest : public testing::Test {
 protected:
  void SetUp() override {
    ::setenv("PROFD_COLLECT_DIR", base_.c_str(), 1);
  }
  void TearDown() override { ::unsetenv("PROFD_COLLECT_DIR"); }
  TempDir dir_;
  const std::string base_ = dir_.path();
};

TEST_F(ResultDirectoryTest, IsPrivateAndNamedByTheSession) {
  ResultDirectory directory;
  ASSERT_EQ(directory.Make("20260101-abc", 1), "");
  EXPECT_EQ(directory.path(), base_ + "/profd-20260101-abc-" + std::to_string(::getpid()));
  struct stat info {};
  ASSERT_EQ(::fstat(directory.fd(), &info), 0);
  EXPECT_EQ(info.st_mode & 07777, 0700u);
  EXPECT_TRUE(directory.empty());
  EXPECT_GT(directory.free_bytes(), 0u);
}

TEST_F(ResultDirectoryTest, WhereItLies) {
  ::unsetenv("PROFD_COLLECT_DIR");
  ::setenv("TMPDIR", base_.c_str(), 1);
  ResultDirectory first, second;
  ASSERT_EQ(first.Make("s", 1), "");
  EXPECT_THAT(first.path(), StartsWith(base_ + "/profd-s-"));
  ::unsetenv("TMPDIR");
  ASSERT_EQ(second.Make("s", 1), "");
  EXPECT_THAT(second.path(), StartsWith("/tmp/profd-s-"));
  ::setenv("PROFD_COLLECT_DIR", "", 1);
  ResultDirectory third;
  ASSERT_EQ(third.Make("s", 1), "") << "empty is not set";
  EXPECT_THAT(third.path(), StartsWith("/tmp/profd-s-"));
}

// A place is named for a reason, such as its space, and the current directory of a process may change.
TEST_F(ResultDirectoryTest, ARelativePlaceIsRefused) {
  ::setenv("PROFD_COLLECT_DIR", "scratch", 1);
  ResultDirectory directory;
  EXPECT_EQ(directory.Make("s", 1), "PROFD_COLLECT_DIR=scratch is not an absolute path; set it to one");
  EXPECT_FALSE(directory.made());
}

TEST_F(ResultDirectoryTest, ASessionsNameIsNotUsedAsAPath) {
  ResultDirectory directory;
  ASSERT_EQ(directory.Make("../../etc/passwd" + std::string(1000, 'x'), 1), "");
  EXPECT_EQ(fs::path(directory.path()).parent_path(), base_);
}

TEST_F(ResultDirectoryTest, ExistingNamesAreNotUsed) {
  const std::string taken = base_ + "/profd-s-" + std::to_string(::getpid());
  fs::create_directory_symlink("/", taken);
  ResultDirectory directory;
  ASSERT_EQ(directory.Make("s", 1), "");
  EXPECT_EQ(directory.path(), taken + "-1");
}

TEST_F(ResultDirectoryTest, WithoutSpaceNothingIsMade) {
  ResultDirectory directory;
  const std::string why = directory.Make("s", uint64_t{1} << 62);
  EXPECT_THAT(why, HasSubstr("MiB free"));
  EXPECT_THAT(why, HasSubstr("PROFD_COLLECT_DIR"));
  EXPECT_FALSE(directory.made());
  EXPECT_TRUE(fs::is_empty(base_));
  ::setenv("PROFD_COLLECT_DIR", "/nowhere", 1);
  EXPECT_THAT(directory.Make("s", 1), HasSubstr("/nowhere"));
}

TEST_F(ResultDirectoryTest, RemovesAllOfItAndNothingElse) {
  const std::string outside = base_ + "/outside";
  fs::create_directory(outside);
  std::ofstream(outside + "/kept") << "x";
  {
    ResultDirectory directory;
    ASSERT_EQ(directory.Make("s", 1), "");
    fs::create_directories(directory.path() + "/PROF_1/host/data");
    std::ofstream(directory.path() + "/PROF_1/host/data/x") << "x";
    fs::create_directory_symlink(outside, directory.path() + "/PROF_1/link");
    EXPECT_FALSE(directory.empty());
  }
  EXPECT_TRUE(fs::exists(outside + "/kept"));
  EXPECT_EQ(std::distance(fs::directory_iterator(base_), fs::directory_iterator()), 1);
}

// What the next one does about a process that was killed.
TEST_F(ResultDirectoryTest, LeftoversOfTheDeadAreRemoved) {
  const pid_t child = ::fork();
  if (child == 0) ::_exit(0);
  int status = 0;
  ASSERT_EQ(::waitpid(child, &status, 0), child);
  const std::string dead = std::to_string(child);
  const std::string outside = base_ + "/outside";
  fs::create_directory(outside);
  std::ofstream(outside + "/kept") << "x";
  const auto age = [](const std::string& path, int64_t age_s = 3600) {
    const timespec then{::time(nullptr) - age_s, 0};
    const timespec times[2] = {then, then};
    EXPECT_EQ(::utimensat(AT_FDCWD, path.c_str(), times, 0), 0);
  };
  const auto leave = [&](const std::string& name, int64_t age_s = 3600) {
    const std::string path = base_ + "/" + name;
    fs::create_directories(path + "/PROF_1/host/data");
    std::ofstream(path + "/PROF_1/host/data/x") << "x";
    ::chmod(path.c_str(), 0700);
    age(path, age_s);
    return path;
  };
  const std::string left = leave("profd-s-" + dead);
  fs::create_directory_symlink(outside, left + "/PROF_1/link");
  age(left);
  const std::string second = leave("profd-s-" + dead + "-1");
  const std::string alive = leave("profd-s-" + std::to_string(::getpid()) + "-7");
  const std::string fresh = leave("profd-t-" + dead, 0);
  const std::string other = leave("profd-" + dead + "-notes");
  const std::string open = leave("profd-u-" + dead);
  ::chmod(open.c_str(), 0755);
  const std::string notes = leave("profd-x-" + dead);
  std::ofstream(notes + "/notes") << "x";
  age(notes);
  const std::string held = leave("profd-v-" + dead);
  const int lock = ::open(held.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  ASSERT_EQ(::flock(lock, LOCK_SH), 0);
  fs::create_directory_symlink(outside, base_ + "/profd-w-" + dead);
  ResultDirectory directory;
  ASSERT_EQ(directory.Make("s", 1), "");
  EXPECT_FALSE(fs::exists(left));
  EXPECT_FALSE(fs::exists(second));
  EXPECT_TRUE(fs::exists(outside + "/kept")) << "links are not followed";
  EXPECT_TRUE(fs::exists(base_ + "/profd-w-" + dead));
  EXPECT_TRUE(fs::exists(alive));
  EXPECT_TRUE(fs::exists(fresh)) << "may be about to be locked";
  EXPECT_TRUE(fs::exists(other)) << "no name of ours";
  EXPECT_TRUE(fs::exists(open)) << "not made by us";
  EXPECT_TRUE(fs::exists(notes)) << "not of the vendor's profiler";
  EXPECT_TRUE(fs::exists(held)) << "in use, in another container";
  ::close(lock);
  // As Make holds its own.
  const int again = ::open(directory.path().c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  EXPECT_NE(::flock(again, LOCK_EX | LOCK_NB), 0);
  ::close(again);
}

TEST_F(ResultDirectoryTest, AForkedChildLeavesIt) {
  ResultDirectory directory;
  ASSERT_EQ(directory.Make("s", 1), "");
  const std::string path = directory.path();
  const pid_t child = ::fork();
  if (child == 0) {
    directory.Remove();
    ::_exit(0);
  }
  int status = 0;
  ASSERT_EQ(::waitpid(child, &status, 0), child);
  EXPECT_TRUE(fs::exists(path));
}

}  // namespace
}  // namespace profd::lib::aclprof
