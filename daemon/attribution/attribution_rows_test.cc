#include "daemon/attribution/attribution_rows.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>

#include "daemon/attribution/test_support.h"

namespace profd {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;
using testing::SizeIs;

constexpr MetricId kJob = MetricByName("atlas_npu_job_info");
constexpr MetricId kProcess = MetricByName("atlas_npu_process_info");
constexpr MetricId kContainer = MetricByName("atlas_npu_container_info");

TEST(AttributionRows, ProcessesAndTheirJobs) {
  RoundInput input;
  input.processes = {ProcessOf(10, 1, "4711", {0}), ProcessOf(11, 1, "4711", {1, 2}),
                     ProcessOf(12, 2, "", {3}), ProcessOf(13, 2, "4711", {1, 99})};
  input.processes[0].rank = 3;
  input.processes[0].framework = "pytorch";
  AttributionRows rows = input.Describe();
  EXPECT_THAT(SeriesOf(rows, kProcess),
              ElementsAre("0: 10|4711|3|u1|python3|pytorch", "1: 11|4711||u1|python3|",
                          "1: 13|4711||u2|python3|", "2: 11|4711||u1|python3|",
                          "3: 12|||u2|python3|"));
  // The same id under another user is another job; a process of no job is in none.
  EXPECT_THAT(SeriesOf(rows, kJob), ElementsAre("0: 4711|u1|slurm", "1: 4711|u1|slurm",
                                                "1: 4711|u2|slurm", "2: 4711|u1|slurm"));
  EXPECT_EQ(rows.process_names.at(10), (ProcessName{"4711", ""}));
  EXPECT_EQ(rows.hidden_processes + rows.hidden_jobs + rows.hidden_containers, 0u);
}

TEST(AttributionRows, WaitForTheNameOfTheUser) {
  RoundInput input;
  input.processes = {ProcessOf(10, 1, "4711", {0})};
  input.user_of = [](uint32_t) { return std::nullopt; };
  AttributionRows rows = input.Describe();
  EXPECT_THAT(SeriesOf(rows, kProcess), IsEmpty());
  EXPECT_THAT(SeriesOf(rows, kJob), IsEmpty());
  EXPECT_EQ(rows.process_names.at(10).job, "4711");
}

TEST(AttributionRows, OneUnreadableProcessDoesNotChangeTheScheduler) {
  RoundInput input;
  input.processes = {ProcessOf(10, 1, "j", {0}), ProcessOf(11, 1, "j", {0})};
  input.processes[0].scheduler = "";
  EXPECT_THAT(SeriesOf(input.Describe(), kJob), ElementsAre("0: j|u1|slurm"));
  input.processes[1].scheduler = "none";
  EXPECT_THAT(SeriesOf(input.Describe(), kJob), ElementsAre("0: j|u1|none"));
}

TEST(AttributionRows, StepsOfAttachedProcesses) {
  RoundInput input;
  input.processes = {ProcessOf(10, 1, "j", {1, 0}), ProcessOf(11, 1, "j", {}),
                     ProcessOf(12, 1, "j", {2})};
  for (size_t i = 0; i < 2; ++i) {
    input.processes[i].attach_id = 100 + i;
    input.processes[i].rank = static_cast<int>(i);
    input.processes[i].step = 7;
  }
  input.processes[1].steps_done = 5;
  input.processes[1].step_s = 0.25;
  input.processes[2].step = 3;  // silent: not attached any more
  AttributionRows rows = input.Describe();
  // The first of its devices; none known for the second; no duration before a step is complete.
  EXPECT_THAT(SeriesOf(rows, MetricByName("atlas_npu_step")),
              ElementsAre("-1: |j|1|11 = 7.000000", "-1: 5|j|0|10 = 7.000000"));
  EXPECT_THAT(SeriesOf(rows, MetricByName("atlas_npu_steps_total")),
              ElementsAre("-1: |j|1|11 = 5.000000", "-1: 5|j|0|10 = 0.000000"));
  EXPECT_THAT(SeriesOf(rows, MetricByName("atlas_npu_step_duration_seconds")),
              ElementsAre("-1: |j|1|11 = 0.250000"));
}

TEST(AttributionRows, ActivityOfProcessesThatAreCollectedFrom) {
  RoundInput input;
  input.processes = {ProcessOf(10, 1, "j", {0}), ProcessOf(11, 1, "j", {1})};
  for (TrainingProcess& process : input.processes) process.attach_id = 100;
  ActivityAccount account{.begin_ns = 1'000'000'000, .end_ns = 9'000'000'000, .computation = 0.5,
                          .communication = 0.375, .not_overlapped = 0.25, .free = 0.25, .kernels = 4000, .steps = 2,
                          .longest_ns = 1'500'000};
  input.processes[0].activity = account;
  input.processes[0].lost_activity = 3;
  input.processes[1].activity = ActivityAccount();  // no second is complete
  AttributionRows rows = input.Describe();
  EXPECT_THAT(SeriesOf(rows, MetricByName("atlas_npu_activity_ratio")),
              ElementsAre("-1: 4|j||10|communication = 0.375000",
                          "-1: 4|j||10|communication_not_overlapped = 0.250000",
                          "-1: 4|j||10|computation = 0.500000", "-1: 4|j||10|free = 0.250000"));
  EXPECT_THAT(SeriesOf(rows, MetricByName("atlas_npu_kernels_per_second")),
              ElementsAre("-1: 4|j||10 = 500.000000"));
  EXPECT_THAT(SeriesOf(rows, MetricByName("atlas_npu_longest_kernel_seconds")),
              ElementsAre("-1: 4|j||10 = 0.001500"));
  EXPECT_THAT(SeriesOf(rows, MetricByName("atlas_npu_steps_per_second")),
              ElementsAre("-1: 4|j||10 = 0.250000"));
  EXPECT_THAT(SeriesOf(rows, MetricByName("atlas_npu_activity_lost_records_total")),
              ElementsAre("-1: 4|j||10 = 3.000000"));
}

TEST(AttributionRows, JobMapAddsWhatProcessesDoNotTell) {
  RoundInput input;
  input.processes = {ProcessOf(10, 1, "4711", {0})};
  input.map.jobs = {{4, {"4711"}}, {5, {"4711", "4712"}}, {6, {}}, {9, {"4713"}}};
  AttributionRows rows = input.Describe();
  EXPECT_THAT(SeriesOf(rows, kJob), ElementsAre("0: 4711|u1|slurm", "1: 4711|u1|slurm",
                                                "1: 4712||job_map"));
  EXPECT_THAT(rows.ignored, ElementsAre("9: this node has no NPU 9"));
  // Two users have such a job: the map does not say whose it is.
  input.processes.push_back(ProcessOf(11, 2, "4711", {2}));
  EXPECT_THAT(SeriesOf(input.Describe(), kJob),
              ElementsAre("0: 4711|u1|slurm", "1: 4711||job_map", "1: 4712||job_map",
                          "2: 4711|u2|slurm"));
}

TEST(AttributionRows, LimitsHoldAndAreFair) {
  RoundInput input;
  input.max_processes = 4;
  input.max_jobs = 3;
  for (int i = 0; i < 100; ++i) input.processes.push_back(ProcessOf(i + 1, 1, std::to_string(i), {0}));
  input.processes.push_back(ProcessOf(500, 2, "mine", {0}));
  input.processes.push_back(ProcessOf(501, 2, "mine", {1}));
  AttributionRows rows = input.Describe();
  EXPECT_THAT(SeriesOf(rows, kProcess), SizeIs(4));
  EXPECT_EQ(rows.hidden_processes, 98u);
  EXPECT_EQ(rows.hidden_jobs, 98u);
  EXPECT_THAT(SeriesOf(rows, kProcess), testing::Contains("0: 500|mine||u2|python3|"));
  EXPECT_THAT(SeriesOf(rows, kJob), testing::Contains("0: mine|u2|slurm"));
  input.max_processes = input.max_jobs = 0;
  EXPECT_THAT(input.Describe().series, IsEmpty());
}

TEST(AttributionRows, HostileTextStaysWithinLabels) {
  RoundInput input;
  input.processes = {ProcessOf(10, 1, "j\"} 1\nx{y=\"\xff", {0})};
  input.processes[0].command = std::string(500, '\n');
  input.user_of = [](uint32_t) { return "ev\x01il"; };
  for (const auto& [key, value] : input.Describe().series) {
    for (const std::string& label : key.labels) {
      EXPECT_LE(label.size(), 128u);
      EXPECT_EQ(label.find_first_of("\n\x01\xff"), std::string::npos) << label;
    }
  }
}

TEST(ContainerRows, ByCgroupAlone) {
  RoundInput input;
  input.processes = {ProcessOf(10, 1, "j", {0}), ProcessOf(11, 1, "j", {0, 1}),
                     ProcessOf(12, 1, "j", {2})};
  input.processes[0].container_id = input.processes[1].container_id = "c1";
  input.processes[0].pod_uid = input.processes[1].pod_uid = "uid-1";
  input.processes[2].container_id = "c2";
  AttributionRows rows = input.Describe();
  EXPECT_THAT(SeriesOf(rows, kContainer),
              ElementsAre("0: |uid-1||c1", "1: |uid-1||c1", "2: |||c2"));
  EXPECT_EQ(rows.process_names.at(12), (ProcessName{"j", "c2"}));
}

TEST(ContainerRows, NamesOfTheRuntime) {
  RoundInput input;
  input.processes = {ProcessOf(10, 1, "j", {0})};
  input.processes[0].container_id = "c1";
  input.processes[0].pod_uid = "uid-1";
  input.names["c1"] = {"ns", "train-0", "main"};
  AttributionRows rows = input.Describe();
  EXPECT_THAT(SeriesOf(rows, kContainer), ElementsAre("0: ns|train-0|main|c1"));
  EXPECT_EQ(rows.process_names.at(10), (ProcessName{"j", "main"}));
}

TEST(ContainerRows, DevicesTheKubeletReports) {
  RoundInput input;
  input.pods = {{"ns", "train-0", "main", "Ascend910-4"},
                {"ns", "train-0", "main", "Ascend910-5"},
                {"ns", "idle", "main", "Ascend910-6"},
                {"ns", "odd", "main", "Ascend910-99"}};
  EXPECT_THAT(SeriesOf(input.Describe(), kContainer),
              ElementsAre("0: ns|train-0|main|", "1: ns|train-0|main|", "2: ns|idle|main|"));
  // A process in a pod on one of them names its container, and the other device is still its own.
  input.processes = {ProcessOf(10, 1, "j", {0})};
  input.processes[0].container_id = "c1";
  input.processes[0].pod_uid = "uid-1";
  EXPECT_THAT(SeriesOf(input.Describe(), kContainer),
              ElementsAre("0: ns|train-0|main|c1", "1: ns|train-0|main|", "2: ns|idle|main|"));
  // Docker's container on a device that a pod was given is not that pod's.
  input.processes[0].pod_uid = "";
  EXPECT_THAT(SeriesOf(input.Describe(), kContainer),
              ElementsAre("0: |||c1", "1: ns|train-0|main|", "2: ns|idle|main|"));
}

TEST(ContainerRows, ProcessesCountMoreThanTheKubeletsPlan) {
  RoundInput input;
  input.pods = {{"ns", "a", "main", "Ascend910-4"}, {"ns", "b", "main", "Ascend910-5"}};
  input.processes = {ProcessOf(10, 1, "j", {1}), ProcessOf(11, 1, "j", {0})};
  input.processes[0].container_id = "ca";
  input.processes[1].container_id = "cb";
  for (auto& process : input.processes) process.pod_uid = "uid-" + process.container_id;
  input.names = {{"ca", {"ns", "a", "main"}}, {"cb", {"ns", "b", "main"}}};
  EXPECT_THAT(SeriesOf(input.Describe(), kContainer),
              ElementsAre("0: ns|b|main|cb", "1: ns|a|main|ca"));
}

TEST(ContainerRows, TwoCandidatesGiveNoName) {
  RoundInput input;
  input.pods = {{"ns", "a", "main", "D1E-000-0"}, {"ns", "b", "main", "D1E-000-1"}};
  input.processes = {ProcessOf(10, 1, "j", {0})};
  input.processes[0].container_id = "c1";
  input.processes[0].pod_uid = "uid-1";
  EXPECT_THAT(SeriesOf(input.Describe(), kContainer), ElementsAre("0: |uid-1||c1"));
  input.processes.clear();
  EXPECT_THAT(SeriesOf(input.Describe(), kContainer), ElementsAre("0: ns|a|main|", "0: ns|b|main|"));
}

TEST(ContainerRows, AreBounded) {
  RoundInput input;
  input.max_processes = 10;
  for (int i = 0; i < 50; ++i) {
    input.processes.push_back(ProcessOf(i + 1, 1, "j", {0}));
    input.processes.back().container_id = "c" + std::to_string(i);
  }
  AttributionRows rows = input.Describe();
  EXPECT_THAT(SeriesOf(rows, kContainer), SizeIs(10));
  EXPECT_EQ(rows.hidden_containers, 40u);
}

TEST(DeviceOfPlugin, UnderstandsTheNamesInUse) {
  RoundInput input;
  auto of = [&](std::string_view id) { return DeviceOfPlugin(input.devices, id).value_or(-1); };
  EXPECT_EQ(of("Ascend910-4"), 0);
  EXPECT_EQ(of("Ascend310P-7"), 3);
  EXPECT_EQ(of("Ascend310P-2c-101-5"), 1);  // a virtual device: its physical one comes last
  EXPECT_EQ(of("npu-6"), 2);
  EXPECT_EQ(of("D1E-002"), 2);
  EXPECT_EQ(of("D1E-002-4"), 2);  // a share: the number is the share's
  EXPECT_EQ(of("D1E-0020-4"), -1);
  for (const char* id : {"", "-", "4", "GPU-4", "Ascend910", "Ascend910-", "Ascend910-x", "Ascend910-0",
                         "Ascend910-99999999999"}) {
    EXPECT_EQ(of(id), -1) << id;
  }
}

}  // namespace
}  // namespace profd
