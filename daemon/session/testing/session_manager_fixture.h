// A session manager on a node without devices, with made-up processes, in time that the test moves. Dumps are
// written by the real writer, on its thread.
#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <functional>
#include <future>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "base/manual_executor.h"
#include "daemon/session/dump_requests.h"
#include "daemon/session/earlier_sessions.h"
#include "daemon/session/live_sessions.h"
#include "daemon/session/session_manager.h"
#include "daemon/session/session_planner.h"
#include "daemon/session/session_records.h"
#include "daemon/session/testing/fake_job_directory.h"
#include "daemon/session/testing/fake_node.h"
#include "driver/rooted_fs.h"
#include "driver/testing/scripted_hal.h"
#include "dump/test_support.h"

namespace profd::testing {

inline constexpr uint32_t kAlice = 1000;
inline constexpr uint32_t kBob = 2000;

class SessionManagerTest : public ::testing::Test {
 protected:
  SessionManagerTest()
      : proc_(RootedFs::OpenRoot("/proc").value()),
        host_{clock_, proc_, proc_, nullptr, {}, 0},
        samplers_("sample", 1),
        control_(time_.executor()),
        pool_(8 << 20),
        // The machine's disk is not part of the test.
        writer_(DumpRoot::Open(tmp_.path() + "/root").value(), clock_, pool_, {.min_free_bytes = 0}),
        router_(store_, hub_, stats_, nullptr),
        pump_(hal_.Library(), clock_, pool_, router_, {}),
        arbiter_({control_, host_, store_, router_, pump_}, {}),
        pollers_({host_, store_, hub_, samplers_, stats_}) {
    // Samplers run on the machine's clock, which this one is ahead of: nothing is sampled.
    clock_.steady_ns = SystemClock().SteadyNs() + 24 * 3600 * kNsPerSecond;
    config_.max_session_mb = 64;
    Alive(10, kAlice);
    Alive(11, kAlice);
    Alive(20, kBob);
  }
  ~SessionManagerTest() override {
    bool ended = false;
    live_.Shutdown("the test is over", [&] { ended = true; });
    EXPECT_TRUE(time_.RunUntil([&] { return ended; }));
  }

  // The made-up processes: pid -> who, since when.
  void Alive(pid_t pid, uint32_t uid) { processes_.alive[pid] = {uid, static_cast<uint64_t>(pid) + 100}; }
  void Dies(pid_t pid) { processes_.alive.erase(pid); }
  static TrainingProcess Process(pid_t pid, uint32_t uid, int rank, uint64_t attach_id) {
    return {.pid = pid, .start_ticks = static_cast<uint64_t>(pid) + 100, .uid = uid, .job_id = "job", .rank = rank,
            .attach_id = attach_id};
  }
  // Ranks 0 and 1 of Alice's job, attached as 1 and 2.
  void AttachTwo() {
    jobs_.Add(Process(10, kAlice, 0, 1));
    jobs_.Add(Process(11, kAlice, 1, 2));
  }

