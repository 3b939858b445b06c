// The clocks of this host, injectable. Nothing else in the project reads a clock.
#pragma once

#include <atomic>
#include <cstdint>

namespace profd {

class Clock {
 public:
  virtual ~Clock() = default;
  // CLOCK_MONOTONIC_RAW, ns: the clock all samples and dumps are timestamped with (not slewed by NTP).
  virtual int64_t MonotonicRawNs() const = 0;
  // CLOCK_MONOTONIC, ns: what timers and deadlines run on.
  virtual int64_t SteadyNs() const = 0;
  // CLOCK_REALTIME, ns since the epoch.
  virtual int64_t WallNs() const = 0;
  // The CPU's free-running counter: cntvct_el0 on aarch64, the TSC on x86-64. Cycles, unit unknown.
  virtual uint64_t CpuCounter() const = 0;
};

class SystemClock final : public Clock {
 public:
  int64_t MonotonicRawNs() const override;
  int64_t SteadyNs() const override;
  int64_t WallNs() const override;
  uint64_t CpuCounter() const override;
};

// Moves only when a test moves it. Thread-safe, but the clocks move one after the other.
class ManualClock final : public Clock {
 public:
  int64_t MonotonicRawNs() const override { return raw_ns; }
  int64_t SteadyNs() const override { return steady_ns; }
  int64_t WallNs() const override { return wall_ns; }
  uint64_t CpuCounter() const override { return counter; }
  // Moves every clock on by `ns`; the counter runs at 100 MHz.
  void Advance(int64_t ns) {
    raw_ns += ns;
    steady_ns += ns;
    wall_ns += ns;
    counter += static_cast<uint64_t>(ns / 10);
  }

  std::atomic<int64_t> raw_ns = 1'000'000'000;
  std::atomic<int64_t> steady_ns = 1'000'000'000;
  std::atomic<int64_t> wall_ns = 1'767'225'600'000'000'000;
  std::atomic<uint64_t> counter = 100'000'000;
};

inline constexpr int64_t kNsPerMs = 1'000'000;
inline constexpr int64_t kNsPerSecond = 1'000'000'000;

}  // namespace profd
