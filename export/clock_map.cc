#include "export/clock_map.h"

namespace profd::exporting {

// Doubles and their order of operations as the vendor's analyser has them (dump-format 1.7).
ClockMap::ClockMap(const ClockFacts& facts) : facts_(facts) {}

int64_t ClockMap::HostNs(int64_t host_monotonic_raw_ns) const {
  return host_monotonic_raw_ns - facts_.begin_raw_ns + facts_.begin_us * 1000;
}

int64_t ClockMap::DeviceNs(int64_t device_monotonic_ns) const {
  return HostNs(device_monotonic_ns - facts_.device_ns + facts_.host_ns);
}

int64_t ClockMap::DeviceMicros(int64_t micros_since_start) const {
  return static_cast<int64_t>(
      static_cast<double>(HostNs(micros_since_start * 1000 + facts_.host_ns)));
}

int64_t ClockMap::DeviceCounter(uint64_t cycles) const {
  if (facts_.device_hz <= 0) return HostNs(facts_.host_ns);
  auto since = static_cast<long double>(static_cast<int64_t>(cycles - facts_.device_count));
  return HostNs(facts_.host_ns + static_cast<int64_t>(since * 1e9L / facts_.device_hz));
}

int64_t ClockMap::HostCounter(uint64_t cycles) const {
  if (facts_.host_hz <= 0) return HostNs(static_cast<int64_t>(cycles));
  auto since = static_cast<long double>(static_cast<int64_t>(cycles - facts_.host_count));
  return HostNs(facts_.host_ns + static_cast<int64_t>(since * 1e9L / facts_.host_hz));
}

}  // namespace profd::exporting
