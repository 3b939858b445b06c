#include "daemon/attribution/job_map.h"

#include <gtest/gtest.h>
#include <sys/stat.h>

#include <filesystem>
#include <fstream>
#include <string>

#include "dump/test_support.h"

namespace profd {
namespace {

class JobMapTest : public testing::Test {
 protected:
  void Write(const std::string& name, const std::string& text) {
    std::ofstream(std::filesystem::path(folder_.path()) / name) << text;
  }
  JobMap Read(int64_t oldest_wall_ns = 0) {
    Result<JobMap> map = ReadJobMap(folder_.path(), oldest_wall_ns);
    EXPECT_TRUE(map.ok()) << map.status().ToString();
    return map.ok() ? *map : JobMap{};
  }
  TempDir folder_;
};

using Jobs = std::map<int, std::vector<std::string>>;

TEST_F(JobMapTest, EachLineIsAJob) {
  Write("0", "4711\n");
  Write("1", "4711\r\n  4712  \n\n4711\n");
  Write("7.1", "alice's job");
  Write("2", "");
  Write("3.tmp", "4713\n");
  Write(".4", "4713\n");
  Write("-1", "4713\n");
  Write("1.-1", "4713\n");
  Write("x", "4713\n");
  Write("99999999999999999999", "4713\n");
  JobMap map = Read();
  EXPECT_EQ(map.jobs, (Jobs{{0, {"4711"}}, {1, {"4711", "4712"}}, {2, {}}, {7, {"alice's job"}}}));
  EXPECT_TRUE(map.ignored.empty());
}

TEST_F(JobMapTest, OnlyFilesOfReasonableSizeAreRead) {
  std::filesystem::create_directory(std::filesystem::path(folder_.path()) / "0");
  Write("target", "4711\n");
  std::filesystem::create_symlink("target", std::filesystem::path(folder_.path()) / "1");
  ASSERT_EQ(::mkfifo((std::filesystem::path(folder_.path()) / "2").c_str(), 0600), 0);
  Write("3", std::string(kMaxMapFileBytes + 1, 'x'));
  std::string many;
  for (size_t i = 0; i <= kMaxMapJobs; ++i) many += std::to_string(i) + "\n";
  Write("4", many);
  JobMap map = Read();
  ASSERT_EQ(map.jobs.size(), 1u);
  EXPECT_EQ(map.jobs[4].size(), kMaxMapJobs);
  ASSERT_EQ(map.ignored.size(), 5u);
  for (size_t i = 0; i < 5; ++i) EXPECT_TRUE(map.ignored[i].starts_with(std::to_string(i) + ": "));
}

TEST_F(JobMapTest, HostileTextIsHarmless) {
  Write("0", std::string("a\"} 1\nevil{x=\"\xff\x01\"} 2\n") + std::string(1000, 'y') + "\n");
  JobMap map = Read();
  ASSERT_EQ(map.jobs[0].size(), 3u);
  EXPECT_EQ(map.jobs[0][1], "evil{x=\"??\"} 2");
  EXPECT_LE(map.jobs[0][2].size(), 128u);
}

TEST_F(JobMapTest, FilesOfBeforeTheStartAreStale) {
  Write("0", "4711\n");
  Write("1", "");
  EXPECT_EQ(Read().jobs[0].size(), 1u);
  JobMap map = Read(INT64_MAX);
  EXPECT_EQ(map.jobs, (Jobs{{1, {}}}));  // empty needs no word
  ASSERT_EQ(map.ignored.size(), 1u);
  EXPECT_TRUE(map.ignored[0].starts_with("0: was written before")) << map.ignored[0];
}

TEST_F(JobMapTest, TooManyFilesAndNoFolder) {
  for (size_t i = 0; i < kMaxMapFiles + 5; ++i) Write(std::to_string(i), "1\n");
  JobMap map = Read();
  EXPECT_EQ(map.jobs.size(), kMaxMapFiles);
  EXPECT_EQ(map.ignored.size(), 1u);
  EXPECT_EQ(ReadJobMap(folder_.path() + "/nothing", 0).status().code(), StatusCode::kNotFound);
  EXPECT_FALSE(ReadJobMap(folder_.path() + "/0", 0).ok());
}

TEST(MachineStart, IsInThePast) { EXPECT_GT(MachineStartWallNs(), 0); }

}  // namespace
}  // namespace profd
