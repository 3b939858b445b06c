#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <string>
#include <vector>

#include "analysis/read/readers.h"
#include "dump/test_support.h"

namespace profd::analysis {
namespace {

namespace fs = std::filesystem;

// analysis 2.1: <ts> has 14 digits, and large files are cut into slices; each time msprof exports it writes all anew.
TEST(NewestExport, OneOfEachKindAndSlice) {
  const auto newest = [](const std::vector<std::string>& names, std::vector<std::string>* left_out) {
    std::vector<std::string> kept;
    for (const fs::path& path : NewestOf({names.begin(), names.end()}, left_out)) kept.push_back(path.string());
    return kept;
  };
  using Names = std::vector<std::string>;
  struct Case {
    Names kept;
    Names left_out;
  };
  const std::vector<Case> cases = {
      {{"op_summary_20260101090000.csv", "msprof_20260101080000.json"}, {"op_summary_20260101080000.csv"}},
      // A slice was written in the next hour.
      {{"op_summary_slice_0_20260101085959.csv", "op_summary_slice_1_20260101090001.csv"}, {}},
      {{"op_summary_slice_0_20260101090000.csv", "op_summary_slice_1_20260101090001.csv"},
       {"op_summary_slice_0_20260101075959.csv", "op_summary_slice_1_20260101080000.csv",
        "op_summary_slice_2_20260101080001.csv"}},
      {{"op_summary_20260101090000_slice_0.csv", "op_summary_20260101085959_slice_1.csv"},
       {"op_summary_20260101080000.csv"}},
      {{"op_summary_20260101090000.csv"},
       {"op_summary_slice_0_20260101080000.csv", "op_summary_slice_1_20260101080000.csv"}},
      {{"op_summary_slice_1_20260101090000.csv"}, {"op_summary_slice_1_20260101080000.csv"}},
      // Numbers of device, model and iteration, and of ranks.
      {{"msprof_0_2_1.json", "msprof_0_2_10.json", "profiler_info_0.json", "profiler_info_1.json"}, {}},
  };
  for (const Case& each : cases) {
    Names all = each.kept;
    all.insert(all.end(), each.left_out.begin(), each.left_out.end());
    Names left_out;
    EXPECT_EQ(newest(all, &left_out), each.kept);
    EXPECT_EQ(left_out, each.left_out);
  }
}

TEST(NewestExport, IsReadAlone) {
  const TempDir dir;
  const fs::path folder = fs::path(std::string(dir / "PROF_1")) / "mindstudio_profiler_output";
  fs::create_directories(folder);
  for (const char* time : {"20260101080000", "20260101090000"}) {
    std::ofstream(folder / (std::string("op_summary_") + time + ".csv"))
        << "Op Name,Task Start Time(us),Task Duration(us)\nk,1,2\n";
  }
  const Result<profd::analysis::Run> text = LoadRun({dir / "PROF_1"}, {}, {});
  ASSERT_TRUE(text.ok()) << text.status().ToString();
  ASSERT_EQ(text->ranks.size(), 1u);
  EXPECT_EQ(text->ranks[0]->executions.size(), 1u);
  ASSERT_EQ(text->problems.size(), 1u);
  EXPECT_EQ(text->problems[0].where, folder.string());
  EXPECT_EQ(text->problems[0].what, "files of earlier exports are left out: op_summary_20260101080000.csv");

  for (const char* name : {"PROF_2", "collected"}) {
    fs::create_directories(std::string(dir / name));
    std::ofstream(dir / (std::string(name) + "/msprof_20260101080000.db"));
    std::ofstream(dir / (std::string(name) + "/msprof_20260101090000.db"));
  }
  const std::vector<Source> databases = FindSources(std::string(dir / "PROF_2"));
  ASSERT_EQ(databases.size(), 1u);
  EXPECT_EQ(databases[0].path.filename(), "msprof_20260101090000.db");
  EXPECT_THAT(databases[0].left_out, ::testing::ElementsAre("msprof_20260101080000.db"));
  EXPECT_EQ(FindSources(std::string(dir / "collected")).size(), 2u) << "of several runs";
}

}  // namespace
}  // namespace profd::analysis
