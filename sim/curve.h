// A quantity that only grows: bytes over a link, busy time of an engine. Value(t) is the exact
// integral of the quantity's rate from scenario time 0, in integer units, and never decreases; every
// channel and both libraries read the same curve, so their counters agree. Immutable after
// construction.
#pragma once

#include <array>
#include <cstdint>
#include <vector>

#include "sim/timeline.h"

namespace profd::sim {

struct CurveShape {
  // Units one nominal step adds in each phase. A `busy` curve counts ns instead: `work` is then the
  // share of the active time (0..1), and waiting for slower devices adds `idle` times the waiting
  // time.
  std::array<double, kPhases> work{};
  bool busy = false;
  double idle = 0;
  uint64_t noise = 0;   // hash key of this curve's step-to-step variation
  uint64_t offset = 0;  // what the counter showed at scenario time 0
  unsigned device = 0;
  unsigned link = 0;  // not 0: the all-reduce takes as long as this link needs
};

class Curve {
 public:
  Curve(const Timeline& timeline, const CurveShape& shape);
  uint64_t Value(const Position& position) const;

 private:
  struct Part {
    uint64_t before_segment;
    int64_t first_step;
    int64_t per_step;
    double sum;
    std::array<double, kPhases> before_phase;
    std::array<double, kPhases> active;  // added while active
    std::array<double, kPhases> wait;    // added while waiting for others
    std::array<int64_t, kPhases> active_ns;
    std::array<int64_t, kPhases> wait_ns;
  };
  int64_t Jitter(int64_t step) const;

  uint64_t noise_;
  uint64_t offset_;
  uint64_t nominal_;
  std::vector<Part> parts_;
};

}  // namespace profd::sim
