#include "daemon/session/session_collect.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "proto/enum_word/enum_word.h"

namespace profd {
namespace {

using ::testing::ElementsAre;
using ::testing::EndsWith;
using attach::CollectKinds;
using attach::CollectState;
using enum attach::CollectKind;
using enum attach::CollectState;

TrainingProcess Process(pid_t pid, std::optional<int> rank) {
  return {.pid = pid, .rank = rank, .attach_id = static_cast<uint64_t>(pid)};
}

attach::CollectorReport Reporting(CollectState state, CollectKinds kinds = {}, std::string detail = {}) {
  return {.provider = attach::CollectProvider::kMspti, .state = state, .detail = std::move(detail), .kinds = kinds};
}

class SessionCollectTest : public ::testing::Test {
 protected:
  v1::Outcome Of(std::string_view option, bool over = false) {
    v1::Outcome outcome;
    outcome.set_result(v1::Outcome::RESULT_NEEDS_PROCESS);
    collect_.Fill(option, processes_, over, &outcome);
    return outcome;
  }
  const CollectKinds all_{kKernel, kNodeApi, kCommunication};
  std::vector<TrainingProcess> processes_{Process(10, 0), Process(11, 1), Process(12, std::nullopt)};
  SessionCollect collect_{{{"task_time", all_}, {"hccl", {kCommunication}}}};
};

TEST_F(SessionCollectTest, OneRequestForAllOptions) {
  EXPECT_EQ(collect_.Request().kinds, all_);
  EXPECT_EQ(collect_.Request().provider, attach::CollectProvider::kMspti);
  EXPECT_FALSE(collect_.leaves_files());
  EXPECT_TRUE(SessionCollect({}).empty());
}

TEST_F(SessionCollectTest, FilesAreTheLastOfAProcess) {
  const attach::AclprofRequest ordered{0x812, 0xFF, {}};
  SessionCollect collect({{"l2", {}}}, ordered);
  EXPECT_EQ(collect.Request().provider, attach::CollectProvider::kAclprof);
  ASSERT_TRUE(collect.Request().aclprof.has_value());
  EXPECT_EQ(collect.Request().aclprof->bits, 0x812u);
  EXPECT_TRUE(collect.leaves_files());
  processes_.resize(2);
  attach::CollectorReport report{.provider = attach::CollectProvider::kAclprof, .state = kOn};
  collect.OnReport(processes_[0], report);
  report.state = kBusy;
  collect.OnReport(processes_[1], report);
  v1::Outcome outcome;
  collect.Fill("l2", processes_, false, &outcome);
  EXPECT_EQ(outcome.result(), v1::Outcome::RESULT_PARTIAL);
  EXPECT_THAT(outcome.detail(), ::testing::HasSubstr("served by 1 of 2 processes; rank 1: busy"));
  collect.End();
  EXPECT_FALSE(collect.AllEnded());
  report.state = kStopping;
  collect.OnReport(processes_[0], report);
  EXPECT_FALSE(collect.AllEnded());
  report.state = kFiles;
  collect.OnReport(processes_[0], report);
  EXPECT_TRUE(collect.AllEnded());
}

// Its stop failed, or it met another client of MSPTI (docs/api.md): the process's part is partial.
TEST_F(SessionCollectTest, FilesThatAreNotCompleteArePartOfAnOption) {
  for (const auto& [code, detail] : {std::pair(500005, "aclprofStop: 500005"), std::pair(500005, ""), std::pair(0, "a client of MSPTI")}) {
    SessionCollect collect({{"l2", {}}}, attach::AclprofRequest{0x812, 0xFF, {}});
    processes_.resize(2);
    attach::CollectorReport report = Reporting(kFiles, {}, detail);
    report.code = code;
    collect.OnReport(processes_[0], report);
    collect.OnReport(processes_[1], Reporting(kFiles));
    v1::Outcome outcome;
    collect.Fill("l2", processes_, true, &outcome);
    EXPECT_EQ(outcome.result(), v1::Outcome::RESULT_PARTIAL) << detail;
    EXPECT_EQ(outcome.detail(), "served by 2 of 2 processes") << "the reasons are with the files";
    collect.OnReport(processes_[0], Reporting(kFiles));
    collect.Fill("l2", processes_, true, &outcome);
    EXPECT_EQ(outcome.result(), v1::Outcome::RESULT_FINISHED);
  }
}

// It was killed while the vendor's profiler wrote them, or that wrote none.
TEST_F(SessionCollectTest, AProcessWithoutFilesHasNotServedAnOption) {
  SessionCollect collect({{"l2", {}}}, attach::AclprofRequest{0x812, 0xFF, {}});
  processes_.resize(2);
  collect.OnReport(processes_[0], Reporting(kStopping));
  collect.OnReport(processes_[1], Reporting(kOn));
  v1::Outcome outcome;
  collect.Fill("l2", processes_, false, &outcome);
  EXPECT_EQ(outcome.result(), v1::Outcome::RESULT_RUNNING);
  collect.End();
  EXPECT_TRUE(collect.OnGone(10));
  collect.OnReport(processes_[1], Reporting(kOff));
  collect.Fill("l2", processes_, true, &outcome);
  EXPECT_EQ(outcome.result(), v1::Outcome::RESULT_FAILED);
  EXPECT_EQ(outcome.detail(), "served by 0 of 2 processes; rank 0: failed: it left no files");
  collect.OnReport(processes_[1], Reporting(kFiles));
  collect.Fill("l2", processes_, true, &outcome);
  EXPECT_EQ(outcome.result(), v1::Outcome::RESULT_PARTIAL);
  EXPECT_EQ(outcome.detail(), "served by 1 of 2 processes; rank 0: failed: it left no files");
}

TEST_F(SessionCollectTest, AnOptionIsServedByThoseThatSaySo) {
  EXPECT_EQ(Of("task_time").result(), v1::Outcome::RESULT_WAITING);
  EXPECT_EQ(Of("task_time").detail(), "served by 0 of 3 processes; rank 0: no answer yet");
  for (const TrainingProcess& process : processes_) collect_.OnReport(process, Reporting(kOn, all_));
  EXPECT_EQ(Of("task_time").result(), v1::Outcome::RESULT_RUNNING);
  EXPECT_EQ(Of("task_time").detail(), "served by 3 of 3 processes");
  EXPECT_EQ(Of("task_time", true).result(), v1::Outcome::RESULT_FINISHED);
}

TEST_F(SessionCollectTest, TheWorstReasonIsNamed) {
  collect_.OnReport(processes_[0], Reporting(kOn, all_));
  collect_.OnReport(processes_[1], Reporting(kWaiting, {}, "for libascendcl"));
  collect_.OnReport(processes_[2], Reporting(kBusy, {}, "msprof"));
  const v1::Outcome outcome = Of("task_time");
  EXPECT_EQ(outcome.result(), v1::Outcome::RESULT_PARTIAL);
  EXPECT_EQ(outcome.detail(), "served by 1 of 3 processes; process 12: busy: msprof");
}

TEST_F(SessionCollectTest, NoneServesIt) {
  for (const TrainingProcess& process : processes_) collect_.OnReport(process, Reporting(kUnsupported, {}, "why"));
  EXPECT_EQ(Of("task_time").result(), v1::Outcome::RESULT_UNSUPPORTED);
  collect_.OnReport(processes_[1], Reporting(kOff));
  EXPECT_EQ(Of("task_time").result(), v1::Outcome::RESULT_UNSUPPORTED);
  collect_.OnReport(processes_[2], Reporting(kFailed, {}, "999"));
  EXPECT_EQ(Of("task_time").result(), v1::Outcome::RESULT_FAILED);
  EXPECT_EQ(Of("task_time").detail(), "served by 0 of 3 processes; process 12: failed: 999");
}

TEST_F(SessionCollectTest, AKindThatWasRefusedIsPartOfTheOptionsThatNeedIt) {
  for (const TrainingProcess& process : processes_) {
    collect_.OnReport(process, Reporting(kPartial, {kKernel, kNodeApi}, "communication was refused"));
  }
  EXPECT_EQ(Of("task_time").result(), v1::Outcome::RESULT_PARTIAL);
  EXPECT_EQ(Of("task_time").detail(),
            "served by 3 of 3 processes; rank 0: partial: communication was refused");
  EXPECT_EQ(Of("hccl").result(), v1::Outcome::RESULT_UNSUPPORTED);
  EXPECT_EQ(Of("hccl").detail(), "served by 0 of 3 processes; rank 0: partial: communication was refused");
}

TEST_F(SessionCollectTest, AKindThatIsLeftOutIsServedInPart) {
  attach::CollectorReport report = Reporting(kPartial, {kKernel}, "left out node_api, communication");
  report.left_out = {kNodeApi, kCommunication};
  for (const TrainingProcess& process : processes_) collect_.OnReport(process, report);
  EXPECT_EQ(Of("task_time").result(), v1::Outcome::RESULT_PARTIAL);
  EXPECT_EQ(Of("hccl").result(), v1::Outcome::RESULT_PARTIAL) << "it was served before, and will be again";
  EXPECT_EQ(Of("hccl").detail(), "served by 3 of 3 processes; rank 0: partial: left out node_api, communication");
}

// Steps go by and nothing arrives: that is no data, whatever its collector has switched on.
TEST_F(SessionCollectTest, OneWithoutRecordsIsServedInPart) {
  for (const TrainingProcess& process : processes_) collect_.OnReport(process, Reporting(kOn, all_));
  EXPECT_EQ(Of("hccl").result(), v1::Outcome::RESULT_RUNNING);
  collect_.OnReport(processes_[1], Reporting(kSilent, all_, "steps went by without a record"));
  EXPECT_EQ(Of("hccl").result(), v1::Outcome::RESULT_PARTIAL);
  EXPECT_THAT(Of("hccl").detail(), EndsWith("silent: steps went by without a record"));
  collect_.OnReport(processes_[1], Reporting(kOn, all_));
  EXPECT_EQ(Of("hccl").result(), v1::Outcome::RESULT_RUNNING);
}

TEST_F(SessionCollectTest, NoProcessNoAnswer) {
  processes_.clear();
  EXPECT_EQ(Of("task_time").result(), v1::Outcome::RESULT_NEEDS_PROCESS);
  EXPECT_EQ(Of("msproftx").result(), v1::Outcome::RESULT_NEEDS_PROCESS) << "not requested";
}

TEST_F(SessionCollectTest, TheEndWaitsForThoseThatCollect) {
  collect_.OnReport(processes_[0], Reporting(kOn, all_));
  collect_.OnReport(processes_[1], Reporting(kSilent, all_));
  collect_.OnReport(processes_[2], Reporting(kWaiting));
  collect_.End();
  EXPECT_FALSE(collect_.AllEnded());
  collect_.OnReport(processes_[0], Reporting(kOff));
  EXPECT_THAT(collect_.Unended(), ElementsAre(11));
  EXPECT_TRUE(collect_.OnGone(11)) << "with records of its own";
  EXPECT_TRUE(collect_.AllEnded());
  EXPECT_FALSE(collect_.OnGone(10));
  EXPECT_FALSE(collect_.OnGone(99));
  // What it did is still said of the session.
  EXPECT_EQ(Of("hccl", true).detail(), "served by 2 of 3 processes; process 12: waiting");
  v1::SessionProcess wire;
  collect_.Fill(10, &wire);
  EXPECT_EQ(wire.collector().state(), v1::ProcessCollector::STATE_ENDED);
  EXPECT_EQ(wire.collector().provider(), v1::SessionSpec::PROVIDER_MSPTI);
  EXPECT_EQ(wire.collector().kinds_size(), 3);
  v1::SessionProcess none;
  collect_.Fill(99, &none);
  EXPECT_FALSE(none.has_collector());
}

// The contract has a value for each state and kind of the attach protocol.
TEST(SessionCollectWords, AreThoseOfTheContract) {
  for (const std::string_view word : attach::kCollectKindWords) EXPECT_NE(EnumOf<v1::ProcessCollector::Kind>(word), 0) << word;
  for (const std::string_view word : attach::kCollectStateWords) {
    EXPECT_EQ(EnumOf<v1::ProcessCollector::State>(word) == 0, word == "files") << word << ": with its files it has ended";
  }
  for (const auto provider : {attach::CollectProvider::kMspti, attach::CollectProvider::kAclprof}) {
    EXPECT_NE(EnumOf<v1::SessionSpec::Provider>(WordOf(provider)), 0) << WordOf(provider);
  }
}

}  // namespace
}  // namespace profd
