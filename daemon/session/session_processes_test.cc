#include "daemon/session/session_processes.h"

#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/manual_executor.h"
#include "daemon/data/testing/test_dump.h"
#include "daemon/session/option_plan.h"
#include "daemon/session/testing/fake_job_directory.h"
#include "daemon/session/testing/fake_node.h"
#include "driver/rooted_fs.h"

namespace profd {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

class FakeSession : public SessionProcesses::Listener {
 public:
  v1::Session::State state() const override { return state_; }
  bool stopping() const override { return stopping_; }
  void OnStartStep() override { events_.emplace_back("start step"); }
  void OnWantsToEnd(const std::string& reason) override { events_.push_back("end: " + reason); }
  void OnProcessCame() override { events_.emplace_back("came"); }
  void OnHandingOver() override { events_.emplace_back("handing over"); }
  void OnHandedOver() override { events_.emplace_back("handed over"); }
  void Warn(std::string text) override { warnings_.push_back(std::move(text)); }

  v1::Session::State state_ = v1::Session::STATE_SCHEDULED;
  bool stopping_ = false;
  std::vector<std::string> events_;
  std::vector<std::string> warnings_;
};

// Two ranks of a job, attached as 1 and 2; rank 0 counts the steps.
class SessionProcessesTest : public ::testing::Test {
 protected:
  SessionProcessesTest()
      : proc_(RootedFs::OpenRoot("/proc").value()),
        host_{clock_, proc_, proc_, nullptr, {}, 0},
        control_(time_.executor()),
        copier_(control_, clock_),
        pool_(8 << 20),
        writer_(DumpRoot::Open(tmp_.path() + "/root").value(), clock_, pool_, {.min_free_bytes = 0}) {
    for (const int rank : {0, 1}) {
      processes_of_node_.alive[10 + rank] = {};
      TrainingProcess process{.pid = 10 + rank, .job_id = "job", .rank = rank,
                              .attach_id = static_cast<uint64_t>(rank + 1)};
      directory_.Add(process);
    }
  }

  // As admission makes a request for the job.
  void Make() {
    SessionTargets targets{.job_id = "job", .admin = true, .processes = directory_.Processes(), .bound = true};
    const SessionProcesses::Deps deps{control_, host_, processes_of_node_, &directory_, &copier_};
    processes_ = std::make_shared<SessionProcesses>(deps, SessionProcesses::Request{spec_, plan_, "s-1", Myself(), std::move(targets)});
    processes_->Watch(session_);
  }
  std::shared_ptr<WriterSession> Dump() {
    dump_ = OpenTestDump(writer_, &path_);
    return dump_;
  }
  void Begin(std::shared_ptr<WriterSession> dump = nullptr) {
    session_->state_ = v1::Session::STATE_RUNNING;
    processes_->Begin(std::move(dump), {}, clock_.MonotonicRawNs());
    time_.RunReady();
  }
  // Of the dump, which is complete then.
  Manifest Finished() {
    FinishTestDump(*dump_);
    return ParseManifest(ReadText(path_ + "/profd_manifest.json")).value();
  }
  // A second of a session with aclprof, which is busy in both ranks.
  Manifest BusyWithAclprof(const std::string& option, uint64_t bits) {
    plan_.collect[option] = {};
    plan_.aclprof = attach::AclprofRequest{bits, 0xFF, {}};
    Make();
    Begin(Dump());
    for (const uint64_t attach_id : {1, 2}) Collector(attach_id, attach::CollectState::kBusy);
    time_.Advance(kNsPerSecond);
    processes_->End();
    EXPECT_FALSE(processes_->awaits_last());
    processes_->Finish();
    return Finished();
  }
  // Both ranks collect into a dump when the session ends.
  void EndWhileBothCollect() {
    plan_.collect["task_time"] = {attach::CollectKind::kKernel};
    Make();
    Begin(Dump());
    Collector(1, attach::CollectState::kOn);
    Collector(2, attach::CollectState::kOn);
    processes_->End();
  }
  void Step(int64_t step, bool begin) {
    directory_.Step(1, step, begin);
    time_.RunReady();
  }
  // Marks of one step of a rank, in its ring, so long after now.
  void KeepStep(uint64_t attach_id, int64_t step, int64_t begin_ns, int64_t end_ns) {
    for (const bool begin : {true, false}) {
      Mark mark{.time_ns = clock_.MonotonicRawNs() + (begin ? begin_ns : end_ns), .value = step,
                .kind = begin ? attach::MarkKind::kStepBegin : attach::MarkKind::kStepEnd};
      directory_.Keep(attach_id, mark, "");
    }
  }
  void Collector(uint64_t attach_id, attach::CollectState state, attach::CollectKinds kinds = {attach::CollectKind::kKernel},
                 const std::string& detail = "") {
    attach::CollectorReport report{.session_id = "s-1", .provider = attach::CollectProvider::kMspti, .state = state,
                                   .detail = detail, .kinds = kinds};
    directory_.ReportCollector(attach_id, report);
    time_.RunReady();
  }

