#include "driver/device_clock.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <limits>
#include <optional>
#include <string>

namespace profd {
namespace {

constexpr int kWarmUps = 5;
constexpr int kRounds = 5;

// Far more than any oscillator drifts, far less than a clock that began anew is off.
constexpr int64_t kMostJumpNs = 10 * kNsPerMs;
constexpr int64_t kMostDriftPart = 1000;

struct DeviceTime {
  std::optional<int64_t> ns;
  uint64_t count = 0;
};

// What a driver does not support stays out (driver-abi 1.5); without both nothing can be correlated.
Status ReadDevice(const HalLibrary& hal, uint32_t device, DeviceTime* time) {
  const std::string clock = fmt::format("clock of device {}", device);
  int64_t ns = 0;
  const int clock_code = hal.GetDeviceInfo(device, abi::kModuleSystem, abi::kInfoMonotonicRaw, &ns);
  const bool has_clock = clock_code != abi::kDrvErrorNotSupport;
  if (has_clock) RETURN_IF_ERROR(StatusOfDrvCode(clock_code, clock));
  int64_t count = 0;
  const int count_code = hal.GetDeviceInfo(device, abi::kModuleSystem, abi::kInfoSysCount, &count);
  if (count_code != abi::kDrvErrorNotSupport) {
    RETURN_IF_ERROR(StatusOfDrvCode(count_code, fmt::format("counter of device {}", device)));
  } else if (has_clock) {
    count = 0;
  } else {
    return StatusOfDrvCode(clock_code, clock);
  }
  time->ns = has_clock ? std::optional(ns) : std::nullopt;
  time->count = static_cast<uint64_t>(count);
  return Status::Ok();
}

uint64_t Middle(uint64_t a, uint64_t b) { return a + (b - a) / 2; }

}  // namespace

Result<ClockPair> CorrelateDeviceClock(const HalLibrary& hal, uint32_t device, const Clock& clock) {
  DeviceTime time;
  for (int i = 0; i < kWarmUps; ++i) RETURN_IF_ERROR(ReadDevice(hal, device, &time));
  ClockPair best;
  uint64_t best_bracket = std::numeric_limits<uint64_t>::max();
  for (int round = 0; round < kRounds; ++round) {
    uint64_t t1 = clock.CpuCounter();
    int64_t m1 = clock.MonotonicRawNs();
    uint64_t t2 = clock.CpuCounter();
    RETURN_IF_ERROR(ReadDevice(hal, device, &time));
    uint64_t t3 = clock.CpuCounter();
    int64_t m2 = clock.MonotonicRawNs();
    uint64_t t4 = clock.CpuCounter();
    if (t3 - t2 >= best_bracket) continue;
    best_bracket = t3 - t2;
    const int64_t host_ns = m1 + (m2 - m1) / 2;
    best = {host_ns, time.ns.value_or(host_ns), time.count, Middle(Middle(t1, t2), Middle(t3, t4)),
            (m2 - m1 + 1) / 2};
  }
  return best;
}

int64_t DriftedStart(int64_t start_ns, const ClockPair& before, const ClockPair& now) {
  const int64_t host_ns = now.host_ns - before.host_ns;
  const int64_t since_ns = now.host_ns - std::max(start_ns, before.host_ns);
  if (since_ns <= 0) return start_ns;
  const int64_t drift_ns = host_ns - (now.device_ns - before.device_ns);
  if (std::abs(drift_ns) > kMostJumpNs + host_ns / kMostDriftPart) return start_ns;
  const double share = static_cast<double>(since_ns) / static_cast<double>(host_ns);
  return start_ns + std::llround(static_cast<double>(drift_ns) * share);
}

ClockPair CorrelateHostClock(const Clock& clock) {
  uint64_t t1 = clock.CpuCounter();
  int64_t host_ns = clock.MonotonicRawNs();
  uint64_t t2 = clock.CpuCounter();
  return {.host_ns = host_ns, .host_count = Middle(t1, t2)};
}

}  // namespace profd
