#include "sim/curve.h"

#include <algorithm>
#include <cmath>

#include "sim/noise.h"

namespace profd::sim {

Curve::Curve(const Timeline& timeline, const CurveShape& shape)
    : noise_(shape.noise), offset_(shape.offset), nominal_(0) {
  uint64_t before = 0;
  for (const Segment& segment : timeline.segments()) {
    if (!parts_.empty()) {
      const Part& last = parts_.back();
      // A counter wraps around; a fault in some years is far enough away for that.
      before += static_cast<uint64_t>(last.per_step) *
                static_cast<uint64_t>(segment.first_step - last.first_step);
    }
    Part part{};
    part.before_segment = before;
    part.first_step = segment.first_step;
    part.active_ns = segment.active_ns[shape.device];
    if (shape.link != 0) {
      part.active_ns[kAllReduce] = segment.link_ns[shape.device][shape.link];
    }
    for (unsigned p = 0; p < kPhases; ++p) {
      part.wait_ns[p] = segment.window_ns[p] - part.active_ns[p];
      part.active[p] =
          shape.busy ? shape.work[p] * static_cast<double>(part.active_ns[p]) : shape.work[p];
      part.wait[p] = shape.busy ? shape.idle * static_cast<double>(part.wait_ns[p]) : 0;
      part.before_phase[p] = part.sum;
      part.sum += part.active[p] + part.wait[p];
    }
    part.per_step = static_cast<int64_t>(std::llround(part.sum));
    if (parts_.empty()) nominal_ = static_cast<uint64_t>(part.per_step);
    parts_.push_back(part);
  }
}

// Moves step boundaries of the curve by up to 1/32 of a step's amount, so that steps differ a
// little while the sum over many steps stays exact. Products stay below 2^63 for amounts below 2^47
// per step.
int64_t Curve::Jitter(int64_t step) const {
  const uint64_t h16 = Hash(noise_, static_cast<uint64_t>(step)) >> 48;
  return static_cast<int64_t>((nominal_ * h16) >> 21);
}

uint64_t Curve::Value(const Position& position) const {
  const Part& part = parts_[position.segment];
  const int64_t jitter = Jitter(position.step);
  const int64_t total = std::max<int64_t>(0, part.per_step + Jitter(position.step + 1) - jitter);
  double done = 0;
  if (part.sum > 0) {
    const unsigned p = position.phase;
    const int64_t busy_ns = std::min(position.in_phase_ns, part.active_ns[p]);
    done = part.before_phase[p];
    if (part.active_ns[p] > 0) {
      done +=
          part.active[p] * static_cast<double>(busy_ns) / static_cast<double>(part.active_ns[p]);
    }
    if (part.wait_ns[p] > 0 && position.in_phase_ns > busy_ns) {
      done += part.wait[p] * static_cast<double>(position.in_phase_ns - busy_ns) /
              static_cast<double>(part.wait_ns[p]);
    }
    done = std::clamp(done / part.sum, 0.0, 1.0);
  }
  const int64_t in_step = jitter + static_cast<int64_t>(std::floor(static_cast<double>(total) * done));
  return offset_ + part.before_segment +
         static_cast<uint64_t>(position.step - part.first_step) * static_cast<uint64_t>(part.per_step) +
         static_cast<uint64_t>(in_step);
}

}  // namespace profd::sim
