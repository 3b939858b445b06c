#include "client/serve/site.h"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <chrono>
#include <filesystem>
#include <fstream>

#include "base/testing/temp_dir.h"

namespace profd::client {
namespace {

namespace fs = std::filesystem;

class SiteTest : public ::testing::Test {
 protected:
  // MindInsight's steps of a device, in a folder of their own.
  void AddSteps(const std::string& folder, int device, int hours_old) {
    const fs::path place = fs::path(std::string(dir_ / "job")) / folder;
    fs::create_directories(place);
    std::ofstream(place / ("step_trace_raw_" + std::to_string(device) + "_detail_time.csv"))
        << "step_num,start_point,end_point,total,fp_point,bp_point,iteration_interval,fp_and_bp,tail\n"
        << "1,100000,200000,100000,110000,190000,10000,80000,10000\n";
    fs::last_write_time(place, fs::file_time_type::clock::now() - std::chrono::hours(hours_old));
  }
  Json Devices(const std::string& key, const std::string& value) { return Json::parse(Ask({{key, value}}).body); }
  WebAnswer Ask(const std::map<std::string, std::string>& query) {
    RunStore::Options options;
    options.folders = {dir_ / "job"};
    RunStore runs(std::move(options));
    Site site(&runs, "");
    WebRequest request;
    request.method = "GET";
    request.path = "/v1/mindinsight/profile/devices";
    request.query = query;
    request.headers = {{"host", "localhost:80"}};
    return site.Answer(request);
  }

  TempDir dir_;
};

// The run of all folders is as new as the newest of them, and so before the older ones in the list.
TEST_F(SiteTest, AFolderNamesItsOwnRunHoweverOld) {
  AddSteps("worker_0", 0, 2);
  AddSteps("worker_1", 1, 0);
  for (const char* key : {"train_id", "dir", "profile"}) {
    EXPECT_EQ(Devices(key, "./worker_0"), Json({"0"})) << key;
    EXPECT_EQ(Devices(key, "job/worker_0"), Json({"0"})) << key;
    EXPECT_EQ(Devices(key, "worker_1"), Json({"1"})) << key;
    EXPECT_EQ(Devices(key, "job"), Json({"0", "1"})) << key;
  }
}

// Every directory of MindInsight has the same last name.
TEST_F(SiteTest, ANameOfSeveralRunsIsNoneOfThem) {
  AddSteps("a/profiler", 0, 2);
  AddSteps("b/profiler", 1, 0);
  EXPECT_EQ(Ask({{"train_id", "./b"}, {"profile", "profiler"}}).body, R"(["1"])");
  EXPECT_EQ(Ask({{"dir", std::string(dir_ / "job/a/profiler")}}).body, R"(["0"])");
  EXPECT_EQ(Ask({{"dir", "profiler"}}).status, 400);
  EXPECT_THAT(Ask({{"profile", "profiler"}}).body, ::testing::HasSubstr("2 runs are named by"));
  EXPECT_EQ(Ask({{"train_id", "./c"}, {"profile", "profiler"}}).status, 404) << "no run of another job";
}

// What several ranks left in one folder is a run, too; the files of a framework's profiler lie below the directory that is listed.
TEST_F(SiteTest, MoreOfThePathNamesOneOfSeveralRuns) {
  for (const char* job : {"a", "b"}) {
    for (int device = 0; device < 2; ++device) {
      const fs::path output = fs::path(std::string(dir_ / "job")) / job / fmt::format("text/n_{}_ascend_pt/ASCEND_PROFILER_OUTPUT", device);
      fs::create_directories(output);
      std::ofstream(output / "memory_record.csv") << fmt::format("Component,Timestamp(us),Total Allocated(MB),Device Type\nPTA,1,1,NPU:{}\n", device);
    }
  }
  EXPECT_EQ(Ask({{"dir", "text"}}).status, 400);
  EXPECT_EQ(Devices("dir", "a/text"), Json({"0", "1"}));
  EXPECT_EQ(Devices("dir", std::string(dir_ / "job/b/text")), Json({"0", "1"}));
  EXPECT_EQ(Ask({{"dir", "n_1_ascend_pt"}}).status, 400);
  EXPECT_EQ(Devices("dir", "b/text/n_1_ascend_pt"), Json({"1"}));
  EXPECT_EQ(Devices("dir", std::string(dir_ / "job/a/text/n_0_ascend_pt")), Json({"0"}));
  EXPECT_EQ(Ask({{"dir", "c/text"}}).status, 404);
}

}  // namespace
}  // namespace profd::client
