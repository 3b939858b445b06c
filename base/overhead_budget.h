// Keeps what something costs within a share of a core, by steps: with each its user does less. A step is taken when a
// complete window cost more than the share, and taken back when it cost less than half of it for long: doing twice as much
// is within the share then. What was resumed too early is resumed later the next time. Pure; one thread.
#pragma once

#include <algorithm>
#include <cstdint>

namespace profd {

class OverheadBudget {
 public:
  static constexpr int64_t kWindowNs = 10'000'000'000;
  // Windows of little cost before a step is taken back; doubled whenever that did not hold.
  static constexpr int kFirstRest = 6;
  static constexpr int kLongestRest = 96;

  explicit OverheadBudget(int64_t window_ns = kWindowNs) : window_ns_(window_ns) {}

  // `cores`: 0.05 is 5 % of one; 0 = no limit. `steps`: how many there are.
  void SetLimit(double cores, int steps) {
    limit_ = cores;
    step_ = limit_ > 0 ? std::min(step_, steps) : 0;
    steps_ = steps;
  }

  // At any time, at least once a window. `cost_ns`: CPU time used so far. True: step() is another one.
  bool Update(int64_t now_ns, int64_t cost_ns) {
    if (began_ns_ == 0) Begin(now_ns, cost_ns);
    if (now_ns - began_ns_ < window_ns_) return false;
    share_ = static_cast<double>(cost_ns - cost_ns_) / static_cast<double>(now_ns - began_ns_);
    Begin(now_ns, cost_ns);
    if (limit_ <= 0) return false;
    if (share_ > limit_) return Lower();
    quiet_ = share_ < limit_ / 2 ? quiet_ + 1 : 0;
    if (step_ == 0 || quiet_ < rest_) return false;
    --step_;
    quiet_ = 0;
    came_back_ = true;
    return true;
  }

  int step() const { return step_; }        // 0: nothing is left out
  double share() const { return share_; }   // of a core, in the last window
  double limit() const { return limit_; }

 private:
  void Begin(int64_t now_ns, int64_t cost_ns) {
    began_ns_ = now_ns;
    cost_ns_ = cost_ns;
  }
  bool Lower() {
    quiet_ = 0;
    if (step_ == steps_) return false;
    if (came_back_) rest_ = std::min(rest_ * 2, kLongestRest);
    came_back_ = false;
    ++step_;
    return true;
  }

  const int64_t window_ns_;
  double limit_ = 0;
  int steps_ = 0;
  int step_ = 0;
  int64_t began_ns_ = 0;  // of the window
  int64_t cost_ns_ = 0;
  double share_ = 0;
  int quiet_ = 0;  // windows
  int rest_ = kFirstRest;
  bool came_back_ = false;
};

}  // namespace profd
