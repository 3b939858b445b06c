// The program as a launcher starts it: processes that train together, and the truth they write.
#include <cstdlib>
#include <map>

#include "base/clock.h"
#include "sim/app/sim_train_test_support.h"

namespace profd::sim::app {
namespace {

using nlohmann::json;

TEST_F(SimTrain, RanksTrainTogether) {
  const std::string path = WriteJob(kTwoRanks);
  const ChildResult result = Run(path);
  ASSERT_EQ(result.exit_code, 0) << result.output;
  const Job job = *LoadJob(path);
  ExpectAsPlanned(job);
  std::map<std::string, std::vector<int64_t>> ends;
  for (int rank = 0; rank < 2; ++rank) {
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

TEST_F(SimTrain, TheShippedJobsDoWhatTheyPlan) {
  for (const auto& entry : std::filesystem::directory_iterator(PROFD_SIM_JOBS)) {
    std::string job = ReadText(entry.path());
    const size_t steps = job.find("steps = ");
    ASSERT_NE(steps, std::string::npos);
    const std::string path = WriteJob(job.replace(steps, job.find('\n', steps) - steps, "steps = 2"));
    const ChildResult result = Run(path);
    ASSERT_EQ(result.exit_code, 0) << entry.path() << result.output;
    ExpectAsPlanned(*LoadJob(path));
  }
}

TEST_F(SimTrain, AGraphIsLoadedOnceAndRunsInIterations) {
  const std::string path = WriteJob(std::string("mode = \"graph\"\n") + kTwoRanks);
  const ChildResult result = Run(path);
  ASSERT_EQ(result.exit_code, 0) << result.output;
  const Job job = *LoadJob(path);
  ExpectAsPlanned(job);
  const std::vector<json> kernels = Truth(0, "kernel"), reductions = Truth(0, "communication");
  ASSERT_EQ(kernels.size() % 3, 0u);
  const size_t each = kernels.size() / 3;
  for (size_t i = 0; i < kernels.size(); ++i) {
    EXPECT_EQ(kernels[i]["model"], 1);
    EXPECT_EQ(kernels[i]["iteration"], i / each + 1);
    EXPECT_EQ(kernels[i]["task"], kernels[i % each]["task"]) << "the same in each iteration";
  }
  EXPECT_EQ(kernels[0]["name"], "GetNext");
  EXPECT_EQ(kernels[0]["core"], "aicpu");
  std::vector<std::string> calls;
  for (const json& call : Truth(0, "api")) calls.push_back(call["name"]);
  EXPECT_EQ(calls.size(), 9u) << "a copy, an execution and a synchronization in each step";
  EXPECT_EQ(std::count(calls.begin(), calls.end(), "aclmdlExecuteAsync"), 3);
  // Marks in the order of an iteration, around what they mark.
  std::map<int, int64_t> first;
  for (const json& mark : Truth(0, "trace")) {
    if (mark["iteration"] == 1) first[mark["tag"]] = mark["begin_ns"];
  }
  EXPECT_LT(first.at(acl::kModelStart), first.at(acl::kGetNextStart));
  EXPECT_LT(first.at(acl::kGetNextStart), kernels[0]["begin_ns"]);
  EXPECT_GT(first.at(acl::kGetNextEnd), kernels[0]["end_ns"].get<int64_t>() - 1);
  EXPECT_LT(first.at(acl::kForwardStart), kernels[1]["begin_ns"]);
  // The last all-reduce begins when the backward is over.
  ASSERT_EQ(reductions.size(), 6u);
  EXPECT_GT(first.at(acl::kBackwardEnd), kernels[each - 2]["end_ns"].get<int64_t>() - 1);
  EXPECT_LE(first.at(acl::kReduceStart), reductions[0]["begin_ns"]);
  EXPECT_GE(first.at(acl::kReduceStart + 3), reductions[1]["end_ns"]);
  EXPECT_GE(first.at(acl::kIterationEnd), kernels[each - 1]["end_ns"]);
  EXPECT_GE(first.at(acl::kModelEnd), first.at(acl::kIterationEnd));
}

TEST_F(SimTrain, AFolderCanBeUsedAgain) {
  const std::string path = WriteJob(kTwoRanks);
  ASSERT_EQ(Run(path).exit_code, 0);
  const ChildResult again = Run(path);
  EXPECT_EQ(again.exit_code, 0) << again.output;
  EXPECT_EQ(Truth(0, "step").size(), 3u);
}

TEST_F(SimTrain, WithoutTruthItWritesNone) {
  const ChildResult result = Run(WriteJob(std::string("truth = false\n") + kTwoRanks));
  ASSERT_EQ(result.exit_code, 0) << result.output;
  EXPECT_FALSE(std::filesystem::exists(dir_ / "truth_0.jsonl"));
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
  const std::string text = std::string("data_ms = 300\n") + kTwoRanks;
  const ChildResult result = Run(WriteJob(text));
  ASSERT_EQ(result.exit_code, 0) << result.output;
  const std::vector<json> steps = Truth(0, "step");
  ASSERT_EQ(steps.size(), 3u);
  // The first batch is there; the others come 300 ms after the one before. A step that takes as long waits for none.
  for (const json& pause : Truth(0, "pause")) EXPECT_EQ(pause["name"], "dataloader");
  const int64_t begin = steps[0]["begin_ns"];
  EXPECT_GE(steps[1]["end_ns"].get<int64_t>() - begin, 300'000'000);
  EXPECT_GE(steps[2]["end_ns"].get<int64_t>() - begin, 600'000'000);
}

TEST_F(SimTrain, FollowsTheFaultsOfTheScenario) {
  // Throttled from its beginning on, which is now: kernels take twice as long on rank 1.
  const std::string scenario = dir_.Write("scenario.toml", "devices = 2\n[[fault]]\nkind = \"throttle\"\ndevice = 1\nmhz = 900\n");
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

TEST_F(SimTrain, ASlowLinkOfTheScenarioMakesTheAllReducesLonger) {
  const std::string scenario = dir_.Write("scenario.toml", "devices = 2\n[[fault]]\nkind = \"slow_hccs\"\ndevice = 1\nfactor = 0.25\n");
  ::setenv("PROFD_SIM_SCENARIO", scenario.c_str(), 1);
  ::setenv("PROFD_SIM_EPOCH", std::to_string(SystemClock().MonotonicRawNs()).c_str(), 1);
  const ChildResult result = Run(WriteJob(kTwoRanks));
  ::unsetenv("PROFD_SIM_SCENARIO");
  ::unsetenv("PROFD_SIM_EPOCH");
  ASSERT_EQ(result.exit_code, 0) << result.output;
  // 100 kB at 25 bytes/ns and 10 us, four times; from when the last rank has come.
  for (const json& reduction : Truth(0, "communication")) {
    const int64_t ns = reduction["end_ns"].get<int64_t>() - reduction["begin_ns"].get<int64_t>();
    EXPECT_GE(ns, 4 * 14'000);
  }
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
  EXPECT_EQ(Run(dir_ / "none.toml").exit_code, 2);
  EXPECT_THAT(Run(WriteJob("steps = 0")).output, testing::HasSubstr("job.toml: line 1: 'steps'"));
  EXPECT_THAT(Run(WriteJob(kTwoRanks), "2").output, testing::HasSubstr("RANK must be 0..1"));
}

}  // namespace
}  // namespace profd::sim::app
