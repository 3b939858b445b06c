// Directories of dumps that are found and read as runs.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <string>

#include "analysis/read/read_test_support.h"
#include "dump/manifest.h"
#include "dump/test_support.h"

namespace profd::analysis {
namespace {

namespace fs = std::filesystem;
using ::testing::ElementsAre;
using ::testing::IsEmpty;

class DumpOfARunTest : public ::testing::Test {
 protected:
  std::string MakeDump(const std::string& name) const {
    MakeSmallDump(std::string(dir_ / name));
    return dir_ / name;
  }
  static void WriteState(const std::string& dump, DumpState state) {
    Manifest manifest;
    manifest.state = state;
    WriteText(fs::path(dump) / std::string(kManifestFile), Serialize(manifest));
  }
  static std::vector<std::string> ProblemsOf(const analysis::Run& run) {
    std::vector<std::string> problems;
    for (const Problem& problem : run.problems) problems.push_back(problem.where + ": " + problem.what);
    return problems;
  }

  TempDir dir_;
};

TEST_F(DumpOfARunTest, StaysOneUnderAnotherName) {
  const std::string named = MakeDump("PROF_1");
  const std::string renamed = MakeDump("before_the_change");
  for (const std::string& path : {named, renamed, std::string(dir_.path())}) {
    const auto run = Loaded(path);
    ASSERT_EQ(run.ranks.size(), 1U) << path;
    EXPECT_FALSE(run.ranks[0]->hardware.empty()) << path;
  }
}

// Only a device of a dump may be one that no rank used.
TEST_F(DumpOfARunTest, AnOutputWithoutANumberStaysBesideARank) {
  MakeDump("PROF_1");
  const fs::path output = fs::path(std::string(dir_ / "a_ascend_pt")) / "ASCEND_PROFILER_OUTPUT";
  fs::create_directories(output);
  WriteText(output / "step_trace_time.csv", "Step,Computing,Communication(Not Overlapped),Overlapped,Communication,Free\n1,10,0,0,0,5\n");
  const auto run = Loaded(std::string(dir_.path()));
  ASSERT_EQ(run.ranks.size(), 2U);
  EXPECT_EQ(run.ranks[0]->rank, 3);
  EXPECT_EQ(run.ranks[1]->rank, std::nullopt);
  EXPECT_EQ(run.ranks[1]->shares.size(), 1U);
}

TEST_F(DumpOfARunTest, StillBeingWrittenIsAProblem) {
  const std::string dump = MakeDump("PROF_1");
  WriteState(dump, DumpState::kRunning);
  auto run = Loaded(dump);
  EXPECT_THAT(ProblemsOf(run), ElementsAre("PROF_1: is still being written: what follows is missing"));
  EXPECT_FALSE(IsDamage(run.problems[0]));
  WriteState(dump, DumpState::kDone);
  run = Loaded(dump);
  EXPECT_THAT(ProblemsOf(run), IsEmpty());
}

}  // namespace
}  // namespace profd::analysis
