// profctl advise: the tables of its findings as text; profctl report.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <csignal>
#include <filesystem>
#include <string>

#include "client/commands/report.h"
#include "client/test_support.h"
#include "dump/test_support.h"

namespace profd::client {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

class AdviseTextTest : public ProfctlTest {
 protected:
  // Collections of garbage 10 ms apart, each 100 us longer than the one before, and a variable of the environment.
  std::string RunWithGarbage(int collections, const std::string& allocator) {
    const std::filesystem::path rank = std::filesystem::path(dir_ / "run") / "node_1_20260101000000000_ascend_pt";
    std::filesystem::create_directories(rank / "ASCEND_PROFILER_OUTPUT");
    std::string events;
    for (int i = 0; i < collections; ++i) {
      events += std::string(i == 0 ? "" : ",") + R"({"ph":"X","name":"gc","cat":"GC","pid":1,"tid":1,"ts":")" + std::to_string(1'000'000 + 10'000 * i) +
                R"(","dur":)" + std::to_string(2000 + 100 * i) + "}";
    }
    WriteText(rank / "ASCEND_PROFILER_OUTPUT/trace_view.json", "[" + events + "]");
    WriteText(rank / "profiler_metadata.json", R"({"ENV_VARIABLES": {"PYTORCH_NPU_ALLOC_CONF": ")" + allocator + "\"}}");
    return dir_ / "run";
  }

  TempDir dir_;
};

TEST(WriteByTest, AnInterruptLeavesNoUnfinishedFile) {
  const TempDir dir;
  const Status status = WriteBy(dir / "report.html", false, [](const std::string&) {
    kill(getpid(), SIGINT);
    return Status::Ok();
  });
  EXPECT_EQ(status.code(), StatusCode::kCancelled);
  EXPECT_TRUE(std::filesystem::is_empty(dir.path()));
}

TEST_F(AdviseTextTest, FirstRowsOfATable) {
  const std::string run = RunWithGarbage(12, "none");
  EXPECT_EQ(Run({"advise", run}), 0) << err();
  EXPECT_THAT(out(), HasSubstr("\n  start_ms  duration_us\n   110.000     3100.000\n   100.000     3000.000\n"));
  EXPECT_THAT(out(), HasSubstr("\n    20.000     2200.000\n  … 2 more; all with --json or -o DIR\n"));
  EXPECT_THAT(out(), Not(HasSubstr(" 2100.000")));
}

TEST_F(AdviseTextTest, AllRowsAndCellsThatAreCut) {
  const std::string run = RunWithGarbage(10, std::string(200, 'x'));
  EXPECT_EQ(Run({"advise", run}), 0) << err();
  EXPECT_THAT(out(), HasSubstr("\n     0.000     2000.000\n"));
  EXPECT_THAT(out(), Not(HasSubstr(" more;")));
  EXPECT_THAT(out(), HasSubstr("  PYTORCH_NPU_ALLOC_CONF  " + std::string(79, 'x') + "…  segments of memory cannot grow"));
}

TEST_F(AdviseTextTest, ACellIsOneLine) {
  EXPECT_EQ(Run({"advise", RunWithGarbage(1, R"(max_split_size_mb:1\r\nx:2)")}), 0) << err();
  EXPECT_THAT(out(), HasSubstr("  PYTORCH_NPU_ALLOC_CONF  max_split_size_mb:1 x:2  segments"));
}

// Nothing found in counters alone is not the same as nothing wrong.
TEST_F(AdviseTextTest, ADumpWithoutOperatorsIsNamedSo) {
  MakeSmallDump(std::string(dir_ / "PROF_1"));
  const std::string what = "\nno operators were recorded, which most analyses and checks need: record with --task-time l1 ";
  EXPECT_EQ(Run({"advise", dir_ / "PROF_1"}), 0) << err();
  EXPECT_THAT(out(), HasSubstr("nothing was found\n" + what));
  EXPECT_EQ(Run({"analyze", dir_ / "PROF_1"}), 0) << err();
  EXPECT_THAT(out(), HasSubstr(what));
  EXPECT_EQ(Run({"analyze", dir_ / "PROF_1", "--only", "hardware"}), 0) << err();
  EXPECT_THAT(out(), Not(HasSubstr(what)));
  EXPECT_EQ(Run({"advise", RunWithGarbage(1, "none")}), 0) << err();
  EXPECT_THAT(out(), Not(HasSubstr(what)));
}

// Before a run is read, and by the name that was given.
TEST_F(AdviseTextTest, AReportThatCannotBeWritten) {
  EXPECT_EQ(Run({"report", dir_ / "no_run", "-o", dir_ / "none/page.html"}), kExitNotFound);
  EXPECT_EQ(err(), "profctl: " + (dir_ / "none/page.html") + ": No such file or directory\n");
}

}  // namespace
}  // namespace profd::client