  static Peer As(uint32_t uid, bool admin = false) { return {.pid = 4242, .uid = uid, .gid = uid, .admin = admin}; }
  // A request that collects something here: the host's memory.
  static v1::SessionSpec Spec(std::string job = {}) {
    v1::SessionSpec request;
    v1::CollectorRequest& collector = *request.add_collectors();
    collector.set_name("host_mem");
    collector.set_hz(10);
    request.mutable_target()->set_job_id(std::move(job));
    return request;
  }
  // Waits for an answer, which may need the writer's thread. The clock stands still.
  Result<v1::Session> Await(
      const std::function<void(std::function<void(const Result<v1::Session>&)>)>& call) {
    auto answer = std::make_shared<std::optional<Result<v1::Session>>>();
    call([answer](const Result<v1::Session>& result) { *answer = result; });
    if (!time_.RunUntil([&] { return answer->has_value(); })) return DeadlineExceeded("no answer");
    return **answer;
  }
  Result<v1::Session> Start(const Peer& peer, const v1::SessionSpec& request) {
    return Await([&](auto answer) { manager_.Start(peer, request, std::move(answer)); });
  }
  std::string Started(const Peer& peer, const v1::SessionSpec& request) {
    Result<v1::Session> session = Start(peer, request);
    EXPECT_TRUE(session.ok()) << session.status().ToString();
    return session.ok() ? session->session_id() : "";
  }
  v1::Session Stop(const Peer& peer, const v1::StopSessionRequest& request) {
    Result<v1::Session> session =
        Await([&](auto answer) { manager_.Stop(peer, request, std::move(answer)); });
    EXPECT_TRUE(session.ok()) << session.status().ToString();
    return session.value_or({});
  }
  v1::Session Stop(const std::string& id) {
    v1::StopSessionRequest request;
    request.set_session_id(id);
    return Stop(As(0, true), request);
  }
  v1::Session Show(const std::string& id) {
    time_.RunReady();
    return records_.Get(As(0, true), id).value_or({});
  }
  // Ticks, once at this instant and then as the daemon does.
  void Tick(int64_t for_ns = 0) {
    live_.Tick();
    for (; for_ns > 0; for_ns -= kNsPerSecond) {
      time_.Advance(std::min(for_ns, kNsPerSecond));
      live_.Tick();
    }
    time_.RunReady();
  }
  // What it becomes without time passing, when the writer's thread has done its part.
  v1::Session Until(const std::string& id, v1::Session::State state) {
    time_.RunUntil([&] { return Show(id).status().state() == state; });
    v1::Session session = Show(id);
    EXPECT_EQ(v1::Session::State_Name(session.status().state()), v1::Session::State_Name(state))
        << session.status().reason();
    return session;
  }
  template <class F>
  void Jobs(F f) {
    f(jobs_);
    time_.RunReady();
  }
  Mark MarkNow(attach::MarkKind kind, int64_t value = 0) const {
    return {.time_ns = clock_.MonotonicRawNs(), .value = value, .thread = 77, .kind = kind};
  }
  size_t Dumps() {
    std::promise<size_t> count;
    writer_.Post([&] {
      auto list = writer_.root().Names();
      count.set_value(list.ok() ? list->size() : 0);
    });
    return count.get_future().get();
  }

  TempDir tmp_;
  ManualClock clock_;
  ManualExecutor time_{clock_};
  RootedFs proc_;
  Host host_;
  SamplerPool samplers_;
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
  // What the writer has removed, as the retention does it.
  struct Remover final : DumpRemover {
    Remover(DumpWriter& w, Strand& c) : writer(w), control(c) {}
    void Remove(const std::string& name, std::string_view, Removed done) override {
      removed.push_back(name);
      // The writer may run it when this is gone.
      writer.Post([&writer = writer, &control = control, name, done = std::move(done)] {
        Status status = writer.root().Remove(name);
        control.Post([done, status] {
          if (done) done(status.ok() ? Result<uint64_t>(1) : Result<uint64_t>(status));
        });
      });
    }
    DumpWriter& writer;
    Strand& control;
    std::vector<std::string> removed;
  };
  Remover remover_{writer_, control_};
  FakeProcesses processes_;
  FakeDevices devices_;
  FakeStates states_;
  FakeGate gate_;
  SessionDeps session_deps_{.control = control_, .host = host_, .store = store_, .arbiter = arbiter_, .pollers = pollers_,
                            .writer = writer_, .node = node_, .devices = devices_, .processes = processes_,
                            .manifest_base = Manifest(), .jobs_or_null = &jobs_};
  SessionRecords records_{control_, clock_, config_, nullptr};
  SessionPlanner planner_{session_deps_, config_};
  SessionKeeping keeping_{session_deps_, config_, records_, remover_, states_};
  LiveSessions live_{keeping_};
  SessionManager manager_{keeping_, live_, planner_, gate_, Rights(0, ~uint64_t{0})};
  EarlierSessions earlier_{keeping_, live_, planner_};
  DumpRequests dumps_{control_, records_, remover_, nullptr};
};

}  // namespace profd::testing
