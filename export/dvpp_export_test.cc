// Engines that are in dvpp.data and in a file of their own, as on chips with channel 6 and channels 135 to 141.
#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <sstream>
#include <string>
#include <vector>

#include "dump/test_support.h"
#include "export/engine.h"

namespace profd::exporting {
namespace {

// dump-format 2.4: `sec:ns dvpp_id engine_type engine_id`, all_time, all_frame, all_utilization and five more.
constexpr const char* kRest = " 1 1 1% 1 1\n";

class DvppExportTest : public ::testing::Test {
 protected:
  void SetUp() override {
    std::filesystem::create_directories(dump_ + "/device_0/data");
    std::filesystem::create_directories(dump_ + "/host/data");
    for (const std::string place : {"/device_0/", "/host/"}) {
      WriteText(dump_ + place + "start_info", R"({"collectionTimeBegin":"1767225600000000","clockMonotonicRaw":"0"})");
      WriteText(dump_ + place + "info.json",
                R"({"platform_version":"5","CPU":[{}],"DeviceInfo":[{"hwts_frequency":"50"}]})");
      WriteText(dump_ + place + "host_start.log", "clock_monotonic_raw: 1\ncntvct: 1\n");
      WriteText(dump_ + place + "dev_start.log", "clock_monotonic_raw: 1\ncntvct: 1\n");
    }
  }
  void Put(const std::string& name, const std::string& bytes) { WriteText(dump_ + "/device_0/data/" + name, bytes); }

  // "labels=value" of all utilisations.
  std::vector<std::string> Utilisations() {
    ExportOptions options;
    options.dumps = {dump_};
    options.formats = {"samples"};
    options.out_dir = dir_ / "out";
    Result<ExportReport> report = RunExport(options, {});
    EXPECT_TRUE(report.ok()) << report.status().ToString();
    if (!report.ok() || report->outputs.size() != 1) return {};
    std::vector<std::string> seen;
    std::istringstream in(ReadText(report->outputs[0].path));
    for (std::string line; std::getline(in, line);) {
      constexpr std::string_view kMetric = "atlas_npu_dvpp_engine_utilization_ratio,";
      const size_t at = line.find(kMetric);
      if (at != std::string::npos) seen.push_back(line.substr(at + kMetric.size()));
    }
    std::ranges::sort(seen);
    return seen;
  }

  TempDir dir_;
  const std::string dump_ = dir_ / "PROF_1";
};

TEST_F(DvppExportTest, AnEngineOfTwoFilesIsThatOfDvppData) {
  Put("dvpp.data.0.slice_0", std::string("1:000000000 0 0 0 700 5 50%") + kRest + "1:000000000 0 5 0 700 5 25%" + kRest);
  Put("dvpp.vdec.0.slice_0", std::string("1:000000001 0 0 0 900 9 75%") + kRest + "1:000000001 0 0 1 900 9 100%" + kRest);
  EXPECT_EQ(Utilisations(), (std::vector<std::string>{"\"dvpp=0,engine=vdec,engine_id=0\",0.5,ratio",
                                                      "\"dvpp=0,engine=vdec,engine_id=1\",1,ratio",
                                                      "\"dvpp=0,engine=venc,engine_id=0\",0.25,ratio"}));
}

TEST_F(DvppExportTest, WithoutDvppDataTheFilesOfSingleEnginesCount) {
  Put("dvpp.data.0.slice_0", "");
  Put("dvpp.vdec.0.slice_0", std::string("1:000000001 0 0 0 900 9 75%") + kRest);
  EXPECT_EQ(Utilisations(), (std::vector<std::string>{"\"dvpp=0,engine=vdec,engine_id=0\",0.75,ratio"}));
}

}  // namespace
}  // namespace profd::exporting
