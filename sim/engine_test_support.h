// A HAL engine on a clock that a test moves.
#pragma once

#include <string>

#include "sim/hal_engine.h"
#include "sim/test_support.h"

namespace profd::sim {

inline constexpr int64_t kMs = kNsPerMs;

class Engine {
 public:
  explicit Engine(const std::string& toml = "")
      : node(ParseScenario(toml).value(), clock, /*epoch_raw_ns=*/0), engine(node) {}
  int Start(unsigned device, unsigned channel, uint32_t period_ms) {
    StartPara para(channel, period_ms);
    return engine.Start(device, channel, para.get());
  }
  std::string ReadAll(unsigned device, unsigned channel, unsigned piece = 4096) {
    std::string all;
    std::string buffer(piece, '\0');
    for (int n; (n = engine.Read(device, channel, buffer.data(), piece)) > 0;) {
      EXPECT_LE(n, static_cast<int>(piece));
      all.append(buffer, 0, static_cast<size_t>(n));
    }
    return all;
  }
  int64_t DeviceNow(unsigned device) {
    return node.device_clock(device).FromHost(clock.MonotonicRawNs());
  }
  int64_t ScenarioAt(unsigned device, int64_t device_ns) {
    return node.ToScenario(node.device_clock(device).ToHost(device_ns));
  }
  // Moves the device's clock on by `ms`; the host's drifts against it, so go a hair further.
  void AdvanceMs(int64_t ms) { clock.Advance(ms * kMs + 5 * kMs / 1000 * ms / 1000 + 100); }

  ManualClock clock;
  Node node;
  HalEngine engine;
};

}  // namespace profd::sim
