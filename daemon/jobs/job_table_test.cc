#include "daemon/jobs/job_table.h"

#include <gtest/gtest.h>

#include "base/manual_executor.h"
#include "daemon/jobs/test_support.h"
#include "daemon/session/testing/fake_node.h"

namespace profd {
namespace {

using attach::CollectState;
using attach::MarkKind;

TrainingProcess MakeProcess(uint64_t attach_id, pid_t pid, const std::string& job = "j",
                            uint32_t uid = 1000) {
  TrainingProcess process{.pid = pid, .start_ticks = static_cast<uint64_t>(pid) * 10, .uid = uid, .job_id = job,
                          .attach_id = attach_id};
  process.found_by = attach_id != 0 ? "attached" : "device process list";
  return process;
}

// Passes on what a test is interested in.
struct TestWatcher final : JobWatcher {
  void OnStep(uint64_t id, const attach::StepReport& report) override { if (on_step) on_step(id, report); }
  void OnAttached(const TrainingProcess& process) override { if (on_attached) on_attached(process); }
  void OnDetached(const TrainingProcess& process, bool good) override { if (on_detached) on_detached(process, good); }
  void OnCrashed(const TrainingProcess& process) override { if (on_crashed) on_crashed(process); }
  bool Wants(uint64_t id) const override { return wants && wants(id); }
  void OnMarks(const MarkBatch& batch) override { if (on_marks) on_marks(batch); }
  void OnCollector(uint64_t, const attach::CollectorReport& report) override { if (on_collector) on_collector(report); }
  bool OnFiles(uint64_t, const attach::CollectorReport& report, std::shared_ptr<UniqueFd> d) override { return on_files && on_files(report, std::move(d)); }
  std::function<void(uint64_t, const attach::StepReport&)> on_step;
  std::function<void(const TrainingProcess&)> on_attached, on_crashed;
  std::function<void(const TrainingProcess&, bool)> on_detached;
  std::function<bool(uint64_t)> wants;
  std::function<void(const MarkBatch&)> on_marks;
  std::function<void(const attach::CollectorReport&)> on_collector;
  std::function<bool(const attach::CollectorReport&, std::shared_ptr<UniqueFd>)> on_files;
};

class JobTableTest : public ::testing::Test, protected JobTable::Handler {
 protected:
  JobTableTest() : control_(time_.executor()), table_({control_, clock_, processes_, gate_, *this, 50}) {
    clock_.raw_ns = 1000 * kNsPerSecond;
  }

  // JobTable::Handler:
  void Send(uint64_t id, const attach::ToProcess& message) override {
    sent_.push_back(id);
    if (const auto* notice = std::get_if<attach::SessionNotice>(&message)) limits_.push_back(notice->collect ? std::optional(notice->collect->max_permille) : std::nullopt);
    if (const auto* taken = std::get_if<attach::FilesTaken>(&message)) taken_.push_back(*taken);
  }
  void OnRingBroken(const TrainingProcess& process, const Status&) override { broken_.push_back(process.pid); }
  // Rounds must not run beside the test: the ring is drained by hand, before the first one.
  void Enter(uint64_t id, pid_t pid, TestRing* ring = nullptr) {
    std::unique_ptr<RingReader> reader;
    if (ring != nullptr) reader = RingReader::Map(ring->fd()).value();
    processes_.alive[pid] = {1000, static_cast<uint64_t>(pid) * 10};
    table_.Enter(MakeProcess(id, pid), false, std::move(reader));
  }

