// An Executor for tests: the test runs its tasks, on its own thread, and moves the time of its timers. What lives
// on a strand is then tested without threads and without waiting.
//
// Threading: all of it on the thread that made it; other threads may Post to its strands.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>

#include "base/clock.h"
#include "base/strand.h"

namespace profd {

class ManualExecutor {
 public:
  // Timers run on `clock`, which outlives this object.
  explicit ManualExecutor(ManualClock& clock);
  ~ManualExecutor();
  ManualExecutor(const ManualExecutor&) = delete;
  ManualExecutor& operator=(const ManualExecutor&) = delete;

  // For the strands and timers under test.
  Executor& executor() { return executor_; }

  // Runs tasks until none is left, and the timers that are due now.
  void RunReady();
  // Moves the clock on by `ns`, from timer to timer: each callback finds the clock at the instant it was set
  // for (or at the present one, if that has passed).
  void Advance(int64_t ns);
  // Runs tasks that other threads post until `condition` holds; false after 30 s of real time without it.
  // The clock stands still.
  bool RunUntil(const std::function<bool()>& condition);
  // Timers that are set: 0 = nothing will happen unless it is asked for.
  size_t timers() const;

  struct Time;  // in strand.cc, for Strand and Timer

 private:
  // Runs the earliest timer if it is due at `until_ns`.
  bool FireNext(int64_t until_ns);

  Executor executor_;
  std::shared_ptr<Time> time_;
};

}  // namespace profd
