// How far a training process is and how long its steps take, from the step records of its ring.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>

namespace profd {

class StepClock {
 public:
  static constexpr size_t kSteps = 16;

  void Begin(int64_t step, int64_t time_ns);
  void End(int64_t step, int64_t time_ns);

  // Last step that began.
  const std::optional<int64_t>& step() const { return step_; }
  // Median of the last steps, seconds; 0 = none is complete.
  double MedianSeconds() const;
  // Steps ever completed.
  uint64_t completed() const { return count_; }

 private:
  void Add(int64_t duration_ns);

  std::optional<int64_t> step_;
  bool open_ = false;
  int64_t begin_ns_ = 0;
  std::array<int64_t, kSteps> durations_{};
  size_t count_ = 0;  // ever added
};

}  // namespace profd
