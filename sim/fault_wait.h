// Keeps a caller inside a call for as long as its card hangs.
#pragma once

#include <algorithm>
#include <chrono>

#include "base/mutex.h"
#include "sim/node.h"

namespace profd::sim {

class FaultWait {
 public:
  // Returns when `device` hangs neither in both libraries nor in the way `own`. Nothing wakes a
  // waiter early: only the fault's end does.
  void WhileHanging(const Node& node, int device, DropMode own = DropMode::kHang) {
    MutexLock lock(mutex_);
    for (int64_t now = node.ScenarioNow();
         node.faults().Drop(DropMode::kHang, now, device) != nullptr ||
         node.faults().Drop(own, now, device) != nullptr;
         now = node.ScenarioNow()) {
      const int64_t edge = node.faults().NextEdge(now);
      Sleep(lock, edge == kForever ? kLongestNs : node.played().WaitFor(edge - now));
    }
  }
  // Takes `ns` of played time, like a profiling call of the driver.
  void Spend(const Node& node, int64_t ns) {
    MutexLock lock(mutex_);
    const int64_t end = node.RawNow() + ns;
    while (node.RawNow() < end) Sleep(lock, node.played().WaitFor(end - node.RawNow()));
  }

 private:
  static constexpr int64_t kLongestNs = 3'600'000'000'000;
  void Sleep(MutexLock& lock, int64_t ns) REQUIRES(mutex_) {
    changed_.WaitFor(lock, std::chrono::nanoseconds(std::clamp<int64_t>(ns, 0, kLongestNs)));
  }
  Mutex mutex_;
  CondVar changed_;  // never notified
};

}  // namespace profd::sim
