// The job's common clockwork: which step and phase the node is in at a given scenario time.
// Devices synchronise in every step, so one slow device or link stretches the step for all. A fault
// changes step lengths from the next step boundary on; between two changes all steps are equally
// long, which is what makes every integral closed-form. Immutable after construction.
#pragma once

#include <array>
#include <cstdint>
#include <vector>

#include "sim/chip.h"
#include "sim/scenario.h"

namespace profd::sim {

inline constexpr unsigned kMaxLinks = 16;

struct Segment {
  int64_t start_ns = 0;  // a step boundary
  int64_t edge_ns = 0;   // the faults active here are those covering this instant
  int64_t first_step = 0;
  std::array<int64_t, kPhases> window_ns{};  // the common length of each phase
  int64_t step_ns = 0;
  // How long a device is really busy in each phase; never longer than the window.
  std::vector<std::array<int64_t, kPhases>> active_ns;
  // How long each link of a device needs for the all-reduce.
  std::vector<std::array<int64_t, kMaxLinks>> link_ns;
};

struct Position {
  size_t segment = 0;
  int64_t step = 0;
  int64_t offset_ns = 0;  // within the step
  Phase phase = kForward;
  int64_t in_phase_ns = 0;
};

class Timeline {
 public:
  Timeline(const Scenario& scenario, const ChipSpec& chip);

  // Times before 0 count as 0.
  Position Locate(int64_t t_ns) const;
  int64_t StepStart(int64_t step) const;
  const Segment& SegmentOfStep(int64_t step) const;
  const std::vector<Segment>& segments() const { return segments_; }
  const std::array<int64_t, kPhases>& nominal_ns() const { return nominal_ns_; }

 private:
  std::array<int64_t, kPhases> nominal_ns_;
  std::vector<Segment> segments_;
};

}  // namespace profd::sim
