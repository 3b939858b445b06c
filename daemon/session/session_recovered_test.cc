#include "daemon/session/session_recovered.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace profd {
namespace {

ManifestChannel Channel(std::string collector, int device, uint32_t channel, std::string state) {
  return {.collector = std::move(collector), .device = device, .channel = channel, .state = std::move(state)};
}

TEST(SessionFoundTest, ReportsWhatEachCollectorRecordedAndLost) {
  Manifest manifest{.state = DumpState::kDone, .segment = 3, .aged_for_space = 4, .session_id = "s", .marks = 7};
  ManifestChannel nic = Channel("nic", 0, 129, "finished");
  nic.records = 90;
  nic.bytes = 900;
  nic.aged = {1, 10, 100, 0, 0};
  nic.hz_effective = 50;
  nic.thinned = true;
  nic.AddLoss(LossReason::kQueueFull, 5, 50);
  nic.AddLoss(LossReason::kAged, 10, 100);
  ManifestChannel second = Channel("nic", 0, 130, "busy");
  second.detail = "held by another process";
  manifest.channels = {nic, second, Channel("hbm", 1, 1, "running"),
                       Channel("llc", 0, 3, "denied"), Channel("msproftx", -1, 0, "finished"),
                       Channel("pcie", 1, 3, "interrupted")};
  manifest.channels[4].records = 7;

  const v1::Session session = SessionFromManifest(manifest, "/dumps/PROF_1", 1000);
  ASSERT_EQ(session.status().outcomes_size(), 5);
  const v1::Outcome& first = session.status().outcomes(0);
  EXPECT_EQ(first.collector(), "nic");
  EXPECT_EQ(first.result(), v1::Outcome::RESULT_FINISHED);
  EXPECT_EQ(first.detail(), "held by another process");
  EXPECT_EQ(first.hz(), 50);
  EXPECT_EQ(first.records(), 100U);
  EXPECT_EQ(first.bytes(), 1000U);
  EXPECT_EQ(first.dropped_records(), 5U);
  EXPECT_EQ(first.dropped_bytes(), 50U);
  EXPECT_TRUE(first.thinned());
  EXPECT_EQ(session.status().outcomes(1).result(), v1::Outcome::RESULT_FINISHED);
  EXPECT_EQ(session.status().outcomes(2).result(), v1::Outcome::RESULT_DENIED);
  EXPECT_EQ(session.status().outcomes(3).result(), v1::Outcome::RESULT_FINISHED);
  EXPECT_EQ(session.status().outcomes(4).collector(), "msproftx");
  EXPECT_EQ(session.status().outcomes(4).records(), 7U);
  EXPECT_EQ(session.status().records(), 100U);
  EXPECT_EQ(session.status().dropped_records(), 5U);
  EXPECT_EQ(session.status().removed_records(), 10U);
  EXPECT_EQ(session.status().removed_for_space(), 4U);
  ASSERT_EQ(session.status().segments_size(), 1);
  EXPECT_EQ(session.status().segments(0).number(), 3U);
  EXPECT_EQ(session.status().segments(0).dump_path(), "/dumps/PROF_1");
  EXPECT_EQ(session.status().segments(0).records(), 100U);
}

// As it had them while it ran.
TEST(SessionFoundTest, HasEachWarningOnceInTheSameOrder) {
  const Manifest manifest{.state = DumpState::kDone, .session_id = "s", .warnings = {"device 1", "all", "device 1"}};
  EXPECT_THAT(SessionFromManifest(manifest, "/dumps/PROF_1", 1000).status().warnings(), ::testing::ElementsAre("all", "device 1"));
}

// Sessions of a daemon before this one: what their processes recorded counts once, and for each option that asked.
TEST(SessionFoundTest, CountsWhatProcessesRecorded) {
  Manifest manifest;
  manifest.state = DumpState::kDone;
  ManifestChannel kernel = Channel("activity_kernel", -1, 0, "finished");
  kernel.records = 90;
  kernel.bytes = 900;
  kernel.AddLoss(LossReason::kRingFull, 5, 0);
  ManifestChannel api = Channel("activity_api", -1, 0, "finished");
  api.records = 40;
  manifest.channels = {kernel, api};
  manifest.marks = 7;
  ManifestChannel marker = Channel("activity_marker", -1, 0, "finished");
  marker.records = 14;
  manifest.channels.push_back(marker);
  manifest.options = {{"task_time", "l0", "l0", ""},
                      {"runtime_api", "on", "on", ""},
                      {"msproftx", "on", "on", ""},
                      {"hccl", "off", "", ""}};
  const v1::Session session = SessionFromManifest(manifest, "/dumps/PROF_1", 1000);
  EXPECT_EQ(session.status().records(), 144u);
  EXPECT_EQ(session.status().dropped_records(), 5u);
  ASSERT_EQ(session.status().outcomes_size(), 3);
  EXPECT_EQ(session.status().outcomes(0).collector(), "task_time");
  EXPECT_EQ(session.status().outcomes(0).result(), v1::Outcome::RESULT_FINISHED);
  EXPECT_EQ(session.status().outcomes(0).records(), 130u) << "launch and execution; calls share a file";
  EXPECT_EQ(session.status().outcomes(0).dropped_records(), 5u);
  EXPECT_EQ(session.status().outcomes(1).collector(), "runtime_api");
  EXPECT_EQ(session.status().outcomes(1).records(), 40u);
  EXPECT_EQ(session.status().outcomes(2).collector(), "msproftx");
  EXPECT_EQ(session.status().outcomes(2).records(), 7u);
  // All of them from MSPTI.
  manifest.marks = 0;
  const v1::Session markers = SessionFromManifest(manifest, "/dumps/PROF_1", 1000);
  ASSERT_EQ(markers.status().outcomes_size(), 3);
  EXPECT_EQ(markers.status().outcomes(2).collector(), "msproftx");
  EXPECT_EQ(markers.status().outcomes(2).records(), 14u);
  manifest.marks = 7;
  // A session without options has the default.
  for (ManifestOption& option : manifest.options) option.asked.clear();
  EXPECT_EQ(SessionFromManifest(manifest, "/dumps/PROF_1", 1000).status().outcomes_size(), 2);
}

// docs/dumps.md: steps are recorded whenever a process reports them, marks if the session has msproftx on.
TEST(SessionFoundTest, HasARowOfStacksAndNoneOfMarksThatWereNotWanted) {
  Manifest manifest{.state = DumpState::kDone, .marks = 20};
  manifest.options = {{"task_time", "l1", "", ""}, {"msproftx", "off", "", ""}, {"TORCH_CALL_STACK", "on", "on", ""}};
  manifest.channels = {Channel("marks", -1, 0, "finished"), Channel("stacks", -1, 0, "finished")};
  manifest.channels.back().records = 149;
  const v1::SessionStatus status = SessionFromManifest(manifest, "/dumps/PROF_1", 1000).status();
  EXPECT_EQ(status.marks(), 20u);
  EXPECT_EQ(status.records(), 0u);
  ASSERT_EQ(status.outcomes_size(), 1);
  EXPECT_EQ(status.outcomes(0).collector(), "TORCH_CALL_STACK");
  EXPECT_EQ(status.outcomes(0).result(), v1::Outcome::RESULT_FINISHED);
  EXPECT_EQ(status.outcomes(0).records(), 149u);
}

// What the session itself wrote at its end, so that the next daemon shows it alike.
TEST(SessionFoundTest, HasWhatTheSessionReportedAtItsEnd) {
  Manifest manifest;
  manifest.state = DumpState::kDone;
  manifest.warnings = {"storage_limit lowered to 100 MB"};
  manifest.expected_ranks = 16;
  manifest.processes = {{12, 3, true, {}, "", "", "", "aclprof", "partial", "no l2"}};
  manifest.devices.resize(2);
  manifest.devices[0].id = 5;
  manifest.devices[0].use = {1.5, 7, std::nullopt, std::nullopt, std::nullopt};
  manifest.options = {{"task_time", "l1", "l1", "", "finished", "served by 1 of 1 process"},
                      {"l2", "on", "on", "", "unsupported", "served by 0 of 1 process; rank 3: no l2"},
                      {"aicpu", "off", "", ""}};
  manifest.process_files = {{12, 3, "beside", "PROF_1", "complete", 48, 900, 0, 0, {}, ""}};
  const v1::SessionStatus status = SessionFromManifest(manifest, "/dumps/PROF_1", 1000).status();
  ASSERT_EQ(status.warnings_size(), 1);
  EXPECT_EQ(status.warnings(0), "storage_limit lowered to 100 MB");
  EXPECT_EQ(status.expected_ranks(), 16u);
  ASSERT_EQ(status.processes_size(), 1);
  EXPECT_EQ(status.processes(0).collector().provider(), v1::SessionSpec::PROVIDER_ACLPROF);
  EXPECT_EQ(status.processes(0).collector().state(), v1::ProcessCollector::STATE_PARTIAL);
  EXPECT_EQ(status.processes(0).collector().detail(), "no l2");
  ASSERT_EQ(status.statistics_size(), 1);
  EXPECT_EQ(status.statistics(0).device(), 5u);
  EXPECT_EQ(status.statistics(0).energy_joules(), 1.5);
  EXPECT_EQ(status.statistics(0).peak_memory_bytes(), 7u);
  EXPECT_FALSE(status.statistics(0).has_mean_utilization_ratio());
  ASSERT_EQ(status.outcomes_size(), 2);
  EXPECT_EQ(status.outcomes(0).detail(), "served by 1 of 1 process; process 12: 48 files in PROF_1");
  EXPECT_EQ(status.outcomes(0).bytes(), 900u);
  EXPECT_EQ(status.outcomes(1).result(), v1::Outcome::RESULT_UNSUPPORTED);
  EXPECT_EQ(status.outcomes(1).bytes(), 0u);
}

}  // namespace
}  // namespace profd