  TempDir tmp_;
  std::string path_;  // of the dump
  std::shared_ptr<WriterSession> dump_;
  ManualClock clock_;
  ManualExecutor time_{clock_};
  RootedFs proc_;
  Host host_;
  Strand control_;
  FileCopier copier_;
  BlockPool pool_;
  DumpWriter writer_;
  testing::FakeJobDirectory directory_;
  testing::FakeProcesses processes_of_node_;
  v1::SessionSpec spec_;
  SessionPlan plan_;
  std::shared_ptr<FakeSession> session_ = std::make_shared<FakeSession>();
  std::shared_ptr<SessionProcesses> processes_;
};

TEST_F(SessionProcessesTest, NotifiesEachProcessOfTheSessionsState) {
  spec_.mutable_schedule()->set_start_step(5);
  Make();
  processes_->Arm();
  Begin();
  processes_->End();
  EXPECT_THAT(directory_.Heard(), ElementsAre("1 armed", "2 armed", "1 running", "2 running", "1 ended", "2 ended"));
  processes_->Leave();
  time_.RunReady();
  EXPECT_EQ(directory_.watchers(), 0u);
}

TEST_F(SessionProcessesTest, TheStepToStartAtIsReportedOnceAndCounts) {
  spec_.mutable_schedule()->set_start_step(5);
  spec_.mutable_schedule()->set_steps(2);
  Make();
  Step(4, true);
  Step(4, false);
  EXPECT_THAT(session_->events_, IsEmpty());
  Step(5, true);
  Step(5, true);
  EXPECT_THAT(session_->events_, ElementsAre("start step"));
  Begin();
  Step(5, false);
  EXPECT_EQ(processes_->steps_done(), 1u);
  Step(6, true);
  Step(6, false);
  EXPECT_EQ(processes_->steps_done(), 2u);
  ASSERT_EQ(session_->events_.size(), 2u);
  EXPECT_THAT(session_->events_[1], HasSubstr("2 steps"));
}

// The process was notified in step 43 and counted five from 44 on.
TEST_F(SessionProcessesTest, TheStepsThatEndASessionAreTheFirstOnesInIt) {
  spec_.mutable_schedule()->set_steps(5);
  Make();
  Begin(Dump());
  for (int64_t step = 43; step <= 48; ++step) KeepStep(1, step, 10 * step, 10 * step + 5);
  directory_.Report(1, {"s-1", 48, false});
  time_.RunReady();
  EXPECT_EQ(processes_->steps_done(), 5u);
  ASSERT_FALSE(session_->events_.empty());
  EXPECT_THAT(session_->events_, ::testing::Each("end: 5 steps (43..47)"));
}

TEST_F(SessionProcessesTest, StepsInTheRingAtTheStopCount) {
  Make();
  Begin(Dump());
  KeepStep(1, 5, 10, 20);
  KeepStep(1, 6, 30, 40);
  KeepStep(2, 7, 10, 20);  // of the other rank
  session_->stopping_ = true;
  processes_->End();
  EXPECT_EQ(processes_->steps_done(), 2u);
  Manifest manifest;
  processes_->Describe(&manifest);
  EXPECT_EQ(manifest.steps_done, 2u);
  EXPECT_THAT(session_->events_, IsEmpty());
}

TEST_F(SessionProcessesTest, DescribesWhenAProcessJoined) {
  TrainingProcess late{.pid = 12, .job_id = "job", .rank = 2, .attach_id = 3,
                       .attached_raw_ns = clock_.MonotonicRawNs() + 5};
  processes_of_node_.alive[late.pid] = {};
  directory_.Add(late);
  Make();
  Begin(Dump());
  Manifest manifest;
  processes_->Describe(&manifest);
  ASSERT_EQ(manifest.processes.size(), 3u);
  EXPECT_EQ(manifest.processes[1].joined_raw_ns, 0);
  EXPECT_EQ(manifest.processes[2].joined_raw_ns, late.attached_raw_ns);
}

// They go into the dump, too.
TEST_F(SessionProcessesTest, StepsBetweenTheStartAndTheDumpCount) {
  Make();
  session_->state_ = v1::Session::STATE_STARTING;
  KeepStep(1, 4, -20, 5);  // began before the session
  KeepStep(1, 5, 10, 20);
  KeepStep(1, 6, 30, 40);
  Begin(Dump());
  EXPECT_EQ(processes_->steps_done(), 2u);
}

TEST_F(SessionProcessesTest, StepsWhileASessionStartsAtAStepCount) {
  spec_.mutable_schedule()->set_start_step(5);
  Make();
  KeepStep(1, 4, -40, -30);
  KeepStep(1, 5, -20, -10);
  KeepStep(1, 6, -5, 10);
  Step(5, true);
  session_->state_ = v1::Session::STATE_STARTING;
  Begin(Dump());
  Step(7, false);
  EXPECT_EQ(processes_->steps_done(), 3u);
}

TEST_F(SessionProcessesTest, EndsWhereNoProcessIsLeftThatCounts) {
  spec_.mutable_schedule()->set_start_step(5);
  Make();
  directory_.Detach(1);
  time_.RunReady();
  EXPECT_THAT(session_->events_, IsEmpty());  // rank 1 counts now
  directory_.Detach(2);
  time_.RunReady();
  EXPECT_THAT(session_->events_, ElementsAre("end: no attached process is left to begin step 5"));
}

// A program that the process executes attaches anew, as a library does that has lost its connection.
TEST_F(SessionProcessesTest, WaitsForAProcessThatMayAttachAgain) {
  spec_.mutable_schedule()->set_start_step(5);
  Make();
  directory_.Detach(2);
  TrainingProcess counting = directory_.Processes().front();
  directory_.Detach(1, /*in_good_order=*/false);
  processes_->Tick();
  time_.RunReady();
  EXPECT_THAT(session_->events_, IsEmpty());
  counting.attach_id = 3;
  directory_.Attach(counting);
  directory_.Detach(3, /*in_good_order=*/false);
  processes_of_node_.alive.erase(10);
  processes_->Tick();
  time_.RunReady();
  EXPECT_THAT(session_->events_, ElementsAre("came", "end: no attached process is left to begin step 5"));
}

TEST_F(SessionProcessesTest, WaitsForTheLastRecordsOfEachProcess) {
  EndWhileBothCollect();
  EXPECT_TRUE(processes_->awaits_last());
  Collector(1, attach::CollectState::kOff);
  EXPECT_TRUE(processes_->awaits_last());
  Collector(2, attach::CollectState::kOff);
  EXPECT_FALSE(processes_->awaits_last());
  EXPECT_EQ(session_->events_.back(), "handed over");
  EXPECT_THAT(session_->warnings_, IsEmpty());
}

TEST_F(SessionProcessesTest, NamesProcessesThatDoNotFinishInTime) {
  EndWhileBothCollect();
  Collector(1, attach::CollectState::kOff);
  time_.Advance(10 * kNsPerSecond);
  EXPECT_FALSE(processes_->awaits_last());
  EXPECT_EQ(session_->events_.back(), "handed over");
  EXPECT_THAT(session_->warnings_, ElementsAre("process 11 did not hand over the last records in time"));
  const Manifest manifest = Finished();
  ASSERT_EQ(manifest.channels.size(), 1u);
  ASSERT_EQ(manifest.channels[0].gaps.size(), 1u);
  EXPECT_EQ(manifest.channels[0].gaps[0].reason, LossReason::kNotFetched);
}

// Also when the session is over: the note that they need a process is theirs while none has come.
TEST_F(SessionProcessesTest, KnowsTheOptionsThatProcessesServed) {
  plan_.collect["task_time"] = {attach::CollectKind::kKernel};
  plan_.takes_marks = true;
  Make();
  Begin(Dump());
  EXPECT_THAT(processes_->Served(), IsEmpty());
  KeepStep(1, 5, 10, 20);
  Collector(1, attach::CollectState::kOn);
  processes_->End();
  processes_->Finish();
  Finished();
  EXPECT_THAT(processes_->Served(), ElementsAre("msproftx", "task_time"));
  v1::SessionStatus status;
  v1::EffectiveOption& option = *status.add_effective_options();
  option.set_key("task_time");
  option.set_note(std::string(kNeedsProcess));
  session_->state_ = v1::Session::STATE_DONE;
  processes_->FillOptions(&status);
  EXPECT_EQ(status.effective_options(0).note(), "");
}

// The buffers of a flush that takes long are lost after the stop, and reported with the last records.
TEST_F(SessionProcessesTest, CountsWhatProcessesReportLostUntilTheyHaveHandedOver) {
  EndWhileBothCollect();
  processes_->SetEnd(clock_.MonotonicRawNs());
  time_.Advance(3 * kNsPerSecond);
  attach::LossRecord loss{};
  loss.reason = static_cast<uint16_t>(attach::LossReason::kNoBuffer);
  loss.count = 4096;
  loss.from_ns = loss.to_ns = clock_.MonotonicRawNs();
  const ActivityFrame frame{attach::ActivityType::kLoss, 1, 0, std::as_bytes(std::span(&loss, 1))};
  ActivityBatch batch{1, 10, {}, {&frame, 1}};
  batch.names_refused = 5;
  directory_.Hand(batch);
  Collector(1, attach::CollectState::kOff);
  batch.names_refused = 0;
  directory_.Hand(batch);  // of another session
  batch.attach_id = 2;
  batch.pid = 11;
  loss.count = 100;
  directory_.Hand(batch);
  Collector(2, attach::CollectState::kOff);
  EXPECT_EQ(session_->events_.back(), "handed over");
  EXPECT_THAT(session_->warnings_, ElementsAre(HasSubstr("5 of process 10 (which can have 65534 different ones, 8 MiB)")));
  const Manifest manifest = Finished();
  ASSERT_EQ(manifest.channels.size(), 1u);
  ASSERT_EQ(manifest.channels[0].dropped.size(), 1u);
  EXPECT_EQ(manifest.channels[0].dropped[0].reason, LossReason::kVendorBuffer);
  EXPECT_EQ(manifest.channels[0].dropped[0].bytes, 4196u);
}

// A job that marks with mstx only has no marks of libprofd.
TEST_F(SessionProcessesTest, MarksOfMsptiServeTheOptionToo) {
  plan_.takes_marks = true;
  plan_.awaited_options = {"msproftx"};
  plan_.collect["msproftx"] = {attach::CollectKind::kMarker};
  Make();
  Begin(Dump());
  for (const uint64_t attach_id : {1, 2}) Collector(attach_id, attach::CollectState::kOn, {attach::CollectKind::kMarker});
  attach::MarkerRecord marker{};
  marker.flag = 1;
  const ActivityFrame frame{attach::ActivityType::kMarker, 1, clock_.MonotonicRawNs(), std::as_bytes(std::span(&marker, 1))};
  directory_.Hand({1, 10, {}, {&frame, 1}, std::make_shared<ActivityNameTable>()});
  processes_->End();
  for (const uint64_t attach_id : {1, 2}) Collector(attach_id, attach::CollectState::kOff, {});
  processes_->Finish();
  (void)Finished();  // the writer has counted
  session_->state_ = v1::Session::STATE_DONE;
  v1::SessionStatus status;
  processes_->FillOptions(&status);
  ASSERT_EQ(status.outcomes_size(), 1);
  EXPECT_EQ(status.outcomes(0).result(), v1::Outcome::RESULT_FINISHED);
  EXPECT_EQ(status.outcomes(0).detail(), "served by 2 of 2 processes");
  EXPECT_EQ(status.outcomes(0).records(), 1u);
}

TEST_F(SessionProcessesTest, WarnsOfARingThatIsGivenUp) {
  EndWhileBothCollect();
  directory_.GiveUp(1, ResourceExhausted("too much memory"));
  directory_.GiveUp(9, ResourceExhausted("of no process of the session"));
  EXPECT_THAT(session_->warnings_, ElementsAre("process 10 (rank 0): its records are not read any more: too much memory"));
}

// As with MSPTI: docs/dumps.md, profiler_busy.
TEST_F(SessionProcessesTest, WhereAclprofIsBusyTheKernelsAreMissing) {
  const int64_t begin_ns = clock_.MonotonicRawNs();
  const Manifest manifest = BusyWithAclprof("aic_metrics", 0x826);
  ASSERT_EQ(manifest.channels.size(), 1u);
  EXPECT_EQ(manifest.channels[0].collector, "activity_kernel");
  ASSERT_EQ(manifest.channels[0].gaps.size(), 2u) << "of each rank";
  for (const ManifestGap& gap : manifest.channels[0].gaps) {
    EXPECT_EQ(gap.reason, LossReason::kProfilerBusy);
    EXPECT_EQ(gap.from_ns, begin_ns);
    EXPECT_EQ(gap.host_ns, begin_ns + kNsPerSecond);
  }
  v1::SessionStatus status;
  processes_->FillOptions(&status);
  ASSERT_EQ(status.outcomes_size(), 1);
  EXPECT_EQ(status.outcomes(0).result(), v1::Outcome::RESULT_BUSY);
  EXPECT_THAT(status.outcomes(0).detail(), HasSubstr("no records for 1.000 s: another profiler ran in the process"));
}

// docs/api.md: profd_collect_allow may be called at any time, and what it forbids the session reports.
TEST_F(SessionProcessesTest, WhatTheApplicationForbidsForAWhileIsAGap) {
  const auto forbids = [this](uint64_t attach_id) { Collector(attach_id, attach::CollectState::kOff, {}, "the application does not allow it"); };
  plan_.collect["task_time"] = {attach::CollectKind::kKernel};
  Make();
  Begin(Dump());
  const int64_t begin_ns = clock_.MonotonicRawNs();
  Collector(1, attach::CollectState::kOn);
  forbids(2);  // from the start: it serves nothing, and its outcome has the reason
  time_.Advance(kNsPerSecond);
  forbids(1);
  time_.Advance(kNsPerSecond);
  forbids(1);
  time_.Advance(kNsPerSecond);
  Collector(1, attach::CollectState::kOn);
  time_.Advance(kNsPerSecond);
  processes_->End();
  Collector(1, attach::CollectState::kOff, {});
  processes_->Finish();
  const Manifest manifest = Finished();
  ASSERT_EQ(manifest.channels.size(), 1u);
  ASSERT_EQ(manifest.channels[0].gaps.size(), 1u);
  EXPECT_EQ(manifest.channels[0].gaps[0].reason, LossReason::kProfilerBusy);
  EXPECT_EQ(manifest.channels[0].gaps[0].from_ns, begin_ns + kNsPerSecond);
  EXPECT_EQ(manifest.channels[0].gaps[0].host_ns, begin_ns + 3 * kNsPerSecond);
  v1::SessionStatus status;
  processes_->FillOptions(&status);
  ASSERT_EQ(status.outcomes_size(), 1);
  EXPECT_THAT(status.outcomes(0).detail(), HasSubstr("no records for 2.000 s: "));
}

TEST_F(SessionProcessesTest, WithoutTasksAclprofHasNoKernelsToMiss) {
  EXPECT_THAT(BusyWithAclprof("l2", 0x10).channels, IsEmpty());
}

TEST_F(SessionProcessesTest, WarnsOfFilesThatAreNotComplete) {
  plan_.collect["aic_metrics"] = {};
  plan_.aclprof = attach::AclprofRequest{0x826, 2, {}};
  Make();
  Begin(Dump());
  attach::CollectorReport report{.session_id = "s-1", .provider = attach::CollectProvider::kAclprof,
                                 .state = attach::CollectState::kFiles};
  const TempDir written;
  for (const uint64_t attach_id : {1, 2}) {
    report.code = attach_id == 1 ? 500005 : 0;
    report.detail = attach_id == 1 ? "aclprofStop: 500005: some files may be missing" : "";
    const auto directory = std::make_shared<UniqueFd>(::open(written.path().c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
    EXPECT_TRUE(directory_.HandFiles(attach_id, report, directory));
  }
  EXPECT_TRUE(time_.RunUntil([this] { return directory_.taken().size() == 2; }));
  EXPECT_THAT(session_->warnings_,
              ElementsAre("process 10 (rank 0): its files are not complete: aclprofStop: 500005: some files may be missing"));
  v1::SessionStatus status;
  processes_->FillOptions(&status);
  ASSERT_EQ(status.outcomes_size(), 1);
  EXPECT_EQ(status.outcomes(0).result(), v1::Outcome::RESULT_PARTIAL);
  EXPECT_THAT(status.outcomes(0).detail(), HasSubstr("aclprofStop: 500005"));
}

TEST_F(SessionProcessesTest, OutlivesItsSession) {
  spec_.mutable_schedule()->set_steps(1);
  Make();
  Begin();
  session_.reset();
  Step(1, true);
  Step(1, false);
  directory_.Detach(1);
  directory_.Detach(2);
  time_.RunReady();
  EXPECT_EQ(processes_->steps_done(), 0u);
}

TEST_F(SessionProcessesTest, ARequestWithoutProcessesHasNothingToDo) {
  const SessionProcesses::Deps deps{control_, host_, processes_of_node_, &directory_};
  processes_ = std::make_shared<SessionProcesses>(deps, SessionProcesses::Request{spec_, plan_, "s-1", Myself(), {}});
  processes_->Watch(session_);
  Begin();
  processes_->End();
  processes_->Finish();
  processes_->Leave();
  time_.RunReady();
  EXPECT_EQ(processes_->job(), nullptr);
  EXPECT_THAT(directory_.Heard(), IsEmpty());
  EXPECT_THAT(session_->events_, IsEmpty());
}

}  // namespace
}  // namespace profd
