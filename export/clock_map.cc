#include "export/clock_map.h"

#include "export/number_text.h"

namespace profd::exporting {

// Doubles and their order of operations as the vendor's analyser has them (dump-format 1.7).
ClockMap::ClockMap(const ClockFacts& facts) : facts_(facts) {
  device_mhz_ = facts.device_hz / 1e6;
  host_mhz_ = facts.host_hz / 1e6;
  host_ns_ = facts.host_ns;
  if (host_mhz_ > 0 && facts.host_count_diff > 0) {
    double diff = static_cast<double>(facts.host_count_diff) * 1000 / host_mhz_;
    if (diff < 9e18) {
      host_ns_ =
          static_cast<int64_t>(static_cast<uint64_t>(facts.host_ns) + static_cast<uint64_t>(diff));
    }
  }
  delta_ns_ =
      (static_cast<double>(host_ns_) / 1e9 - static_cast<double>(facts.device_ns) / 1e9) * 1e9;
  offset_ns_ =
      (static_cast<double>(facts.begin_us) - static_cast<double>(facts.begin_raw_ns) / 1000) * 1000;
  offset_exact_ns_ = Plus(Times(facts.begin_us, 1000), -facts.begin_raw_ns);
}

int64_t ClockMap::HostNs(int64_t host_monotonic_raw_ns) const {
  return Plus(host_monotonic_raw_ns, offset_exact_ns_);
}

int64_t ClockMap::DeviceNs(int64_t device_monotonic_ns) const {
  return HostNs(Plus(device_monotonic_ns, Plus(host_ns_, -facts_.device_ns)));
}

int64_t ClockMap::DeviceMicros(int64_t micros_since_start) const {
  auto device = static_cast<double>(Plus(Times(micros_since_start, 1000), facts_.device_ns));
  double t_ns = device + delta_ns_ + offset_ns_;
  if (!(t_ns > -9.2e18 && t_ns < 9.2e18)) return 0;
  return static_cast<int64_t>(t_ns);
}

// The analyser divides in double, takes the microseconds with six decimals, and cuts the sum to ns.
int64_t ClockMap::Counter(uint64_t cycles, uint64_t start, double mhz) const {
  bool after = cycles >= start;
  double micros = static_cast<double>(after ? cycles - start : start - cycles) / mhz;
  if (!(micros < 9e12)) return HostNs(host_ns_);
  int64_t picos = RoundScaled(micros, 1e6);  // thousandths of a ns
  int64_t ns = after ? picos / 1000 : -((picos + 999) / 1000);
  return HostNs(Plus(host_ns_, ns));
}

int64_t ClockMap::DeviceCounter(uint64_t cycles) const {
  if (!(device_mhz_ > 0)) return HostNs(host_ns_);
  return Counter(cycles, facts_.device_count, device_mhz_);
}

int64_t ClockMap::HostCounter(uint64_t cycles) const {
  if (!(host_mhz_ > 0)) return HostNs(static_cast<int64_t>(cycles));
  return Counter(cycles, facts_.host_count, host_mhz_);
}

}  // namespace profd::exporting
