// An arbiter of one device whose driver is scripted.
#pragma once

#include <gtest/gtest.h>

#include <chrono>
#include <future>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/testing/eventually.h"
#include "daemon/session/channel_arbiter.h"
#include "driver/rooted_fs.h"
#include "driver/testing/scripted_hal.h"

namespace profd {

inline constexpr std::chrono::seconds kPatience{30};

inline CollectorIndex IndexOf(std::string_view name) {
  return static_cast<CollectorIndex>(FindCollector(name) - Collectors().data());
}

// One 910B with a few channels behind the real pump and device control; the driver is scripted.
class ArbiterTest : public ::testing::Test {
 protected:
  ArbiterTest()
      : fs_(RootedFs::OpenRoot("/").value()),
        executor_("control", 1),
        control_(executor_),
        pool_(8 << 20),
        router_(store_, hub_, stats_, nullptr) {
    DeviceInfo device{.chip_id = 5, .chip_name = "Ascend910B", .channels = {1, 8, 9, 52, 132}, .counter_hz = 50e6};
    devices_.push_back(device);
    host_.emplace(Host{clock_, fs_, fs_, nullptr, devices_, 0});
    router_.Declare(0, 1, IndexOf("hbm"));
    router_.Declare(0, 8, IndexOf("llc"));
    router_.Declare(0, 9, IndexOf("hccs"));
    router_.Declare(0, 52, IndexOf("soc_profile"));
    router_.Declare(0, 132, IndexOf("aicore_freq"));
    PumpOptions pump_options;
    pump_options.poll_timeout_seconds = 0;
    pump_.emplace(hal_.Library(), clock_, pool_, router_, pump_options);
    device_.emplace(0, hal_.Library(), *pump_, clock_, 200 * kNsPerMs);
    arbiter_ = std::make_unique<ChannelArbiter>(
        ChannelArbiter::Deps{control_, *host_, store_, router_, *pump_},
        std::vector<ChannelArbiter::Device>{{&devices_[0], &*device_}});
  }
  // Before what a test adds is destroyed: the strand may still answer the device.
  void TearDown() override { executor_.Stop(); }
  ~ArbiterTest() override {
    for (testing::Call call : {testing::Call::kStart, testing::Call::kStop}) hal_.Release(call);
    device_.reset();
    pump_.reset();
  }

  template <class F>
  auto OnControl(F&& f) {
    std::packaged_task<decltype(f())()> task(std::forward<F>(f));
    auto result = task.get_future();
    control_.Post([&task] { task(); });
    return result.get();
  }

  // Claims and waits for the first answer.
  ChannelArbiter::ClaimId Claim(std::string_view collector, double hz, std::string owner = "me",
                                bool llc_write = false, bool resident = false,
                                std::shared_ptr<WriterSession> dump = nullptr) {
    ClaimRequest request{.collector = IndexOf(collector), .dump = std::move(dump), .resident = resident};
    request.options.hz = hz;
    request.options.values[1] = llc_write ? 1 : 0;  // llc_profiling
    request.owner = std::move(owner);
    auto settled = std::make_shared<std::promise<void>>();
    auto id = OnControl(
        [&] { return arbiter_->Claim(request, [settled] { settled->set_value(); }); });
    Await(settled->get_future());
    return id;
  }
  ChannelArbiter::GarbageBytes Release(ChannelArbiter::ClaimId claim) {
    auto done = std::make_shared<std::promise<void>>();
    auto garbage = std::make_shared<ChannelArbiter::GarbageBytes>();
    OnControl([&] {
      arbiter_->Release(claim, [done, garbage](const ChannelArbiter::GarbageBytes& bytes) {
        *garbage = bytes;
        done->set_value();
      });
    });
    Await(done->get_future());
    return *garbage;
  }
  // Waits as the daemon does: with deadlines being looked after.
  void Await(std::future<void> future) {
    auto end = std::chrono::steady_clock::now() + kPatience;
    while (future.wait_for(std::chrono::milliseconds(5)) != std::future_status::ready) {
      device_->CheckDeadlines(clock_.SteadyNs());
      ASSERT_LT(std::chrono::steady_clock::now(), end);
    }
  }
  ClaimAnswer Answer(ChannelArbiter::ClaimId claim) {
    return OnControl([&] { return arbiter_->AnswerOf(claim); });
  }
  void AwaitRunning(ChannelArbiter::ClaimId claim) {
    ASSERT_TRUE(Eventually([&] { return Answer(claim).state == v1::Outcome::RESULT_RUNNING; }));
  }
  // Starts and stops only, in order.
  std::vector<std::string> DriverCalls() {
    std::vector<std::string> calls;
    for (const std::string& line : hal_.log()) {
      size_t period = line.find(" period ");
      if (line.starts_with("stop")) {
        calls.push_back(line);
      } else if (line.starts_with("start") && period != std::string::npos) {
        size_t end = line.find(' ', period + 8);
        calls.push_back(line.substr(0, line.find(" type")) + line.substr(period, end - period));
      }
    }
    return calls;
  }

  testing::ScriptedHal hal_;
  SystemClock clock_;
  RootedFs fs_;
  std::vector<DeviceInfo> devices_;
  std::optional<Host> host_;
  Executor executor_;
  Strand control_;
  BlockPool pool_;
  MetricStore store_;
  StreamHub hub_;
  CollectorStatsTable stats_;
  ChannelRouter router_;
  std::optional<ChannelPump> pump_;
  std::optional<DeviceControl> device_;
  std::unique_ptr<ChannelArbiter> arbiter_;
};

}  // namespace profd
