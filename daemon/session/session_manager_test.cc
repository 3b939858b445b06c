// Orders from a request to a finished session, with made-up processes on a node without devices: jobs,
// starts to come, steps, leases, marks, limits.
#include "daemon/session/session_manager.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <filesystem>
#include <future>
#include <thread>

#include "daemon/session/testing/fake_job_directory.h"
#include "driver/rooted_fs.h"
#include "driver/testing/scripted_hal.h"
#include "dump/test_util.h"

namespace profd {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::StartsWith;
using profd::testing::FakeJobDirectory;
using profd::testing::ScriptedHal;

constexpr std::chrono::seconds kPatience{60};
constexpr uint32_t kAlice = 1000;
constexpr uint32_t kBob = 2000;

// The system's clock, but for a wall clock that somebody sets.
class SteppedClock final : public Clock {
 public:
  int64_t MonotonicRawNs() const override { return clock_.MonotonicRawNs(); }
  int64_t SteadyNs() const override { return clock_.SteadyNs(); }
  int64_t WallNs() const override { return clock_.WallNs() + step_ns; }
  uint64_t CpuCounter() const override { return clock_.CpuCounter(); }
  std::atomic<int64_t> step_ns{0};

 private:
  SystemClock clock_;
};

class SessionManagerTest : public ::testing::Test {
 protected:
  template <class F>
  auto OnControl(F f) {
    std::promise<decltype(f())> result;
    control_.Post([&] { result.set_value(f()); });
    return result.get_future().get();
  }
  SessionManagerTest()
      : proc_(RootedFs::OpenRoot("/proc").value()),
        host_{clock_, proc_, proc_, nullptr, {}, 0},
        control_executor_("control", 1),
        samplers_("sample", 1),
        control_(control_executor_),
        pool_(8 << 20),
        writer_(DumpRoot::Open(tmp_.path() + "/root").value(), clock_, pool_, {}),
        router_(store_, hub_, stats_, {[](uint32_t, std::string) {}, [](uint32_t) {}}),
        pump_(hal_.Library(), clock_, pool_, router_, {}),
        arbiter_({control_, host_, store_, router_, pump_}, {}),
        pollers_({host_, store_, hub_, samplers_, stats_}) {
    config_.max_session_mb = 64;
    Alive(10, kAlice);
    Alive(11, kAlice);
    Alive(20, kBob);
  }
  ~SessionManagerTest() override {
    if (manager_ == nullptr) return;
    std::promise<void> ended;
    control_.Post([&] { manager_->Shutdown("the test is over", [&] { ended.set_value(); }); });
    ended.get_future().wait();
    OnControl([&] {
      manager_.reset();
      return 0;
    });
  }

  SessionManager& manager() {
    if (manager_ == nullptr) {
      SessionDeps session{control_, host_, store_, arbiter_, pollers_, writer_, node_,
                          [](int) { return DeviceFacts(); },
                          [](int) -> DeviceControl* { return nullptr; },
                          [this](pid_t pid) { return StartTime(pid); }, Manifest()};
      session.jobs_or_null = &jobs_;
      auto remove = [this](const std::string& name, std::function<void(Result<uint64_t>)> done) {
        writer_.Post([this, name, done] {
          Status status = writer_.root().Remove(name);
          control_.Post([done, status] {
            done(status.ok() ? Result<uint64_t>(1) : Result<uint64_t>(status));
          });
        });
      };
      manager_ = std::make_unique<SessionManager>(
          SessionManager::Deps{session, [this](pid_t pid) { return Owner(pid); },
                               [](const Peer&, const DeviceInfo&) { return Status::Ok(); }, remove},
          config_);
    }
    return *manager_;
  }

