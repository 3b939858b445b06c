// What a value used to be: a mean that learns in its first values, follows improvements quickly and changes slowly,
// and stands still while the value is above it, so that what is wrong does not become usual. After a time it does.
#pragma once

#include <cstdint>

namespace profd {

class Baseline {
 public:
  Baseline() = default;
  // `learn`: after so many values it is known.
  explicit Baseline(int learn) : learn_(learn) {}

  // Once a second or more rarely. `suspicious`: the ratio above which the mean stands still.
  void Add(double value, double suspicious, int64_t now_ns, int64_t forget_ns) {
    if (count_ >= learn_ && value > mean_ * (1 + suspicious)) {
      if (stands_since_ns_ == 0) stands_since_ns_ = now_ns;
      if (now_ns - stands_since_ns_ < forget_ns) return;
      count_ = 0;
    }
    stands_since_ns_ = 0;
    if (count_ < kMost) ++count_;
    const bool better = count_ > learn_ && value < mean_ * (1 - suspicious);
    const double weight = better ? kFollow : 1.0 / count_;
    mean_ = count_ == 1 ? value : mean_ + (value - mean_) * weight;
  }
  bool known() const { return count_ >= learn_; }
  double mean() const { return known() ? mean_ : 0; }

 private:
  static constexpr int kMost = 300;
  static constexpr double kFollow = 0.3;

  int learn_ = 5;
  double mean_ = 0;
  int count_ = 0;
  int64_t stands_since_ns_ = 0;
};

}  // namespace profd
