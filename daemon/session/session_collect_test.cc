#include "daemon/session/session_collect.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace profd {
namespace {

using ::testing::ElementsAre;

TrainingProcess Process(pid_t pid, std::optional<int> rank) {
  TrainingProcess process;
  process.pid = pid;
  process.rank = rank;
  process.attach_id = static_cast<uint64_t>(pid);
  return process;
}

attach::CollectorReport Saying(std::string state, std::vector<std::string> kinds = {}, std::string detail = {}) {
  attach::CollectorReport report;
  report.provider = "mspti";
  report.state = std::move(state);
  report.kinds = std::move(kinds);
  report.detail = std::move(detail);
  return report;
}

class SessionCollectTest : public ::testing::Test {
 protected:
  v1::Outcome Of(std::string_view option, bool over = false) {
    v1::Outcome outcome;
    outcome.set_result(v1::Outcome::RESULT_NEEDS_PROCESS);
    collect_.Fill(option, processes_, over, &outcome);
    return outcome;
  }
  const std::vector<std::string> all_{"kernel", "node_api", "communication"};
  std::vector<TrainingProcess> processes_{Process(10, 0), Process(11, 1), Process(12, std::nullopt)};
  SessionCollect collect_{{{"task_time", all_}, {"hccl", {"communication"}}}};
};

TEST_F(SessionCollectTest, OneOrderForAllOptions) {
  EXPECT_THAT(collect_.Order().kinds, ElementsAre("communication", "kernel", "node_api"));
  EXPECT_EQ(collect_.Order().provider, "mspti");
  EXPECT_FALSE(collect_.leaves_files());
  EXPECT_TRUE(SessionCollect({}).empty());
}

TEST_F(SessionCollectTest, FilesAreTheLastOfAProcess) {
  const attach::AclprofOrder ordered{0x812, 0xFF, {}};
  SessionCollect collect({{"l2", {}}}, ordered);
  EXPECT_EQ(collect.Order().provider, "aclprof");
  ASSERT_TRUE(collect.Order().aclprof.has_value());
  EXPECT_EQ(collect.Order().aclprof->bits, 0x812u);
  EXPECT_TRUE(collect.leaves_files());
  processes_.resize(2);
  attach::CollectorReport report;
  report.provider = "aclprof";
  report.state = "on";
  collect.OnReport(processes_[0], report);
  report.state = "busy";
  collect.OnReport(processes_[1], report);
  v1::Outcome outcome;
  collect.Fill("l2", processes_, false, &outcome);
  EXPECT_EQ(outcome.result(), v1::Outcome::RESULT_PARTIAL);
  EXPECT_THAT(outcome.detail(), ::testing::HasSubstr("served by 1 of 2 processes; rank 1: busy"));
  collect.End();
  EXPECT_FALSE(collect.AllEnded());
  report.state = "stopping";
  collect.OnReport(processes_[0], report);
  EXPECT_FALSE(collect.AllEnded());
  report.state = "files";
  collect.OnReport(processes_[0], report);
  EXPECT_TRUE(collect.AllEnded());
}

TEST_F(SessionCollectTest, AnOptionIsServedByThoseThatSaySo) {
  EXPECT_EQ(Of("task_time").result(), v1::Outcome::RESULT_WAITING);
  EXPECT_EQ(Of("task_time").detail(), "served by 0 of 3 processes; rank 0: ordered");
  for (const TrainingProcess& process : processes_) collect_.OnReport(process, Saying("on", all_));
  EXPECT_EQ(Of("task_time").result(), v1::Outcome::RESULT_RUNNING);
  EXPECT_EQ(Of("task_time").detail(), "served by 3 of 3 processes");
  EXPECT_EQ(Of("task_time", true).result(), v1::Outcome::RESULT_FINISHED);
}

TEST_F(SessionCollectTest, TheWorstReasonIsNamed) {
  collect_.OnReport(processes_[0], Saying("on", all_));
  collect_.OnReport(processes_[1], Saying("waiting", {}, "for libascendcl"));
  collect_.OnReport(processes_[2], Saying("busy", {}, "msprof"));
  const v1::Outcome outcome = Of("task_time");
  EXPECT_EQ(outcome.result(), v1::Outcome::RESULT_PARTIAL);
  EXPECT_EQ(outcome.detail(), "served by 1 of 3 processes; process 12: busy: msprof");
}

TEST_F(SessionCollectTest, NoneServesIt) {
  for (const TrainingProcess& process : processes_) collect_.OnReport(process, Saying("unsupported", {}, "why"));
  EXPECT_EQ(Of("task_time").result(), v1::Outcome::RESULT_UNSUPPORTED);
  collect_.OnReport(processes_[1], Saying("off"));
  EXPECT_EQ(Of("task_time").result(), v1::Outcome::RESULT_UNSUPPORTED);
  collect_.OnReport(processes_[2], Saying("failed", {}, "999"));
  EXPECT_EQ(Of("task_time").result(), v1::Outcome::RESULT_FAILED);
  EXPECT_EQ(Of("task_time").detail(), "served by 0 of 3 processes; process 12: failed: 999");
}

TEST_F(SessionCollectTest, AKindThatWasRefusedIsPartOfTheOptionsThatNeedIt) {
  for (const TrainingProcess& process : processes_) {
    collect_.OnReport(process, Saying("partial", {"kernel", "node_api"}, "communication was refused"));
  }
  EXPECT_EQ(Of("task_time").result(), v1::Outcome::RESULT_PARTIAL);
  EXPECT_EQ(Of("task_time").detail(),
            "served by 3 of 3 processes; rank 0: partial: communication was refused");
  EXPECT_EQ(Of("hccl").result(), v1::Outcome::RESULT_UNSUPPORTED);
  EXPECT_EQ(Of("hccl").detail(), "served by 0 of 3 processes; rank 0: partial: communication was refused");
}

TEST_F(SessionCollectTest, AKindThatIsLeftOutIsServedInPart) {
  attach::CollectorReport report = Saying("partial", {"kernel"}, "left out node_api, communication");
  report.left_out = {"node_api", "communication"};
  for (const TrainingProcess& process : processes_) collect_.OnReport(process, report);
  EXPECT_EQ(Of("task_time").result(), v1::Outcome::RESULT_PARTIAL);
  EXPECT_EQ(Of("hccl").result(), v1::Outcome::RESULT_PARTIAL) << "it was served before, and will be again";
  EXPECT_EQ(Of("hccl").detail(), "served by 3 of 3 processes; rank 0: partial: left out node_api, communication");
}

TEST_F(SessionCollectTest, NoProcessNoAnswer) {
  processes_.clear();
  EXPECT_EQ(Of("task_time").result(), v1::Outcome::RESULT_NEEDS_PROCESS);
  EXPECT_EQ(Of("msproftx").result(), v1::Outcome::RESULT_NEEDS_PROCESS) << "not ordered";
}

TEST_F(SessionCollectTest, TheEndWaitsForThoseThatCollect) {
  collect_.OnReport(processes_[0], Saying("on", all_));
  collect_.OnReport(processes_[1], Saying("silent", all_));
  collect_.OnReport(processes_[2], Saying("waiting"));
  collect_.End();
  EXPECT_FALSE(collect_.AllEnded());
  collect_.OnReport(processes_[0], Saying("off"));
  EXPECT_THAT(collect_.Unended(), ElementsAre(11));
  EXPECT_TRUE(collect_.OnGone(11)) << "with records of its own";
  EXPECT_TRUE(collect_.AllEnded());
  EXPECT_FALSE(collect_.OnGone(10));
  EXPECT_FALSE(collect_.OnGone(99));
  // What it did is still said of the session.
  EXPECT_EQ(Of("hccl", true).detail(), "served by 2 of 3 processes; process 12: waiting");
  v1::SessionProcess wire;
  collect_.Fill(10, &wire);
  EXPECT_EQ(wire.collector().state(), "ended");
  EXPECT_EQ(wire.collector().provider(), "mspti");
  EXPECT_EQ(wire.collector().kinds_size(), 3);
  v1::SessionProcess none;
  collect_.Fill(99, &none);
  EXPECT_FALSE(none.has_collector());
}

}  // namespace
}  // namespace profd