  // The made-up processes: pid -> who, since when.
  void Alive(pid_t pid, uint32_t uid) {
    std::lock_guard lock(mutex_);
    alive_[pid] = uid;
  }
  void Dies(pid_t pid) {
    std::lock_guard lock(mutex_);
    alive_.erase(pid);
  }
  std::optional<uint64_t> StartTime(pid_t pid) {
    std::lock_guard lock(mutex_);
    return alive_.contains(pid) ? std::optional<uint64_t>(static_cast<uint64_t>(pid) + 100)
                                : std::nullopt;
  }
  Result<uint32_t> Owner(pid_t pid) {
    std::lock_guard lock(mutex_);
    return alive_.contains(pid) ? Result<uint32_t>(alive_[pid]) : NotFound("gone");
  }
  static TrainingProcess Process(pid_t pid, uint32_t uid, int rank, uint64_t attach_id) {
    TrainingProcess process;
    process.pid = pid;
    process.start_ticks = static_cast<uint64_t>(pid) + 100;
    process.uid = uid;
    process.job_id = "job";
    process.rank = rank;
    process.attach_id = attach_id;
    return process;
  }
  // Ranks 0 and 1 of Alice's job, attached as 1 and 2.
  void AttachTwo() {
    jobs_.Add(Process(10, kAlice, 0, 1));
    jobs_.Add(Process(11, kAlice, 1, 2));
  }

  static Peer As(uint32_t uid, bool admin = false) {
    Peer peer;
    peer.uid = uid;
    peer.gid = uid;
    peer.pid = 4242;
    peer.admin = admin;
    return peer;
  }
  // An order that collects something here: the host's memory.
  static v1::StartSessionRequest Order(std::string job = {}) {
    v1::StartSessionRequest request;
    v1::CollectorOrder& collector = *request.add_collectors();
    collector.set_name("host_mem");
    collector.set_hz(10);
    request.set_job_id(std::move(job));
    return request;
  }
  Result<v1::Session> Start(const Peer& peer, const v1::StartSessionRequest& request) {
    auto answer = std::make_shared<std::promise<Result<v1::Session>>>();
    control_.Post([this, peer, request, answer] {
      manager().Start(peer, request, [answer](const Result<v1::Session>& r) { answer->set_value(r); });
    });
    return answer->get_future().get();
  }
  std::string Started(const Peer& peer, const v1::StartSessionRequest& request) {
    Result<v1::Session> session = Start(peer, request);
    EXPECT_TRUE(session.ok()) << session.status().ToString();
    return session.ok() ? session->session_id() : "";
  }
  v1::Session Stop(const Peer& peer, const v1::StopSessionRequest& request) {
    auto answer = std::make_shared<std::promise<Result<v1::Session>>>();
    control_.Post([this, peer, request, answer] {
      manager().Stop(peer, request, [answer](const Result<v1::Session>& r) { answer->set_value(r); });
    });
    Result<v1::Session> session = answer->get_future().get();
    EXPECT_TRUE(session.ok()) << session.status().ToString();
    return session.value_or({});
  }
  v1::Session Stop(const std::string& id) {
    v1::StopSessionRequest request;
    request.set_session_id(id);
    return Stop(As(0, true), request);
  }
  v1::Session Show(const std::string& id) {
    return OnControl([&] { return manager().Get(As(0, true), id).value_or({}); });
  }
  // Ticks as the daemon does until the session is there.
  v1::Session Until(const std::string& id, v1::Session::State state) {
    auto end = std::chrono::steady_clock::now() + kPatience;
    for (;;) {
      v1::Session session = OnControl([&] {
        manager().Tick();
        return manager().Get(As(0, true), id).value_or({});
      });
      if (session.state() == state || std::chrono::steady_clock::now() > end) {
        EXPECT_EQ(v1::Session::State_Name(session.state()), v1::Session::State_Name(state))
            << session.reason();
        return session;
      }
      std::this_thread::sleep_for(std::chrono::milliseconds(5));
    }
  }
  template <class F>
  void Jobs(F f) {
    OnControl([&] {
      f(jobs_);
      return 0;
    });
  }
  Mark MarkNow(attach::MarkKind kind, int64_t value = 0) const {
    Mark mark;
    mark.time_ns = clock_.MonotonicRawNs();
    mark.kind = kind;
    mark.value = value;
    mark.thread = 77;
    return mark;
  }
  size_t Dumps() {
    std::promise<size_t> count;
    writer_.Post([&] {
      auto list = writer_.root().List();
      count.set_value(list.ok() ? list->size() : 0);
    });
    return count.get_future().get();
  }

