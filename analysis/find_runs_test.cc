#include "analysis/find_runs.h"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>

#include "dump/session_dump.h"
#include "dump/test_support.h"

namespace profd::analysis {
namespace {

using ::testing::UnorderedElementsAre;

namespace fs = std::filesystem;

class FindRunsTest : public ::testing::Test {
 protected:
  void Output(const std::string& where) const {
    const fs::path folder = fs::path(std::string(dir_ / where)) / "ASCEND_PROFILER_OUTPUT";
    fs::create_directories(folder);
    std::ofstream(folder / "kernel_details.csv") << "Name,Start Time(us),Duration(us)\n";
  }
  void File(const std::string& where) const {
    const fs::path file(std::string(dir_ / where));
    fs::create_directories(file.parent_path());
    std::ofstream(file) << "{}";
  }
  // Of profd, with a manifest that says its session and job.
  std::string Dump(const std::string& session, const std::string& job) {
    DumpRoot root = std::move(DumpRoot::Open(dir_ / "dumps")).value();
    SessionDumpOptions options;
    options.session.session_id = session;
    options.session.job_id = job;
    options.owner = Myself();
    options.sync_at_end = false;
    auto dump = SessionDump::Create(root, std::move(options));
    EXPECT_TRUE(dump.ok()) << dump.status().ToString();
    EXPECT_TRUE((*dump)->Finish({1, 1, DumpState::kDone, ""}).ok());
    return (*dump)->name();
  }
  std::vector<std::string> Names(const std::vector<std::string>& paths) const {
    std::vector<std::string> names;
    for (const FoundRun& run : FindRuns(paths)) names.push_back(run.kind + ": " + run.name);
    return names;
  }

  TempDir dir_;
};

TEST_F(FindRunsTest, RanksInOneFolderAreARunTogether) {
  Output("job/rank0_ascend_pt");
  Output("job/rank1_ascend_pt");
  Output("alone_ascend_pt");
  EXPECT_THAT(Names({dir_ / ""}), UnorderedElementsAre("profiler output: rank0_ascend_pt", "profiler output: rank1_ascend_pt", "ranks: job",
                                                       "profiler output: alone_ascend_pt"));
}

// As msprof leaves them: raw, exported to text or a database, and exported by older releases for each device.
TEST_F(FindRunsTest, ProfDirectoriesInOneFolderAreARunTogether) {
  for (const char* rank : {"PROF_000001_20240101000000000_AAAAAAAAAAAAAAAA", "PROF_000002_20240101000000000_BBBBBBBBBBBBBBBB"}) {
    File(fmt::format("raw/{}/host/info.json", rank));
    File(fmt::format("text/{}/mindstudio_profiler_output/op_summary_20240101000000.csv", rank));
    File(fmt::format("database/{}/msprof_20240101000000.db", rank));
    File(fmt::format("older/{}/device_0/timeline/msprof_0_1_1.json", rank));
  }
  for (const char* folder : {"raw", "text", "database", "older"}) {
    const std::string kind = folder == std::string("raw") ? "dump" : folder == std::string("database") ? "database" : "profiler output";
    EXPECT_THAT(Names({dir_ / folder}), UnorderedElementsAre(kind + ": PROF_000001_20240101000000000_AAAAAAAAAAAAAAAA",
                                                             kind + ": PROF_000002_20240101000000000_BBBBBBBBBBBBBBBB", "ranks: " + std::string(folder)));
  }
}

TEST_F(FindRunsTest, RanksThatTheirFrameworkHasNotAnalysedAreARunTogether) {
  File("job/rank0_ascend_pt/PROF_000001_20240101000000000_AAAAAAAAAAAAAAAA/host/info.json");
  File("job/rank1_ascend_pt/PROF_000002_20240101000000000_BBBBBBBBBBBBBBBB/mindstudio_profiler_output/op_summary_20240101000000.csv");
  EXPECT_THAT(Names({dir_ / ""}), UnorderedElementsAre("dump: rank0_ascend_pt", "profiler output: rank1_ascend_pt", "ranks: job"));
}

TEST_F(FindRunsTest, DumpsOfAJobAndOfASessionInParts) {
  const std::string one = Dump("s-1", "train7");
  const std::string two = Dump("s-2", "train7");
  const std::string other = Dump("s-3", "");
  const std::string again = Dump("s-3", "");
  EXPECT_THAT(Names({dir_ / "dumps"}), UnorderedElementsAre("dump: " + one, "dump: " + two, "dump: " + other, "dump: " + again,
                                                            "job: job train7", "session: session s-3"));
}

TEST_F(FindRunsTest, TheSamePathTwiceIsOneRunAndKeepsItsId) {
  Output("a_ascend_pt");
  const std::vector<FoundRun> first = FindRuns({dir_ / "", dir_ / "a_ascend_pt/", dir_ / "./a_ascend_pt"});
  ASSERT_EQ(first.size(), 1u);
  EXPECT_EQ(FindRuns({dir_ / "a_ascend_pt"}).front().id, first.front().id);
  EXPECT_GT(first.front().changed_s, 0);
  EXPECT_TRUE(FindRuns({dir_ / "none"}).empty());
}

TEST_F(FindRunsTest, TheTimestampOfARunChangesWithItsFiles) {
  Output("a_ascend_pt");
  const FoundRun run = FindRuns({dir_ / ""}).front();
  const uint64_t before = TimestampOf(run);
  EXPECT_EQ(TimestampOf(run), before);
  std::ofstream(dir_ / "a_ascend_pt/ASCEND_PROFILER_OUTPUT/kernel_details.csv", std::ios::app) << "k,1,2\n";
  EXPECT_NE(TimestampOf(run), before);
}

}  // namespace
}  // namespace profd::analysis
