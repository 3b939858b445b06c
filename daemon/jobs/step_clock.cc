#include "daemon/jobs/step_clock.h"

#include <algorithm>

namespace profd {

// A process that only reports where its steps begin has them end where the next one does.
void StepClock::Begin(int64_t step, int64_t time_ns) {
  if (open_ && step_ && *step_ != INT64_MAX && step == *step_ + 1) Add(time_ns - begin_ns_);
  step_ = step;
  begin_ns_ = time_ns;
  open_ = true;
}

void StepClock::End(int64_t step, int64_t time_ns) {
  if (!open_ || step_ != step) return;
  Add(time_ns - begin_ns_);
  open_ = false;
}

void StepClock::Add(int64_t duration_ns) {
  if (duration_ns < 0) return;
  durations_[count_++ % kSteps] = duration_ns;
}

double StepClock::MedianSeconds() const {
  size_t size = std::min(count_, kSteps);
  if (size == 0) return 0;
  std::array<int64_t, kSteps> sorted = durations_;
  auto middle = sorted.begin() + static_cast<std::ptrdiff_t>(size / 2);
  std::nth_element(sorted.begin(), middle, sorted.begin() + static_cast<std::ptrdiff_t>(size));
  return static_cast<double>(*middle) / 1e9;
}

}  // namespace profd