  TempDir tmp_;
  SteppedClock clock_;
  RootedFs proc_;
  Host host_;
  Executor control_executor_;
  Executor samplers_;
  Strand control_;
  MetricStore store_;
  StreamHub hub_;
  CollectorStatsTable stats_;
  BlockPool pool_;
  NodeFacts node_;
  DumpWriter writer_;
  ChannelRouter router_;
  ScriptedHal hal_;
  ChannelPump pump_;
  ChannelArbiter arbiter_;
  PollEngine pollers_;
  FakeJobDirectory jobs_;
  DaemonConfig config_;
  std::unique_ptr<SessionManager> manager_;
  std::mutex mutex_;  // guards alive_
  std::map<pid_t, uint32_t> alive_;
};

TEST_F(SessionManagerTest, AnUnknownJobStartsNothing) {
  AttachTwo();
  Result<v1::Session> session = Start(As(kAlice), Order("other"));
  EXPECT_EQ(session.status().code(), StatusCode::kNotFound);
  EXPECT_THAT(session.status().message(), HasSubstr("job (2 processes)"));
  EXPECT_EQ(Start(As(kBob), Order("job")).status().code(), StatusCode::kNotFound);
  EXPECT_EQ(Dumps(), 0u);
}

TEST_F(SessionManagerTest, AllProblemsOfAnOrderComeTogether) {
  AttachTwo();
  v1::StartSessionRequest request = Order("job");
  request.add_ranks(9);
  request.set_priority(10);
  request.set_label(std::string(200, 'x'));
  EXPECT_THAT(Start(As(kAlice), request).status().message(),
              AllOf(HasSubstr("no rank 9"), HasSubstr("priority = 10"), HasSubstr("label")));
}

TEST_F(SessionManagerTest, ProcessesOfTheJobAreToldAndMarked) {
  AttachTwo();
  std::string id = Started(As(kAlice), Order("job"));
  Jobs([&](FakeJobDirectory& jobs) {
    jobs.Hand(1, MarkNow(attach::MarkKind::kMark), "load", 3);
    jobs.Keep(2, MarkNow(attach::MarkKind::kRangePush), "forward");
    Mark old = MarkNow(attach::MarkKind::kMark);
    old.time_ns = 1;
    jobs.Hand(1, old, "before the session", 0);
  });
  v1::Session session = Stop(id);
  EXPECT_EQ(session.state(), v1::Session::DONE);
  EXPECT_EQ(session.marks(), 2u);
  EXPECT_EQ(session.dropped_marks(), 3u);
  ASSERT_EQ(session.processes_size(), 2);
  EXPECT_EQ(session.processes(1).pid(), 11);
  EXPECT_TRUE(session.processes(1).attached());
  EXPECT_THAT(jobs_.Heard(), ElementsAre("1 running", "2 running", "1 ended", "2 ended"));
  std::string marks = ReadText(session.dump_path() + "/profd/marks.tsv");
  EXPECT_THAT(marks, StartsWith(std::string(kMarksHeading)));
  EXPECT_THAT(marks, AllOf(HasSubstr("\t10\t0\t77\tmark\tload\t0\n"),
                           HasSubstr("\t11\t1\t77\tpush\tforward\t0\n"),
                           ::testing::Not(HasSubstr("before the session"))));
  Result<Manifest> manifest =
      ParseManifest(ReadText(session.dump_path() + "/profd_manifest.json"));
  ASSERT_TRUE(manifest.ok());
  EXPECT_EQ(manifest->marks, 2u);
  EXPECT_EQ(manifest->dropped_marks, 3u);
  EXPECT_EQ(manifest->processes.size(), 2u);
  OnControl([] { return 0; });
  EXPECT_EQ(jobs_.watchers(), 0u);
}

TEST_F(SessionManagerTest, LatecomersJoin) {
  AttachTwo();
  std::string id = Started(As(kAlice), Order("job"));
  Alive(12, kAlice);
  Jobs([&](FakeJobDirectory& jobs) {
    jobs.Attach(Process(12, kAlice, 2, 3));
    jobs.Attach(Process(20, kBob, 3, 4));  // not of this job: another user's
    jobs.Hand(3, MarkNow(attach::MarkKind::kMark), "late", 0);
  });
  v1::Session session = Stop(id);
  EXPECT_EQ(session.processes_size(), 3);
  EXPECT_EQ(session.marks(), 1u);
  EXPECT_THAT(jobs_.Heard(), ElementsAre("1 running", "2 running", "3 running", "1 ended",
                                         "2 ended", "3 ended"));
}

TEST_F(SessionManagerTest, StartsAtAStepAndEndsAfterSteps) {
  AttachTwo();
  v1::StartSessionRequest request = Order("job");
  request.set_start_step(11);
  request.set_steps(2);
  Result<v1::Session> ordered = Start(As(kAlice), request);
  ASSERT_TRUE(ordered.ok()) << ordered.status().ToString();
  EXPECT_EQ(ordered->state(), v1::Session::SCHEDULED);
  EXPECT_EQ(ordered->start_step(), 11);
  EXPECT_EQ(Dumps(), 0u);
  EXPECT_THAT(jobs_.Heard(), ElementsAre("1 armed", "2 armed"));
  EXPECT_EQ(jobs_.told()[0].notice.start_step, 11);
  std::string id = ordered->session_id();
  Jobs([](FakeJobDirectory& jobs) {
    jobs.Step(1, 10, true);
    jobs.Step(2, 11, true);  // not the counting process
  });
  EXPECT_EQ(Show(id).state(), v1::Session::SCHEDULED);
  Jobs([](FakeJobDirectory& jobs) { jobs.Step(1, 11, true); });
  Until(id, v1::Session::RUNNING);
  Jobs([](FakeJobDirectory& jobs) {
    jobs.Step(1, 11, false);
    jobs.Step(1, 12, true);
  });
  EXPECT_EQ(Show(id).steps_done(), 1u);
  EXPECT_EQ(Show(id).state(), v1::Session::RUNNING);
  Jobs([](FakeJobDirectory& jobs) { jobs.Step(1, 12, false); });
  v1::Session session = Until(id, v1::Session::DONE);
  EXPECT_EQ(session.reason(), "2 steps (11..12)");
  EXPECT_EQ(session.steps_done(), 2u);
}

TEST_F(SessionManagerTest, StepsAreCountedByMarksToo) {
  AttachTwo();
  v1::StartSessionRequest request = Order("job");
  request.set_steps(1);
  std::string id = Started(As(kAlice), request);
  Jobs([&](FakeJobDirectory& jobs) {
    jobs.Hand(2, MarkNow(attach::MarkKind::kStepBegin, 1), "", 0);
    jobs.Hand(2, MarkNow(attach::MarkKind::kStepEnd, 1), "", 0);
  });
  EXPECT_EQ(Show(id).steps_done(), 0u);  // rank 0 counts
  Jobs([&](FakeJobDirectory& jobs) {
    jobs.Hand(1, MarkNow(attach::MarkKind::kStepBegin, 5), "", 0);
    jobs.Hand(1, MarkNow(attach::MarkKind::kStepEnd, 5), "", 0);
  });
  EXPECT_EQ(Until(id, v1::Session::DONE).reason(), "1 step (5..5)");
}

TEST_F(SessionManagerTest, TheNextRankCountsWhenTheFirstGoes) {
  AttachTwo();
  v1::StartSessionRequest request = Order("job");
  request.set_start_step(3);
  std::string id = Started(As(kAlice), request);
  Jobs([](FakeJobDirectory& jobs) {
    jobs.Detach(1);
    jobs.Step(2, 3, true);
  });
  Until(id, v1::Session::RUNNING);
  Stop(id);
  id = Started(As(kAlice), [] {
    v1::StartSessionRequest again = Order("job");
    again.set_start_step(9);
    return again;
  }());
  Jobs([](FakeJobDirectory& jobs) { jobs.Detach(2); });
  v1::Session session = Until(id, v1::Session::DONE);
  EXPECT_EQ(session.reason(), "no attached process is left to begin step 9 before it started");
  EXPECT_EQ(session.dump_path(), "");
}

TEST_F(SessionManagerTest, StepsNeedAProcessThatHasNotPassedThem) {
  v1::StartSessionRequest request = Order("job");
  request.set_start_step(5);
  jobs_.Add(Process(10, kAlice, 0, 0));
  EXPECT_EQ(Start(As(kAlice), request).status().code(), StatusCode::kFailedPrecondition);
  TrainingProcess process = Process(11, kAlice, 1, 2);
  process.step = 5;
  jobs_.Add(process);
  Status passed = Start(As(kAlice), request).status();
  EXPECT_EQ(passed.code(), StatusCode::kFailedPrecondition);
  EXPECT_THAT(passed.message(), HasSubstr("has begun step 5 already"));
  request.set_start_step(6);
  EXPECT_TRUE(Start(As(kAlice), request).ok());
}

TEST_F(SessionManagerTest, StartsAtAnInstant) {
  v1::StartSessionRequest request = Order();
  request.set_start_in_ms(300);
  Result<v1::Session> ordered = Start(As(kAlice), request);
  ASSERT_TRUE(ordered.ok()) << ordered.status().ToString();
  EXPECT_EQ(ordered->state(), v1::Session::SCHEDULED);
  EXPECT_EQ(ordered->started_ns(), 0);
  v1::Session session = Until(ordered->session_id(), v1::Session::RUNNING);
  EXPECT_EQ(session.started_ns(), ordered->start_at_ns());
  EXPECT_GE(clock_.WallNs(), session.started_ns());
  EXPECT_EQ(Stop(session.session_id()).state(), v1::Session::DONE);
}

TEST_F(SessionManagerTest, TheInstantIsTheWallClocks) {
  v1::StartSessionRequest request = Order();
  request.set_start_at_ns(clock_.WallNs() + 3600 * kNsPerSecond);
  std::string id = Started(As(kAlice), request);
  EXPECT_EQ(Show(id).state(), v1::Session::SCHEDULED);
  clock_.step_ns = 3601 * kNsPerSecond;
  Until(id, v1::Session::RUNNING);
}

TEST_F(SessionManagerTest, StopWhileScheduledLeavesNothing) {
  v1::StartSessionRequest request = Order();
  request.set_start_in_ms(800);  // its dump is made at once
  v1::Session session = Stop(Started(As(kAlice), request));
  EXPECT_EQ(session.state(), v1::Session::DONE);
  EXPECT_EQ(session.reason(), "stopped by uid 0 before it started");
  Until(session.session_id(), v1::Session::DONE);
  EXPECT_EQ(Show(session.session_id()).dump_path(), "");
  EXPECT_EQ(Dumps(), 0u);
}

TEST_F(SessionManagerTest, EndsWithTheLastProcessOfTheJob) {
  AttachTwo();
  std::string id = Started(As(kAlice), Order("job"));
  Dies(10);
  OnControl([&] {
    manager().Tick();
    return 0;
  });
  EXPECT_EQ(Show(id).state(), v1::Session::RUNNING);
  Dies(11);
  EXPECT_EQ(Until(id, v1::Session::DONE).reason(), "all processes of the job have ended");
}

TEST_F(SessionManagerTest, AWholeNodeDoesNotEndWithAJob) {
  AttachTwo();
  v1::StartSessionRequest request = Order("job");
  request.set_all(true);
  std::string id = Started(As(kAlice), request);
  Dies(10);
  Dies(11);
  OnControl([&] {
    manager().Tick();
    return 0;
  });
  EXPECT_EQ(Show(id).state(), v1::Session::RUNNING);
}

TEST_F(SessionManagerTest, LeaseExpiresWhenNobodyIsLeft) {
  v1::StartSessionRequest request = Order();
  request.set_lease_ms(1000);
  request.set_starter_pid(10);
  std::string id = Started(As(kAlice), request);
  OnControl([&] {
    manager().Tick();
    return 0;
  });
  EXPECT_EQ(Show(id).lease_left_ms(), 0u);
  EXPECT_EQ(OnControl([&] { return manager().RenewLease(As(kAlice), id).value_or(0); }), 1000u);
  EXPECT_EQ(OnControl([&] { return manager().RenewLease(As(kBob), id).status().code(); }),
            StatusCode::kNotFound);
  Dies(10);
  EXPECT_THAT(Until(id, v1::Session::DONE).reason(),
              AllOf(StartsWith("lease expired"), HasSubstr("process 10")));
}

TEST_F(SessionManagerTest, WithoutALeaseThereIsNothingToRenew) {
  std::string id = Started(As(kAlice), Order());
  EXPECT_EQ(OnControl([&] { return manager().RenewLease(As(kAlice), id).value_or(7); }), 0u);
}

TEST_F(SessionManagerTest, AnAdministratorPushesTheLowestAside) {
  config_.max_sessions = 2;
  v1::StartSessionRequest low = Order();
  low.set_priority(2);
  std::string keeps = Started(As(kAlice), Order());
  std::string gives = Started(As(kBob), low);
  Status full = Start(As(0, true), Order()).status();
  EXPECT_EQ(full.code(), StatusCode::kResourceExhausted);
  EXPECT_THAT(full.message(), AllOf(HasSubstr("1 of uid 1000"), HasSubstr("no")));
  v1::StartSessionRequest request = Order();
  request.set_preempt(true);
  std::string id = Started(As(0, true), request);
  EXPECT_EQ(Show(gives).reason(), "preempted by uid 0");
  EXPECT_EQ(Show(keeps).state(), v1::Session::RUNNING);
  // Equals are safe.
  EXPECT_EQ(Start(As(0, true), request).status().code(), StatusCode::kResourceExhausted);
  EXPECT_EQ(Show(id).state(), v1::Session::RUNNING);
}

TEST_F(SessionManagerTest, StartsPerMinute) {
  config_.max_starts_per_minute = 2;
  for (int i = 0; i < 2; ++i) Stop(Started(As(kAlice), Order()));
  EXPECT_THAT(Start(As(kAlice), Order()).status().message(),
              HasSubstr("limits.max_starts_per_minute"));
  EXPECT_TRUE(Start(As(kBob), Order()).ok());
}

TEST_F(SessionManagerTest, StoppingAJobNamesItsOtherSessions) {
  AttachTwo();
  std::string first = Started(As(kAlice), Order("job"));
  std::string second = Started(As(kAlice), Order("job"));
  v1::StopSessionRequest request;
  request.set_job_id("job");
  v1::Session last = Stop(As(kAlice), request);
  std::string other = last.session_id() == first ? second : first;
  ASSERT_EQ(last.warnings_size() > 0, true);
  EXPECT_THAT(last.warnings(last.warnings_size() - 1), HasSubstr(other));
  Until(first, v1::Session::DONE);
  Until(second, v1::Session::DONE);
}

TEST_F(SessionManagerTest, MetadataAndPriorityAreKept) {
  v1::StartSessionRequest request = Order();
  (*request.mutable_metadata())["git"] = "abc";
  std::string id = Started(As(kAlice), request);
  v1::Session session = Stop(id);
  EXPECT_EQ(session.metadata().at("git"), "abc");
  EXPECT_EQ(session.priority(), 5u);
  EXPECT_THAT(session.processes(), IsEmpty());
  Result<Manifest> manifest =
      ParseManifest(ReadText(session.dump_path() + "/profd_manifest.json"));
  ASSERT_TRUE(manifest.ok());
  EXPECT_EQ(manifest->metadata.at("git"), "abc");
}

}  // namespace
}  // namespace profd
