// A session manager on a node without devices, with made-up processes and a wall clock that can be set.
#pragma once

#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <functional>
#include <future>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <thread>
#include <utility>

#include "daemon/session/session_manager.h"
#include "daemon/session/testing/fake_job_directory.h"
#include "driver/rooted_fs.h"
#include "driver/testing/scripted_hal.h"
#include "dump/test_util.h"

namespace profd::testing {

inline constexpr std::chrono::seconds kPatience{60};
inline constexpr uint32_t kAlice = 1000;
inline constexpr uint32_t kBob = 2000;

// The system's clock, but for a wall clock that the test sets.
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
        // The machine's disk is no part of the test.
        writer_(DumpRoot::Open(tmp_.path() + "/root").value(), clock_, pool_, {.min_free_bytes = 0}),
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
  std::unique_ptr<SessionManager> manager_;
  std::mutex mutex_;  // guards alive_
  std::map<pid_t, uint32_t> alive_;
};

}  // namespace profd::testing
