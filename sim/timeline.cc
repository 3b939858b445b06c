#include "sim/timeline.h"

#include <algorithm>
#include <cmath>

namespace profd::sim {
namespace {

int64_t Stretch(int64_t ns, double factor) {
  return static_cast<int64_t>(std::llround(static_cast<double>(ns) / factor));
}

Segment MakeSegment(const Scenario& scenario, const ChipSpec& chip, int64_t edge_ns) {
  Segment segment;
  segment.edge_ns = edge_ns;
  std::array<int64_t, kMaxLinks> links;
  links.fill(scenario.phase_ns[kAllReduce]);
  segment.active_ns.assign(static_cast<size_t>(scenario.devices), scenario.phase_ns);
  segment.link_ns.assign(static_cast<size_t>(scenario.devices), links);
  segment.window_ns = scenario.phase_ns;
  for (int device = 0; device < scenario.devices; ++device) {
    const auto d = static_cast<size_t>(device);
    for (const Fault& fault : scenario.faults) {
      if (!fault.Covers(edge_ns) || !fault.Concerns(device)) continue;
      if (fault.kind == FaultKind::kThrottle) {
        const double speed = static_cast<double>(fault.mhz) / chip.aic_mhz;
        for (Phase p : {kForward, kBackward, kUpdate}) {
          segment.active_ns[d][p] =
              std::max(segment.active_ns[d][p], Stretch(scenario.phase_ns[p], speed));
        }
      } else if (fault.kind == FaultKind::kSlowHccs) {
        int64_t& link = segment.link_ns[d][fault.link % kMaxLinks];
        link = std::max(link, Stretch(scenario.phase_ns[kAllReduce], fault.factor));
        segment.window_ns[kAllReduce] = std::max(segment.window_ns[kAllReduce], link);
      }
    }
    for (unsigned p = 0; p < kPhases; ++p) {
      segment.window_ns[p] = std::max(segment.window_ns[p], segment.active_ns[d][p]);
    }
  }
  for (int64_t ns : segment.window_ns) segment.step_ns += ns;
  return segment;
}

std::vector<int64_t> TimingEdges(const Scenario& scenario) {
  std::vector<int64_t> edges;
  for (const Fault& fault : scenario.faults) {
    if (fault.kind != FaultKind::kThrottle && fault.kind != FaultKind::kSlowHccs) continue;
    edges.push_back(fault.begin_ns);
    if (fault.end_ns != kForever) edges.push_back(fault.end_ns);
  }
  std::ranges::sort(edges);
  edges.erase(std::unique(edges.begin(), edges.end()), edges.end());
  return edges;
}

}  // namespace

Timeline::Timeline(const Scenario& scenario, const ChipSpec& chip)
    : nominal_ns_(scenario.phase_ns) {
  segments_.push_back(MakeSegment(scenario, chip, 0));
  for (int64_t edge : TimingEdges(scenario)) {
    if (edge == 0) continue;
    const Segment& last = segments_.back();
    Segment next = MakeSegment(scenario, chip, edge);
    const int64_t behind = std::max<int64_t>(0, edge - last.start_ns);
    const int64_t steps = (behind + last.step_ns - 1) / last.step_ns;
    next.start_ns = last.start_ns + steps * last.step_ns;
    next.first_step = last.first_step + steps;
    segments_.push_back(std::move(next));
  }
}

Position Timeline::Locate(int64_t t_ns) const {
  const int64_t t = std::max<int64_t>(0, t_ns);
  const auto after = std::ranges::upper_bound(segments_, t, {}, &Segment::start_ns);
  Position position;
  position.segment = static_cast<size_t>(after - segments_.begin()) - 1;
  const Segment& segment = segments_[position.segment];
  const int64_t since = t - segment.start_ns;
  position.step = segment.first_step + since / segment.step_ns;
  position.offset_ns = since % segment.step_ns;
  position.in_phase_ns = position.offset_ns;
  unsigned phase = 0;
  while (phase + 1 < kPhases && position.in_phase_ns >= segment.window_ns[phase]) {
    position.in_phase_ns -= segment.window_ns[phase++];
  }
  position.phase = static_cast<Phase>(phase);
  return position;
}

const Segment& Timeline::SegmentOfStep(int64_t step) const {
  const auto after = std::ranges::upper_bound(segments_, step, {}, &Segment::first_step);
  return *(after == segments_.begin() ? after : after - 1);
}

int64_t Timeline::StepStart(int64_t step) const {
  const Segment& segment = SegmentOfStep(step);
  return segment.start_ns + (step - segment.first_step) * segment.step_ns;
}

}  // namespace profd::sim