  ManualClock clock_;
  ManualExecutor time_{clock_};
  Strand control_;
  testing::FakeProcesses processes_;
  testing::FakeGate gate_;
  std::vector<uint64_t> sent_;
  std::vector<attach::FilesTaken> taken_;
  std::vector<std::optional<uint32_t>> limits_;  // of each notice: what the collection may cost
  std::vector<pid_t> broken_;
  JobTable table_;
};

TEST_F(JobTableTest, WatchersAreNotifiedOfAttachAndEnd) {
  std::vector<std::string> seen;
  TestWatcher watcher;
  watcher.on_attached = [&](const TrainingProcess& p) { seen.push_back("+" + std::to_string(p.pid)); };
  watcher.on_detached = [&](const TrainingProcess& p, bool good) {
    seen.push_back((good ? "-" : "x") + std::to_string(p.pid));
  };
  watcher.on_step = [&](uint64_t id, const attach::StepReport& step) {
    seen.push_back("s" + std::to_string(id) + ":" + std::to_string(step.step));
  };
  auto handle = table_.Watch(&watcher);
  Enter(1, 11);
  table_.Announce(1);
  Enter(2, 12);
  table_.Announce(2);
  table_.OnStep(2, {"s", 5, true});
  table_.OnStep(9, {"s", 6, true});
  table_.Detach(1, true);
  table_.Detach(1, true);
  table_.Detach(2, false);
  EXPECT_EQ(seen, (std::vector<std::string>{"+11", "+12", "s2:5", "-11", "x12"}));
  handle.reset();
  Enter(3, 13);
  table_.Announce(3);
  EXPECT_EQ(seen.size(), 5u);
}

TEST_F(JobTableTest, AWatcherMayGoWhileItIsNotified) {
  std::shared_ptr<void> first;
  int calls = 0;
  TestWatcher goes, stays;
  goes.on_attached = [&](const TrainingProcess&) {
    ++calls;
    first.reset();
  };
  first = table_.Watch(&goes);
  stays.on_attached = [&](const TrainingProcess&) { ++calls; };
  auto second = table_.Watch(&stays);
  Enter(1, 11);
  table_.Announce(1);
  Enter(2, 12);
  table_.Announce(2);
  EXPECT_EQ(calls, 3);
}

TEST_F(JobTableTest, MarksGoToThoseThatWantThem) {
  TestRing ring;
  Enter(1, 11, &ring);
  std::vector<std::string> names;
  uint64_t dropped = 0;
  bool wanted = false;
  TestWatcher watcher;
  watcher.wants = [&](uint64_t id) { return wanted && id == 1; };
  watcher.on_marks = [&](const MarkBatch& batch) {
    EXPECT_EQ(batch.pid, 11);
    dropped += batch.dropped;
    for (const Mark& mark : batch.marks) names.emplace_back(mark.name);
    table_.Drain(1);  // nothing may come of it
  };
  auto handle = table_.Watch(&watcher);
  ring.Put(MarkKind::kMark, "unwanted");
  table_.Drain(1);
  EXPECT_TRUE(names.empty());
  wanted = true;
  ring.Put(MarkKind::kRangePush, "a");
  ring.writer().CountDropped();
  table_.Drain(1);
  table_.Drain(1);
  table_.Drain(7);
  EXPECT_EQ(names, std::vector<std::string>{"a"});
  EXPECT_EQ(dropped, 1u);
  EXPECT_EQ(table_.Find(1)->marks, 2u);
  EXPECT_EQ(table_.Find(1)->dropped_marks, 1u);
  // The last ones before the end are not forgotten.
  ring.Put(MarkKind::kMark, "last");
  table_.Detach(1, true);
  EXPECT_EQ(names.back(), "last");
  EXPECT_EQ(table_.counters().marks, 3u);
}

TEST_F(JobTableTest, StepsAreFollowedWithoutASession) {
  TestRing ring;
  Enter(1, 11, &ring);
  for (int64_t step = 0; step < 4; ++step) {
    ring.Put(MarkKind::kStepBegin, "", step, step * kNsPerSecond);
    ring.Put(MarkKind::kStepEnd, "", step, step * kNsPerSecond + 300 * kNsPerMs);
  }
  table_.Drain(1);
  EXPECT_EQ(table_.Find(1)->step, 3);
  EXPECT_DOUBLE_EQ(table_.Find(1)->step_s, 0.3);
}

TEST_F(JobTableTest, CountsRecordsOfADeadThreadAsLost) {
  TestRing ring;
  Enter(1, 11, &ring);
  // Claimed and never published.
  ring.header().tail = 1;
  ring.Put(MarkKind::kMark, "behind it");
  table_.Detach(1, false);
  EXPECT_EQ(table_.counters().marks, 0u);
  EXPECT_EQ(table_.counters().dropped_marks, 2u);
}

TEST_F(JobTableTest, ABrokenRingIsSaidAndLeftAlone) {
  TestRing ring;
  Enter(1, 11, &ring);
  ring.slot(0).sequence = 99;
  table_.Drain(1);
  table_.Drain(1);
  EXPECT_EQ(broken_, std::vector<pid_t>{11});
  EXPECT_EQ(table_.attached(), 1u);
}

TEST_F(JobTableTest, LostConnectionsLeaveASilentProcess) {
  std::vector<pid_t> crashed;
  TestWatcher watcher;
  watcher.on_crashed = [&](const TrainingProcess& process) { crashed.push_back(process.pid); };
  auto handle = table_.Watch(&watcher);
  for (uint64_t id : {1u, 2u, 3u}) Enter(id, static_cast<pid_t>(10 + id));
  processes_.alive.erase(12);
  for (uint64_t id : {1u, 2u}) table_.Detach(id, false);
  table_.Detach(3, true);
  std::vector<TrainingProcess> all = table_.Processes();
  ASSERT_EQ(all.size(), 1u);
  EXPECT_EQ(all[0].pid, 11);
  EXPECT_FALSE(all[0].attached());
  EXPECT_EQ(all[0].silent_since_ns, clock_.raw_ns);
  // Back again.
  Enter(4, 11);
  ASSERT_EQ(table_.Processes().size(), 1u);
  EXPECT_TRUE(table_.Processes()[0].attached());
  table_.Detach(4, false);
  table_.Tick();
  EXPECT_EQ(table_.Processes().size(), 1u);
  processes_.alive.erase(11);
  table_.Tick();
  EXPECT_TRUE(table_.Processes().empty());
  Enter(5, 15);
  Enter(6, 15);  // back before the end of its first connection was seen
  table_.Detach(5, false);
  EXPECT_EQ(table_.Processes().size(), 1u);
  table_.Detach(6, false);
  clock_.Advance(61 * kNsPerSecond);
  table_.Tick();
  EXPECT_TRUE(table_.Processes().empty());
  EXPECT_EQ(crashed, (std::vector<pid_t>{12, 11}));
}

TEST_F(JobTableTest, DeviceUsersFillGapsOnly) {
  Enter(1, 11);
  table_.Enter(MakeProcess(2, 12), true, nullptr);
  TrainingProcess same = MakeProcess(0, 11);
  same.devices = {3};
  TrainingProcess reported = MakeProcess(0, 12);
  reported.devices = {4};
  TrainingProcess stranger = MakeProcess(0, 20);
  TrainingProcess successor = MakeProcess(0, 11);
  successor.start_ticks = 7;
  table_.SetDeviceUsers({same, reported, stranger});
  std::vector<TrainingProcess> all = table_.Processes();
  ASSERT_EQ(all.size(), 3u);
  EXPECT_EQ(all[0].devices, std::vector<int>{3});
  EXPECT_TRUE(all[1].devices.empty());
  EXPECT_EQ(all[2].pid, 20);
  table_.SetDeviceUsers({successor});
  EXPECT_EQ(table_.Processes().size(), 3u);
  Enter(3, 20);
  table_.SetDeviceUsers({stranger});
  EXPECT_EQ(table_.Processes().size(), 3u);
}

TEST_F(JobTableTest, NoticesGoToAttachedOnes) {
  Enter(1, 11);
  table_.Notify(1, {});
  table_.Notify(2, {});
  EXPECT_EQ(sent_, std::vector<uint64_t>{1});
}

TEST_F(JobTableTest, RoundsEmptyTheRings) {
  TestRing ring;
  std::vector<std::string> got;
  bool wanted = false;
  TestWatcher watcher;
  watcher.wants = [&](uint64_t) { return wanted; };
  watcher.on_marks = [&](const MarkBatch& batch) { got.emplace_back(batch.marks[0].name); };
  auto handle = table_.Watch(&watcher);
  Enter(1, 11, &ring);
  table_.Announce(1);
  ring.Put(MarkKind::kMark, "first");
  time_.Advance(60 * kNsPerSecond);
  EXPECT_TRUE(got.empty()) << "not wanted";
  wanted = true;
  time_.Advance(kNsPerSecond);
  ring.Put(MarkKind::kMark, "second");
  time_.Advance(kNsPerSecond);
  EXPECT_EQ(got.back(), "second");
  // No ring, no rounds.
  table_.Detach(1, true);
  time_.Advance(kNsPerSecond);
  EXPECT_EQ(time_.timers(), 0u);
}

struct Activity final : JobWatcher {
  bool Wants(uint64_t id) const override { return wanted && id == 1; }
  void OnActivity(const ActivityBatch& batch) override {
    EXPECT_EQ(std::pair(batch.attach_id, batch.pid), std::pair(uint64_t{1}, pid_t{11}));
    dropped += batch.dropped;
    names_refused += batch.names_refused;
    for (const ActivityFrame& frame : batch.frames) {
      for (const auto& kernel : frame.As<attach::KernelRecord>()) {
        correlations.push_back(kernel.correlation);
        name = batch.names->Find(kernel.name);
      }
    }
  }
  void OnActivityGivenUp(uint64_t id, const Status&) override { given_up = id; }
  void OnCollector(uint64_t, const attach::CollectorReport& report) override { states.push_back(report.state); }
  void OnDetached(const TrainingProcess&, bool) override { at_the_end = correlations.size(); }
  std::vector<uint64_t> correlations;
  std::string name;
  uint64_t dropped = 0, names_refused = 0, given_up = 0, at_the_end = 0;
  std::vector<attach::CollectState> states;
  bool wanted = true;
};

class JobTableActivityTest : public JobTableTest {
 protected:
  void Collect() {
    auto reader = ActivityReader::Map(UniqueFd(::dup(ring_.fd().get())));
    ASSERT_TRUE(reader.ok()) << reader.status().ToString();
    table_.OnCollector(1, Report(CollectState::kOn), std::move(reader).value());
  }
  // A process that collects, and `seen_` watches.
  void Watch() {
    handle_ = table_.Watch(&seen_);
    Enter(1, 11);
    Collect();
  }
  static attach::CollectorReport Report(CollectState state) {
    return {"s", attach::CollectProvider::kMspti, state, 0, "", {attach::CollectKind::kKernel}, {}, "", false};
  }

