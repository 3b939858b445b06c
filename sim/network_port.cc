#include "sim/network_port.h"

#include <algorithm>
#include <cmath>

#include "sim/noise.h"

namespace profd::sim {
namespace {

constexpr double kSecondNs = 1e9;

bool TakesLinkDown(const Fault& fault) {
  return fault.kind == FaultKind::kLinkDown ||
         (fault.kind == FaultKind::kOptical && fault.optical == OpticalMode::kMissing);
}

// A flapping link is down in the first half of each period.
bool IsDown(const Fault& fault, int64_t t_ns) {
  if (!fault.Covers(t_ns)) return false;
  return fault.flap_ns == 0 || (t_ns - fault.begin_ns) % fault.flap_ns < fault.flap_ns / 2;
}

// Times the link went up again because of this fault.
uint64_t UpsOf(const Fault& fault, int64_t t_ns) {
  if (t_ns < fault.begin_ns) return 0;
  // Up again in its middle; an end of the fault that falls there is the end's.
  const int64_t last = std::min(t_ns, fault.end_ns - 1) - fault.begin_ns;
  const int64_t flap = fault.flap_ns;
  const uint64_t ups = flap == 0 ? 0 : static_cast<uint64_t>((last + flap / 2) / flap);
  // The end of the fault lifts a link that is down.
  const bool was_down = IsDown(fault, fault.end_ns - 1);
  return ups + (t_ns >= fault.end_ns && was_down ? 1 : 0);
}

}  // namespace

bool NetworkPort::LinkUp(int64_t t_ns) const {
  return std::ranges::none_of(scenario_.faults, [&](const Fault& fault) {
    return TakesLinkDown(fault) && fault.Concerns(device_) && IsDown(fault, t_ns);
  });
}

uint64_t NetworkPort::LinkUps(int64_t t_ns) const {
  uint64_t ups = 1;
  for (const Fault& fault : scenario_.faults) {
    if (TakesLinkDown(fault) && fault.Concerns(device_)) ups += UpsOf(fault, t_ns);
  }
  return ups;
}

std::optional<OpticalValues> NetworkPort::Optics(int64_t t_ns) const {
  const auto noise = [&](uint64_t what, uint64_t index) {
    return Signed(Hash(scenario_.seed, kNoiseOptics + what, static_cast<uint64_t>(device_), index));
  };
  OpticalValues values;
  // Warms up and cools down with the hall, over ten minutes.
  const double wave = std::sin(static_cast<double>(t_ns) / kSecondNs / 600 * 2 * M_PI);
  values.celsius = std::round(46 + 3 * noise(0, 0) + wave);
  values.millivolts = 3300 + 20 * noise(1, 0);
  for (size_t lane = 0; lane < values.tx_milliwatts.size(); ++lane) {
    values.tx_milliwatts[lane] = 1.0 + 0.1 * noise(2, lane);
    values.rx_milliwatts[lane] = 0.8 + 0.1 * noise(3, lane);
  }
  for (const Fault& fault : scenario_.faults) {
    if (fault.kind != FaultKind::kOptical || !fault.Concerns(device_) || !fault.Covers(t_ns)) {
      continue;
    }
    if (fault.optical == OpticalMode::kMissing) return std::nullopt;
    for (int lane = 0; lane < kOpticalLanes; ++lane) {
      if (fault.lane != kAllLanes && fault.lane != lane) continue;
      values.rx_milliwatts[static_cast<size_t>(lane)] *= fault.factor;
    }
  }
  return values;
}

}  // namespace profd::sim
