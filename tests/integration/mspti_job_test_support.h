// A simulated application with the collector of libprofd_mspti.so in it. Each test is a process of its own.
#pragma once

#include <atomic>
#include <chrono>
#include <cstdlib>
#include <string>

#include "client/libprofd/mspti/collector.h"
#include "client/libprofd/mspti/collector_test_support.h"
#include "sim/mspti/client_test_support.h"

namespace profd::lib::mspti {

inline std::atomic<uint64_t> g_steps{0};
inline std::atomic<int> g_takes_marks{1};
inline std::atomic<int> g_looks{0};  // of the collector at it, each before a flush

// The collector of a test's process, and its ring.
class Job {
 public:
  explicit Job(uint32_t kinds = PROFD_COLLECT_KERNEL) : kinds_(kinds) {
    EXPECT_EQ(CALL(sim::mspti::Acl(), aclrtSetDevice)(0), 0);
    const std::string library = PROFD_SIM_ASCENDCL;
    ::setenv("ASCEND_HOME_PATH", library.substr(0, library.rfind('/')).c_str(), 1);
    if (sim::mspti::MsptiPath() != std::string(PROFD_SIM_MSPTI)) sim::mspti::Mspti();
  }
  int Start() {
    profd_collect_config config = {};
    config.size = sizeof config;
    config.kinds = kinds_;
    config.flush_ms = 50;
    config.steps = [](void*) { return g_steps.load(); };
    config.takes_marks = [](void*) {
      ++g_looks;
      return g_takes_marks.load();
    };
    const int error = collector_.Start(config);
    if (error == 0 && collector_.ring() >= 0 && !opened_) view.Open(collector_.ring());
    opened_ = true;
    return error;
  }
  profd_collect_report Report() {
    profd_collect_report report = {};
    report.size = sizeof report;
    collector_.Report(&report);
    return report;
  }
  // Starts, and is in this state.
  testing::AssertionResult Is(int state) {
    if (!running_) {
      EXPECT_EQ(Start(), 0);
    }
    running_ = true;
    if (Eventually([&] { return Report().state == state; })) return testing::AssertionSuccess();
    return testing::AssertionFailure() << Report().state << " " << Report().detail;
  }
  void Stop() { EXPECT_TRUE(collector_.Stop(kPatience)); }
  bool Kernels(size_t count) {
    return Eventually([&] {
      view.Take();
      return view.kernels.size() >= count;
    });
  }
  Collector& collector() { return collector_; }

  RingView view;

 private:
  const uint32_t kinds_;
  bool opened_ = false;
  bool running_ = false;
  Collector& collector_ = *new Collector(
      {std::chrono::milliseconds(10), std::chrono::milliseconds(10), std::chrono::milliseconds(50), std::chrono::milliseconds(5), std::chrono::milliseconds(2000)});
};

}  // namespace profd::lib::mspti