  TestActivityRing ring_;
  Activity seen_;
  std::shared_ptr<void> handle_;
};

TEST_F(JobTableActivityTest, MarksAreSentToWatchersThatWantThem) {
  Watch();
  table_.OnCollector(1, Report(CollectState::kSilent), nullptr);
  table_.OnCollector(9, Report(CollectState::kFailed), nullptr);
  EXPECT_EQ(seen_.states, (std::vector{CollectState::kOn, CollectState::kSilent}));
  ring_.PutKernel(clock_.raw_ns, "MatMul", 7);
  ring_.writer().Flush();
  table_.Drain(1);
  EXPECT_EQ(seen_.correlations, std::vector<uint64_t>{7});
  EXPECT_EQ(seen_.name, "MatMul");
  seen_.wanted = false;
  ring_.PutKernel(clock_.raw_ns, "MatMul", 8);
  ring_.writer().Flush();
  table_.Drain(1);
  EXPECT_EQ(seen_.correlations.size(), 1u);
  EXPECT_EQ(table_.counters().activity_records, 2u) << "emptied all the same";
}

TEST_F(JobTableActivityTest, FilesGoToOneWatcherOrAreGivenBack) {
  std::vector<std::string> asked;
  std::shared_ptr<UniqueFd> got;
  const auto taker = [&](const std::string& name, bool takes) {
    TestWatcher made;
    made.on_files = [&, name, takes](const attach::CollectorReport& report, std::shared_ptr<UniqueFd> directory) {
      asked.push_back(name + " " + report.session_id);
      if (takes) got = std::move(directory);
      return takes;
    };
    return made;
  };
  TestWatcher passes = taker("first", false), takes = taker("second", true), late = taker("third", true);
  Enter(1, 11);
  const auto directory = std::make_shared<UniqueFd>();
  auto first = table_.Watch(&passes);
  table_.OnFiles(1, Report(CollectState::kFiles), directory);
  ASSERT_EQ(taken_.size(), 1u);
  EXPECT_EQ(taken_[0].session_id, "s");
  EXPECT_EQ(taken_[0].code, static_cast<int>(StatusCode::kNotFound));
  auto second = table_.Watch(&takes);
  auto third = table_.Watch(&late);
  table_.OnFiles(1, Report(CollectState::kFiles), directory);
  table_.OnFiles(9, Report(CollectState::kFiles), directory);
  EXPECT_EQ(asked, (std::vector<std::string>{"first s", "first s", "second s"}));
  EXPECT_EQ(got, directory);
  EXPECT_EQ(taken_.size(), 1u);
}

TEST_F(JobTableActivityTest, RoundsEmptyTheRing) {
  Watch();
  ring_.PutKernel(clock_.raw_ns, "MatMul", 7);
  ring_.writer().Flush();
  time_.Advance(kNsPerSecond);
  EXPECT_EQ(seen_.correlations, std::vector<uint64_t>{7});
}

TEST_F(JobTableActivityTest, TheLastRecordsComeBeforeTheEnd) {
  Watch();
  for (uint64_t i = 0; i < 20'000; ++i) ring_.PutKernel(clock_.raw_ns, "MatMul", i);
  ring_.writer().Flush();
  table_.Detach(1, false);
  EXPECT_EQ(seen_.at_the_end, 20'000u);
}

TEST_F(JobTableActivityTest, LossesAreCounted) {
  Watch();
  for (uint64_t i = 0; i < 40'000; ++i) ring_.PutKernel(clock_.raw_ns, "MatMul", i);
  ring_.writer().CountLostBytes(attach::LossReason::kNoBuffer, 56, clock_.raw_ns);
  ring_.writer().Flush();
  table_.Drain(1);
  EXPECT_GT(seen_.dropped, 0u);
  EXPECT_EQ(seen_.correlations.size() + seen_.dropped, 40'000u);
  EXPECT_EQ(table_.counters().dropped_activity, seen_.dropped);
  EXPECT_EQ(table_.counters().lost_activity_bytes, 56u);
  ring_.header().names_refused = 3;  // without records: those were in the round before
  table_.Drain(1);
  table_.Drain(1);
  EXPECT_EQ(seen_.names_refused, 3u);
}

TEST_F(JobTableActivityTest, ABrokenRingIsGivenUpAndTheProcessStays) {
  Watch();
  ring_.header().head = 12;
  table_.Drain(1);
  EXPECT_EQ(broken_, std::vector<pid_t>{11});
  EXPECT_EQ(seen_.given_up, 1u);
  EXPECT_EQ(table_.counters().broken_activity_rings, 1u);
  EXPECT_NE(table_.Find(1), nullptr);
  ring_.header().head = 0;
  ring_.PutKernel(clock_.raw_ns);
  ring_.writer().Flush();
  table_.Drain(1);
  EXPECT_TRUE(seen_.correlations.empty());
}

// An account while a session collects, and only then. 1 ms of computation a record, 300 records in 1001.
TEST_F(JobTableActivityTest, AccountsWhileASessionCollects) {
  TestRing marks;
  Enter(1, 11, &marks);
  EXPECT_FALSE(table_.Processes()[0].activity);
  Collect();
  EXPECT_NE(table_.FindActivity(1).window, nullptr);
  EXPECT_TRUE(table_.Processes()[0].activity->empty());
  clock_.raw_ns = 1002 * kNsPerSecond;
  for (int64_t i = 0; i < 300; ++i) {
    attach::KernelRecord kernel{};
    kernel.duration = 1'000'000;
    kernel.name = ring_.writer().Intern("MatMul");
    ring_.writer().AddAt(1001 * kNsPerSecond + i * 2 * kNsPerMs, kernel);
  }
  ring_.writer().Flush();
  marks.Put(MarkKind::kStepBegin, "", 1, 1001 * kNsPerSecond);
  marks.Put(MarkKind::kStepEnd, "", 1, 1001 * kNsPerSecond + kNsPerMs);
  marks.Put(MarkKind::kStepEnd, "", 9, 1001 * kNsPerSecond + kNsPerMs);  // one that did not begin
  table_.Drain(1);
  clock_.raw_ns = 1004 * kNsPerSecond;
  table_.Tick();
  const std::optional<ActivityAccount> account = table_.Processes()[0].activity;
  ASSERT_TRUE(account);
  EXPECT_EQ(account->begin_ns, 1001 * kNsPerSecond);
  EXPECT_EQ(account->end_ns, 1002 * kNsPerSecond);
  EXPECT_DOUBLE_EQ(account->computation, 0.3);
  EXPECT_EQ(account->kernels, 300u);
  EXPECT_EQ(account->steps, 1u);
  const LiveActivity live = table_.FindActivity(1);
  ASSERT_NE(live.window, nullptr);
  EXPECT_EQ(live.names->Find(live.window->HottestKernels(1).kernels.at(0).name), "MatMul");
  // Another session, too: the account lasts as long as one of them does.
  attach::CollectorReport other = Report(CollectState::kPartial);
  other.session_id = "t";
  table_.OnCollector(1, other, nullptr);
  table_.OnCollector(1, Report(CollectState::kOff), nullptr);
  EXPECT_NE(table_.FindActivity(1).window, nullptr);
  other.kinds = {attach::CollectKind::kAclApi};
  table_.OnCollector(1, other, nullptr);
  EXPECT_EQ(table_.FindActivity(1).window, nullptr) << "without kernels nothing is known of the devices";
  other.kinds = {attach::CollectKind::kAclApi, attach::CollectKind::kKernel};
  table_.OnCollector(1, other, nullptr);
  EXPECT_NE(table_.FindActivity(1).window, nullptr);
  other.state = CollectState::kSilent;
  table_.OnCollector(1, other, nullptr);
  EXPECT_EQ(table_.FindActivity(1).window, nullptr) << "nothing comes, which is not the same as free time";
}

TEST_F(JobTableActivityTest, LossesStayWithTheProcess) {
  Enter(1, 11);
  Collect();
  for (uint64_t i = 0; i < 40'000; ++i) ring_.PutKernel(clock_.raw_ns, "MatMul", i);
  ring_.writer().CountLostBytes(attach::LossReason::kNoBuffer, 56, clock_.raw_ns);
  ring_.writer().CountLostBytes(attach::LossReason::kUnknownKind, 24, clock_.raw_ns);
  for (int round = 0; round < 2; ++round, table_.Drain(1)) ring_.writer().Flush();  // the second one fits
  const TrainingProcess process = table_.Processes()[0];
  EXPECT_EQ(process.lost_activity, ring_.writer().dropped());
  EXPECT_GT(process.lost_activity, 0u);
  EXPECT_EQ(process.lost_activity_bytes, 80u);
  EXPECT_EQ(process.unreadable_activity_bytes, 24u);
}

// A device that is kept for tuning: the process hears of the session, which hears why nothing comes of it.
TEST_F(JobTableTest, NothingIsRequestedFromInsideWhereItMayNot) {
  Enter(1, 10);
  std::vector<std::string> heard;
  TestWatcher watcher;
  watcher.on_collector = [&](const auto& report) { heard.push_back(report.session_id + " " + std::string(WordOf(report.state)) + ": " + report.detail); };
  const std::shared_ptr<void> watch = table_.Watch(&watcher);
  attach::SessionNotice notice;
  notice.session_id = "s1";
  notice.collect.emplace().provider = attach::CollectProvider::kMspti;
  gate_.answer = FailedPrecondition("NPU 0 is kept for tuning");
  table_.Notify(1, notice);
  time_.RunReady();
  EXPECT_EQ(heard, std::vector<std::string>{"s1 busy: NPU 0 is kept for tuning"});
  gate_.answer = Status::Ok();
  table_.Notify(1, notice);
  EXPECT_EQ(limits_, (std::vector<std::optional<uint32_t>>{std::nullopt, 50}));
}

}  // namespace
}  // namespace profd
