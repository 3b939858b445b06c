// The program as a launcher starts it: processes that train together, and the truth they write.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <map>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "base/clock.h"
#include "sim/app/job.h"
#include "sim/app/step_plan.h"
#include "sim/child_test_support.h"

namespace profd::sim::app {
namespace {

using nlohmann::json;

constexpr char kTwoRanks[] = R"(
steps = 3
data_parallel = 2
batch_mb = 0.1
launch_us = 0
[[layer]]
name = "block"
count = 2
gradient_mb = 0.1
[[layer.operator]]
type = "MatMulV2"
us = 100
backward_us = 200
[[optimizer]]
type = "ApplyAdam"
us = 50
)";

class SimTrain : public testing::Test {
 protected:
  SimTrain() {
    std::string pattern = testing::TempDir() + "sim_train_XXXXXX";
    folder_ = ::mkdtemp(pattern.data());
  }
  ~SimTrain() override { std::filesystem::remove_all(folder_); }

  std::string WriteJob(const std::string& text) {
    const std::string path = folder_ + "/job.toml";
    std::ofstream(path) << text;
    return path;
  }
  ChildResult Run(const std::string& job, const char* rank = nullptr) {
    return RunChild(
        [&] {
          ::setenv("PROFD_DISABLE", "1", 1);
          ::execl(PROFD_SIM_TRAIN, PROFD_SIM_TRAIN, job.c_str(), folder_.c_str(), rank, nullptr);
          FAIL() << PROFD_SIM_TRAIN;
        },
        std::chrono::seconds(120));
  }
  // What of a rank's truth is of this kind, in the order of the file.
  std::vector<json> Truth(int rank, const std::string& what) {
    std::vector<json> found;
    std::ifstream file(folder_ + "/truth_" + std::to_string(rank) + ".jsonl");
    for (std::string line; std::getline(file, line);) {
      json parsed = json::parse(line);
      if (parsed["what"] == what) found.push_back(std::move(parsed));
    }
    return found;
  }

  std::string folder_;
};

TEST_F(SimTrain, RanksTrainTogether) {
  const std::string path = WriteJob(kTwoRanks);
  const ChildResult result = Run(path);
  ASSERT_EQ(result.exit_code, 0) << result.output;
  const Job job = *LoadJob(path);
  std::map<std::string, std::vector<int64_t>> ends;
  for (int rank = 0; rank < 2; ++rank) {
    std::vector<std::string> planned, ran;
    for (int64_t step = 0; step < job.steps; ++step) {
      for (const Action& action : PlanStep(job, static_cast<uint32_t>(rank), step)) {
        if (action.kind == Action::kLaunch) planned.push_back(action.name);
      }
    }
    for (const json& kernel : Truth(rank, "kernel")) {
      ran.push_back(kernel["name"]);
      EXPECT_EQ(kernel["device"], rank);
      EXPECT_LT(kernel["launch_ns"], kernel["begin_ns"]);
      EXPECT_LT(kernel["begin_ns"], kernel["end_ns"]);
    }
    EXPECT_EQ(ran, planned);
    EXPECT_EQ(Truth(rank, "step").size(), 3u);
    EXPECT_EQ(Truth(rank, "copy").size(), 3u);
    EXPECT_EQ(Truth(rank, "range").size(), 9u);
    for (const json& reduction : Truth(rank, "communication")) {
      EXPECT_EQ(reduction["group"], "dp_0");
      ends["all"].push_back(reduction["end_ns"]);
    }
  }
  // Both ranks' all-reduces end at the same instant: two layers of three steps.
  ASSERT_EQ(ends["all"].size(), 12u);
  for (size_t i = 0; i < 6; ++i) EXPECT_EQ(ends["all"][i], ends["all"][i + 6]);
}

TEST_F(SimTrain, AFolderCanBeUsedAgain) {
  const std::string path = WriteJob(kTwoRanks);
  ASSERT_EQ(Run(path).exit_code, 0);
  const ChildResult again = Run(path);
  EXPECT_EQ(again.exit_code, 0) << again.output;
  EXPECT_EQ(Truth(0, "step").size(), 3u);
}

TEST_F(SimTrain, AllOfEightRanksOfAPipelineEnd) {
  std::string text = R"(
steps = 2
tensor_parallel = 2
data_parallel = 2
pipeline_parallel = 2
microbatches = 3
activation_mb = 0.01
launch_us = 0
[[layer]]
count = 4
gradient_mb = 0.01
tensor_mb = 0.01
expert_mb = 0.01
[[layer.operator]]
type = "MatMulV2"
us = 5
backward_us = 5
)";
  const ChildResult result = Run(WriteJob(text));
  ASSERT_EQ(result.exit_code, 0) << result.output;
  for (int rank = 0; rank < 8; ++rank) EXPECT_EQ(Truth(rank, "step").size(), 2u) << rank;
}

