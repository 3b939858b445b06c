#include "analysis/read/trace_counters.h"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <array>
#include <filesystem>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "analysis/run.h"
#include "analysis/views/views.h"
#include "dump/test_support.h"

namespace profd::analysis {
namespace {

using ::testing::ElementsAre;

// "name of device: mean (samples)"
std::vector<std::string> Describe(const Rank& rank) {
  std::vector<std::string> texts;
  for (const auto& series : rank.hardware) {
    texts.push_back(fmt::format("{} of {}: {} ({})", series->name, series->device, series->sum / static_cast<double>(series->count), series->count));
  }
  return texts;
}

// analysis 5.2: the device is that of the label, else the lowest five bits of the process's number.
TEST(TraceCountersTest, AreOfTheDeviceOfTheirProcess) {
  Rank rank;
  rank.device = 6;
  TraceCounters counters(&rank);
  const std::vector<std::pair<std::string, double>> mhz = {{"MHz", 1800}};
  const std::vector<std::pair<std::string, double>> other = {{"MHz", 800}};
  const std::vector<std::pair<std::string, double>> usage = {{"Usage(%)", 5}};
  constexpr int64_t kProcess = 7 << 10;
  counters.TakeLabel(kProcess | 1, "NPU 3");
  EXPECT_TRUE(counters.Take(kProcess | 1, "AI Core Freq", mhz, 10));
  EXPECT_TRUE(counters.Take(kProcess | 2, "AI Core Freq", other, 10));
  EXPECT_TRUE(counters.Take(kProcess | 1, "AI Core Freq", mhz, 20));
  EXPECT_TRUE(counters.Take(kProcess | 3, "CPU 0", usage, 10));
  EXPECT_TRUE(counters.Take(kProcess | 4, "other", mhz, 10));
  counters.TakeLabel(kProcess | 2, "NPU");
  counters.TakeLabel(kProcess | 3, "CPU");
  counters.Finish();
  EXPECT_THAT(Describe(rank), ElementsAre("AI Core Freq of 3: 1800 (2)", "AI Core Freq of 2: 800 (1)", "CPU 0 Usage of -1: 5 (1)", "other of 6: 1800 (1)"));
}

// analysis 2.3: {"value": 0, "acc_id": 0}
TEST(TraceCountersTest, OfEachAccelerator) {
  Rank rank;
  TraceCounters counters(&rank);
  for (int accelerator = 0; accelerator < 2; ++accelerator) {
    EXPECT_TRUE(counters.Take(1, "read_ost", std::vector<std::pair<std::string, double>>{{"value", 3.0 + accelerator}, {"acc_id", accelerator}}, 10));
  }
  EXPECT_THAT(Describe(rank), ElementsAre("Acc 0/read_ost of -1: 3 (1)", "Acc 1/read_ost of -1: 4 (1)"));
}

// analysis 2.1: large files are cut into slices; a counter is in all of them.
TEST(TraceCountersTest, OfAllSlices) {
  const TempDir dir;
  const std::string folder = dir / "n_0_ascend_pt" + "/ASCEND_PROFILER_OUTPUT";
  std::filesystem::create_directories(folder);
  WriteText(folder + "/op_summary_20260101080000.csv", "Op Name,OP Type,Task Type,Task Start Time(us),Task Duration(us)\nk,Mul,AI_CORE,1,1\n");
  const std::string label = R"({"ph":"M","name":"process_labels","pid":1,"tid":0,"args":{"labels":"NPU"}},)";
  for (int slice = 0; slice < 2; ++slice) {
    WriteText(fmt::format("{}/msprof_slice_{}_20260101080000.json", folder, slice),
              fmt::format(R"([{}{{"ph":"C","name":"AI Core Freq","pid":1,"tid":0,"ts":"{}","args":{{"MHz":{}}}}}])", slice == 0 ? label : "", 10 + slice, 1800 - 800 * slice));
  }
  const auto run = LoadRun({dir / "n_0_ascend_pt"}, {}, {});
  ASSERT_TRUE(run.ok());
  ASSERT_EQ(run->ranks.size(), 1u);
  EXPECT_THAT(Describe(*run->ranks[0]), ElementsAre("AI Core Freq of 1: 1400 (2)"));
}

// analysis 5.2: the device of a rank is that of its hardware, by the label, else by the number of the process. Tables have none
// where memory was not recorded.
TEST(TraceCountersTest, ARankIsOfTheDeviceOfItsHardware) {
  constexpr int kProcess = 7 << 10;
  const auto device_of = [](std::string_view name, std::string_view label) {
    const TempDir dir;
    const std::string folder = dir / "n_0_ascend_pt" + "/ASCEND_PROFILER_OUTPUT";
    std::filesystem::create_directories(folder);
    WriteText(folder + "/kernel_details.csv", "Name,Type,Accelerator Core,Start Time(us),Duration(us)\nk,Mul,AI_CORE,1,1\n");
    WriteText(folder + "/trace_view.json", fmt::format(R"([{{"ph":"M","name":"process_name","pid":{0},"tid":0,"args":{{"name":"{1}"}}}},)"
                                                       R"({{"ph":"M","name":"process_labels","pid":{0},"tid":0,"args":{{"labels":"{2}"}}}}])",
                                                       kProcess | 5, name, label));
    const auto run = LoadRun({dir / "n_0_ascend_pt"}, {}, {});
    return run.ok() && run->ranks.size() == 1 ? run->ranks[0]->device : std::optional(-1);
  };
  EXPECT_EQ(device_of("Ascend Hardware", "NPU"), 5);
  EXPECT_EQ(device_of("HCCL", "NPU"), 5);
  EXPECT_EQ(device_of("Communication", "NPU 3"), 3);
  EXPECT_EQ(device_of("Ascend Hardware", "CPU"), std::nullopt);
  EXPECT_EQ(device_of("Python", "NPU"), std::nullopt);
}

// docs/analysis.md: the times of a rank of several devices are those in which any of them computed or communicated.
TEST(TraceCountersTest, ARankComputesWhileOneOfItsDevicesDoes) {
  const TempDir dir;
  const std::string folder = dir / "n_0_ascend_pt" + "/ASCEND_PROFILER_OUTPUT";
  std::filesystem::create_directories(folder);
  std::string events;
  for (int device = 0; device < 2; ++device) {
    events += fmt::format(R"({{"ph":"M","name":"process_name","pid":{},"tid":0,"args":{{"name":"Overlap Analysis"}}}},)", 7 << 10 | device);
  }
  const auto add = [&events](int device, std::string_view name, int begin_us, int us) {
    events += fmt::format(R"({{"ph":"X","name":"{}","pid":{},"tid":0,"ts":"{}","dur":{}}},)", name, 7 << 10 | device, begin_us, us);
  };
  add(0, "Computing", 1000, 100);
  add(0, "Free", 1100, 50);
  add(0, "Computing", 1150, 50);
  add(1, "Computing", 1050, 110);
  add(1, "Communication", 1190, 20);
  add(1, "Communication(Not Overlapped)", 1190, 20);
  events.back() = ']';
  WriteText(folder + "/trace_view.json", "[" + events);
  const auto run = LoadRun({dir / "n_0_ascend_pt"}, {}, {});
  ASSERT_TRUE(run.ok());
  ASSERT_EQ(run->ranks.size(), 1u);
  // Computing from 1000 to 1200, communication from 1190 to 1210.
  const Json overall = OverallView(*run->ranks[0]);
  const auto expected = std::to_array<std::pair<const char*, double>>({{"e2e_ms", 0.21}, {"computing_ms", 0.2}, {"communication_ms", 0.02},
                                                                      {"uncovered_communication_ms", 0.01}, {"overlapped_ms", 0.01}, {"free_ms", 0}});
  for (const auto& [name, ms] : expected) EXPECT_NEAR(overall[name].get<double>(), ms, 1e-9) << name;
}

}  // namespace
}  // namespace profd::analysis
