// An absolute grid of due times: no drift, and late ticks are counted instead of bunched.
#pragma once

#include <cstdint>

#include "base/clock.h"

namespace profd {

class TickGrid {
 public:
  // First tick at `start_ns` (CLOCK_MONOTONIC).
  TickGrid(int64_t start_ns, double hz)
      : period_ns_(hz > 0 ? static_cast<int64_t>(1e9 / hz) : kNsPerSecond), due_ns_(start_ns) {}

  int64_t due_ns() const { return due_ns_; }
  int64_t period_ns() const { return period_ns_; }

  // To be called when a tick has been served at `now_ns`: moves to the first grid point after now
  // and answers how many were skipped.
  uint64_t Advance(int64_t now_ns) {
    due_ns_ += period_ns_;
    if (due_ns_ > now_ns) return 0;
    int64_t skipped = (now_ns - due_ns_) / period_ns_ + 1;
    due_ns_ += skipped * period_ns_;
    return static_cast<uint64_t>(skipped);
  }

  // Leaves out the next `ticks`; answers how many of them.
  uint64_t Skip(int64_t ticks) {
    due_ns_ += ticks * period_ns_;
    return static_cast<uint64_t>(ticks);
  }

 private:
  int64_t period_ns_;
  int64_t due_ns_;
};

}  // namespace profd