TEST_F(SimTrain, ASlowLoaderIsWaitedFor) {
  const std::string text = std::string("data_ms = 60\n") + kTwoRanks;
  const ChildResult result = Run(WriteJob(text));
  ASSERT_EQ(result.exit_code, 0) << result.output;
  const std::vector<json> steps = Truth(0, "step");
  ASSERT_EQ(steps.size(), 3u);
  // The first batch is there; the others come 60 ms after the one before.
  EXPECT_EQ(Truth(0, "pause").size(), 2u);
  EXPECT_EQ(Truth(0, "pause")[0]["name"], "dataloader");
  const int64_t second = steps[1]["end_ns"], first = steps[0]["begin_ns"];
  EXPECT_GE(second - first, 60'000'000);
}

TEST_F(SimTrain, FollowsTheFaultsOfTheScenario) {
  // Throttled from its beginning on, which is now: kernels take twice as long on rank 1.
  const std::string scenario = folder_ + "/scenario.toml";
  std::ofstream(scenario) << "devices = 2\n[[fault]]\nkind = \"throttle\"\ndevice = 1\nmhz = 900\n";
  ::setenv("PROFD_SIM_SCENARIO", scenario.c_str(), 1);
  ::setenv("PROFD_SIM_EPOCH", std::to_string(SystemClock().MonotonicRawNs()).c_str(), 1);
  const ChildResult result = Run(WriteJob(kTwoRanks));
  ::unsetenv("PROFD_SIM_SCENARIO");
  ::unsetenv("PROFD_SIM_EPOCH");
  ASSERT_EQ(result.exit_code, 0) << result.output;
  const auto first_ns = [this](int rank) {
    const json kernel = Truth(rank, "kernel").at(0);
    return kernel["end_ns"].get<int64_t>() - kernel["begin_ns"].get<int64_t>();
  };
  EXPECT_LT(first_ns(0), 112'000);
  EXPECT_GE(first_ns(1), 200'000);
}

TEST_F(SimTrain, WithMsptiPreloadedTrainsAsWell) {
  ::setenv("LD_PRELOAD", PROFD_SIM_MSPTI, 1);
  const char* const asan = ::getenv("ASAN_OPTIONS");
  const std::string before = asan == nullptr ? "" : asan;
  // AddressSanitizer wants to be the first library, which is the preloaded one here.
  ::setenv("ASAN_OPTIONS", (before + ":verify_asan_link_order=0").c_str(), 1);
  const ChildResult result = Run(WriteJob(kTwoRanks));
  ::setenv("ASAN_OPTIONS", before.c_str(), 1);
  ::unsetenv("LD_PRELOAD");
  EXPECT_EQ(result.exit_code, 0) << result.output;
  EXPECT_THAT(result.output, testing::HasSubstr("[mspti]"));
  EXPECT_EQ(Truth(0, "step").size(), 3u);
}

TEST_F(SimTrain, MarksItsCommunicationInMstx) {
  ::setenv("MSTX_INJECTION_PATH", PROFD_SIM_INJECTION, 1);
  const ChildResult result = Run(WriteJob(kTwoRanks));
  ::unsetenv("MSTX_INJECTION_PATH");
  EXPECT_EQ(result.exit_code, 0) << result.output;
  EXPECT_THAT(result.output, testing::HasSubstr("domain communication"));
  EXPECT_THAT(result.output, testing::HasSubstr("handle hcom_allReduce__block_1_0"));
  EXPECT_EQ(Truth(0, "mstx").size(), Truth(0, "communication").size());
}

TEST_F(SimTrain, SaysWhatIsWrong) {
  EXPECT_EQ(Run(folder_ + "/none.toml").exit_code, 2);
  EXPECT_THAT(Run(WriteJob("steps = 0")).output, testing::HasSubstr("job.toml: line 1: 'steps'"));
  EXPECT_THAT(Run(WriteJob(kTwoRanks), "2").output, testing::HasSubstr("RANK must be 0..1"));
}

}  // namespace
}  // namespace profd::sim::app
