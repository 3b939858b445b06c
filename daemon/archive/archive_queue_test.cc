#include "daemon/archive/archive_queue.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "daemon/archive/archive_test_support.h"
#include "daemon/metrics/self_metrics.h"
#include "driver/rooted_fs.h"

namespace profd {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Pair;

TEST_F(ArchiveQueueTest, TheOldestFirstAndEachOnce) {
  Finish(1);
  Finish(2);
  EXPECT_TRUE(IsProtected(1));
  EXPECT_EQ(queue_->waiting().dumps, 2U);
  EXPECT_EQ(queue_->waiting().bytes, 2 * kMiB);
  EXPECT_EQ(Take(), Name(1));
  EXPECT_EQ(upload_.to(), "clickhouse://db/profiles");
  EXPECT_EQ(upload_.run(), "1000-train-s1");
  EXPECT_EQ(upload_.attempt(), 1U);
  EXPECT_TRUE(Loaded(1).ok());
  EXPECT_FALSE(IsProtected(1)) << "confirmed: ordinary retention";
  EXPECT_EQ(StateOf(1).state(), v1::ArchiveState::STATE_LOADED);
  EXPECT_EQ(StateOf(1).rows(), 7U);
  EXPECT_EQ(Loaded(1).code(), StatusCode::kNotFound) << "once";
  EXPECT_EQ(Take(), Name(2));
  EXPECT_TRUE(Loaded(2).ok());
  EXPECT_EQ(Take(), "");
  EXPECT_EQ(queue_->counts().loaded, 2U);
  EXPECT_THAT(Counted(queue_->counts().lost), IsEmpty());
}

// Prometheus's increase() does not see the event with which a series begins.
TEST_F(ArchiveQueueTest, EveryReasonIsCountedFromZero) {
  const RootedFs proc = RootedFs::OpenRoot("/proc").value();
  const Host host{clock_, proc, proc, nullptr, {}, 0};
  SelfMetrics self(host);
  queue_->UpdateMetrics(&self);
  std::map<std::string, size_t> series;
  for (const prometheus::MetricFamily& family : self.Collect()) series[family.name] = family.metric.size();
  EXPECT_EQ(series["profd_archive_failures_total"], 5U);
  EXPECT_EQ(series["profd_archive_lost_total"], 6U);
}

// What is confirmed says where it went, and what of it was damaged, also to the next daemon.
TEST_F(ArchiveQueueTest, WhereEachWasLoaded) {
  Finish(1);
  Finish(2);
  EXPECT_EQ(Take(), Name(1));
  // The address changes while it is loaded.
  config_.archive_to = "clickhouse://loader@other:9000/profiles";
  Configure();
  v1::ReportArchiveRequest report;
  report.set_dump(Name(1));
  report.mutable_loaded()->set_rows(7);
  report.mutable_loaded()->set_damage("1 part of it could not be read: hbm.data: it is shorter");
  EXPECT_TRUE(queue_->Report(report).ok());
  EXPECT_EQ(StateOf(2).to(), "");
  EXPECT_EQ(Take(), Name(2));
  EXPECT_TRUE(Loaded(2).ok());
  v1::ArchiveStatus status;
  queue_->Describe(&status);
  EXPECT_EQ(status.loaded(), 2U);
  EXPECT_EQ(status.loaded_elsewhere().size(), 1U);
  EXPECT_EQ(status.loaded_elsewhere().at("clickhouse://db:8123/profiles"), 1U);
  Start();
  EXPECT_EQ(StateOf(1).to(), "clickhouse://db:8123/profiles");
  EXPECT_EQ(StateOf(2).to(), "clickhouse://other:9000/profiles");
  EXPECT_THAT(StateOf(1).problem(), HasSubstr("hbm.data"));
  EXPECT_EQ(StateOf(2).problem(), "");
}

TEST_F(ArchiveQueueTest, OnlyWhatIsMeant) {
  config_.archive_which = {"recorder", "label=keep"};
  Configure();
  Finish(1);
  KeptDump labelled = Make(2);
  labelled.label = "keep";
  Finish(labelled);
  KeptDump recorded = Make(3);
  recorded.recorder = true;
  Finish(recorded);
  EXPECT_EQ(queue_->waiting().dumps, 2U);
  EXPECT_FALSE(IsProtected(1));
  EXPECT_EQ(StateOf(1).state(), v1::ArchiveState::STATE_UNSPECIFIED);
}

TEST_F(ArchiveQueueTest, WhereTheDatabaseFailsAllWaitLongerAndLonger) {
  Finish(1);
  Finish(2);
  for (int64_t pause : {10, 20, 40, 60, 60}) {
    EXPECT_EQ(Take(), Name(1));
    EXPECT_TRUE(Failed(1, v1::ArchiveFailed::REASON_UNREACHABLE, "connection refused").ok());
    EXPECT_EQ(Take(), "");
    time_.Advance(pause * kNsPerSecond - 1);
    EXPECT_EQ(Take(), "") << pause;
    time_.Advance(1);
  }
  v1::ArchiveStatus status;
  queue_->Describe(&status);
  EXPECT_EQ(status.waiting(), 2U);
  EXPECT_TRUE(status.has_failing_since_ns());
  EXPECT_EQ(status.problem(), "unreachable: connection refused");
  EXPECT_THAT(Counted(queue_->counts().failures), ElementsAre(Pair("unreachable", 5U)));
  EXPECT_EQ(Take(), Name(1));
  EXPECT_EQ(upload_.attempt(), 6U);
  EXPECT_TRUE(Loaded(1).ok());
  EXPECT_EQ(Take(), Name(2)) << "at once: the database is there again";
  status.Clear();
  queue_->Describe(&status);
  EXPECT_FALSE(status.has_failing_since_ns());
}

TEST_F(ArchiveQueueTest, ADumpThatCannotBeFetchedHoldsUpNoOther) {
  Finish(1);
  Finish(2);
  EXPECT_EQ(Take(), Name(1));
  EXPECT_TRUE(Failed(1, v1::ArchiveFailed::REASON_FETCH).ok());
  EXPECT_EQ(Take(), Name(2));
  EXPECT_TRUE(Loaded(2).ok());
  EXPECT_EQ(Take(), "");
  time_.Advance(10 * kNsPerSecond);
  EXPECT_EQ(Take(), Name(1));
}

// It may be that all are refused: the next one is tried after the shortest pause, and loaded if it was only this one.
TEST_F(ArchiveQueueTest, ADumpThatIsRefusedIsPutAside) {
  for (int number : {1, 2, 3}) Finish(number);
  EXPECT_EQ(Take(), Name(1));
  EXPECT_TRUE(Failed(1, v1::ArchiveFailed::REASON_REFUSED, "Cannot parse input").ok());
  EXPECT_EQ(Take(), "");
  time_.Advance(10 * kNsPerSecond);
  for (int next : {2, 3}) {
    EXPECT_EQ(Take(), Name(next));
    EXPECT_TRUE(Loaded(next).ok());
  }
  EXPECT_EQ(Take(), Name(1));
  EXPECT_TRUE(Failed(1, v1::ArchiveFailed::REASON_REFUSED, "Cannot parse input").ok());
  EXPECT_EQ(StateOf(1).state(), v1::ArchiveState::STATE_WAITING);
  EXPECT_EQ(StateOf(1).problem(), "refused: Cannot parse input");
  EXPECT_TRUE(IsProtected(1));
  EXPECT_THAT(Counted(queue_->counts().failures), ElementsAre(Pair("refused", 2U)));
}

TEST_F(ArchiveQueueTest, WhereAllAreRefusedEachWaitsLongerAndLonger) {
  for (int number : {1, 2}) Finish(number);
  const auto refuse = [this](int number) {
    EXPECT_EQ(Take(), Name(number));
    EXPECT_TRUE(Failed(number, v1::ArchiveFailed::REASON_REFUSED, "no such cluster").ok());
    EXPECT_EQ(Take(), "");
  };
  // Each dump pauses for 10, 20 and 40 s, and 10 s lie between two of them.
  for (int number : {1, 2, 1, 2, 1, 2}) {
    refuse(number);
    time_.Advance(10 * kNsPerSecond);
  }
  EXPECT_EQ(Take(), "");
  time_.Advance(20 * kNsPerSecond);
  refuse(1);
  v1::ArchiveStatus status;
  queue_->Describe(&status);
  EXPECT_TRUE(status.has_failing_since_ns());
  EXPECT_EQ(status.problem(), "refused: no such cluster");
}

TEST_F(ArchiveQueueTest, DumpsWithNothingToLoadAreGivenUp) {
  Finish(1);
  Take();
  EXPECT_TRUE(Failed(1, v1::ArchiveFailed::REASON_UNREADABLE, "bad\x1b[2J\xff").ok());
  EXPECT_EQ(StateOf(1).state(), v1::ArchiveState::STATE_LOST);
  EXPECT_EQ(StateOf(1).problem(), "unreadable: bad?[2J?");
  EXPECT_FALSE(IsProtected(1));
  EXPECT_THAT(Counted(queue_->counts().lost), ElementsAre(Pair("unreadable", 1U)));
}

TEST_F(ArchiveQueueTest, GivenUpAfterHours) {
  config_.archive_give_up_after_h = 2;
  Configure();
  Finish(1);
  Take();
  EXPECT_TRUE(Failed(1, v1::ArchiveFailed::REASON_DENIED, "wrong password").ok());
  time_.Advance(2 * 3600 * kNsPerSecond);
  queue_->Tick();
  EXPECT_TRUE(IsProtected(1)) << "to the hour";
  time_.Advance(kNsPerSecond);
  queue_->Tick();
  EXPECT_FALSE(IsProtected(1));
  EXPECT_THAT(StateOf(1).problem(), HasSubstr("given up after 2 h: denied: wrong password"));
  EXPECT_THAT(Counted(queue_->counts().lost), ElementsAre(Pair("gave_up", 1U)));
}

TEST_F(ArchiveQueueTest, BeyondItsBoundsTheOldestLoseTheirProtection) {
  config_.archive_max_waiting = 2;
  Configure();
  for (int number : {1, 2, 3}) Finish(number);
  EXPECT_FALSE(IsProtected(1));
  EXPECT_TRUE(IsProtected(2));
  EXPECT_EQ(StateOf(1).state(), v1::ArchiveState::STATE_LOST);
  EXPECT_THAT(StateOf(1).problem(), HasSubstr("archive.max_waiting"));
  config_.archive_max_waiting_mb = 3;
  Configure();
  Finish(4, 2 * kMiB);
  EXPECT_FALSE(IsProtected(2)) << "by number";
  EXPECT_TRUE(IsProtected(3));
  Finish(5, 2 * kMiB);
  EXPECT_FALSE(IsProtected(4)) << "by bytes";
  EXPECT_TRUE(IsProtected(5));
  EXPECT_EQ(queue_->waiting().bytes, 2 * kMiB);
  EXPECT_THAT(Counted(queue_->counts().lost), ElementsAre(Pair("max_waiting", 4U)));
  // One that was taken before is loaded all the same.
  EXPECT_TRUE(Loaded(4).ok());
  EXPECT_EQ(StateOf(4).state(), v1::ArchiveState::STATE_LOADED);
}

TEST_F(ArchiveQueueTest, QuotasTakeWhatWaitsLast) {
  Finish(1);  // waits
  config_.archive_which = {"recorder"};
  Configure();
  Finish(2);  // is younger, and does not
  retention_->SetLimits({.total = kMiB + kMiB / 2});
  retention_->Enforce();
  EXPECT_EQ(retention_->Find(Name(2)), nullptr);
  EXPECT_TRUE(IsProtected(1));
  EXPECT_THAT(Counted(queue_->counts().lost), IsEmpty());
  // Recording continues where nothing else is left, and it is counted.
  retention_->SetLimits({.total = kMiB / 2});
  EXPECT_FALSE(retention_->Enforce().over_total);
  EXPECT_EQ(retention_->Find(Name(1)), nullptr);
  EXPECT_THAT(Counted(queue_->counts().lost), ElementsAre(Pair("max_total", 1U)));
  EXPECT_EQ(queue_->waiting().dumps, 0U);
}

TEST_F(ArchiveQueueTest, RemovalByTheOwnerIsCounted) {
  Finish(1);
  retention_->Remove(Name(1), "request", nullptr);
  EXPECT_THAT(Counted(queue_->counts().lost), ElementsAre(Pair("request", 1U)));
  EXPECT_EQ(Take(), "");
  EXPECT_EQ(Failed(1, v1::ArchiveFailed::REASON_FETCH).code(), StatusCode::kNotFound);
}

TEST_F(ArchiveQueueTest, OneProcessAtATime) {
  Finish(1);
  Finish(2);
  EXPECT_EQ(Take(), Name(1));
  EXPECT_EQ(Take(), Name(1)) << "its report was lost";
  peer_.pid = 5000;
  processes_.alive[5000] = {0, 1};
  EXPECT_EQ(Take(), Name(2)) << "the other one works on the first";
  peer_.pid = 6000;
  EXPECT_EQ(Take(), "");
  processes_.alive.erase(kCompanion);
  EXPECT_EQ(Take(), Name(1)) << "it was killed";
  peer_.pid = 7000;
  processes_.alive[6000] = {0, 2};
  processes_.alive[5000] = {0, 3};
  EXPECT_EQ(Take(), Name(1)) << "this process was not there when it was taken";
}

TEST_F(ArchiveQueueTest, SurvivesTheDaemon) {
  for (int number : {1, 2, 3}) Finish(number);
  Take();
  EXPECT_TRUE(Loaded(1).ok());
  Take();
  EXPECT_TRUE(Failed(2, v1::ArchiveFailed::REASON_FETCH, "no space").ok());
  Start();
  // As the dumps are found again, newest first; the fourth was complete, but not noted.
  for (int number : {4, 3, 2, 1}) {
    KeptDump dump = Make(number);
    dump.ended_wall_ns = clock_.WallNs();
    retention_->Opened(dump);
    retention_->Closed(dump.name, DumpState::kDone, 0);
    queue_->OnFound({*retention_->Find(dump.name), {}, {}});
  }
  queue_->OnComplete();
  EXPECT_EQ(StateOf(1).state(), v1::ArchiveState::STATE_LOADED) << "not loaded again";
  EXPECT_FALSE(IsProtected(1));
  EXPECT_TRUE(IsProtected(2));
  EXPECT_EQ(StateOf(2).problem(), "fetch: no space");
  EXPECT_EQ(StateOf(2).attempts(), 1U);
  EXPECT_TRUE(IsProtected(3));
  EXPECT_TRUE(IsProtected(4));
  EXPECT_EQ(Take(), Name(2));
  Start();
  retention_->Opened(Make(2));
  retention_->Closed(Name(2), DumpState::kDone, 0);
  EXPECT_TRUE(Loaded(2).ok()) << "taken from the daemon before";
  EXPECT_EQ(StateOf(2).run(), "1000-train-s2");
}

TEST_F(ArchiveQueueTest, RemovedDumpsAreForgotten) {
  Finish(1);
  Start();
  queue_->OnComplete();
  EXPECT_EQ(queue_->waiting().dumps, 0U);
  EXPECT_EQ(states_.files["archive.json"].find("PROF_"), std::string::npos);
}

TEST_F(ArchiveQueueTest, DumpsFromBeforeItWasTurnedOnStayWhereTheyAre) {
  KeptDump old = Make(1);
  old.ended_wall_ns = clock_.WallNs() - 1;
  queue_->OnFound({old, {}, {}});
  EXPECT_EQ(queue_->waiting().dumps, 0U);
  // Nor those from while it was off.
  config_.archive_to = "";
  Configure();
  Finish(2);
  v1::ClaimArchiveUploadResponse response;
  EXPECT_EQ(queue_->Take(peer_, &response).code(), StatusCode::kFailedPrecondition);
  time_.Advance(kNsPerSecond);
  config_.archive_to = "clickhouse://other/profiles";
  Configure();
  Start();
  KeptDump between = Make(2);
  between.ended_wall_ns = clock_.WallNs() - 1;
  queue_->OnFound({between, {}, {}});
  EXPECT_EQ(queue_->waiting().dumps, 0U);
}

TEST_F(ArchiveQueueTest, TurnedOffNothingIsProtected) {
  Finish(1);
  config_.archive_to = "";
  Configure();
  EXPECT_FALSE(IsProtected(1));
  EXPECT_FALSE(queue_->IsWaiting(Name(1)));
  config_.archive_to = "clickhouse://db/profiles";
  Configure();
  EXPECT_TRUE(IsProtected(1)) << "it waits again";
  EXPECT_EQ(Take(), Name(1));
}

TEST_F(ArchiveQueueTest, AFileThatMakesNoSenseIsAnEmptyQueue) {
  for (const char* text : {"{", "[]", R"({"dumps": 3})", R"({"since_ns": "x", "dumps": {"../x": {"state": "STATE_WAITING"}}})",
                           R"({"dumps": {"PROF_000001_20261121102319555_FFLQEJLNBPGEGPGC": {"state": 7}}})"}) {
    states_.files["archive.json"] = text;
    Start();
    EXPECT_EQ(queue_->waiting().dumps, 0U) << text;
  }
}

}  // namespace
}  // namespace profd
