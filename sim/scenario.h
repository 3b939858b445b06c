// What to simulate: chip, devices, training loop, faults. Reference table: sim/README.md.
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "base/status.h"

namespace profd::sim {

enum Phase : unsigned { kForward, kBackward, kAllReduce, kUpdate, kDataWait, kPhases };

enum class FaultKind : uint8_t {
  kThrottle,
  kSlowHccs,
  kRoceRetrans,
  kEcc,
  kCardDrop,
  kChannelBusy,
  kStartError,
  kShortRead,
  kGarbage,
  kPollError,
  kStopHang,
  kDcmiError,
  kLinkDown,
  kOptical,
  kHccnTool,
};

// In the order of their words in a scenario (scenario.cc).
enum class DropMode : uint8_t { kMissing, kHang, kDcmiHang };
enum class GarbageMode : uint8_t { kFlip, kJunk };
enum class OpticalMode : uint8_t { kMissing, kLowPower };
enum class ToolMode : uint8_t { kHang, kGarbage, kFlood, kExit };

inline constexpr int64_t kForever = INT64_MAX;
inline constexpr int kAllDevices = -1;
inline constexpr unsigned kAllChannels = 0;
inline constexpr int kAllLanes = -1;

struct Fault {
  FaultKind kind;
  int64_t begin_ns = 0;  // scenario time
  int64_t end_ns = kForever;
  int device = kAllDevices;
  unsigned channel = kAllChannels;
  int code = 0;          // start_error, poll_error, dcmi_error, hccn_tool
  unsigned mhz = 0;      // throttle
  uint32_t cause = 0;    // throttle: bits of LP sub 9
  unsigned link = 0;     // slow_hccs
  double factor = 1;     // slow_hccs, optical
  double rate = 0;       // roce_retrans, per second
  uint32_t single = 0;   // ecc
  uint32_t double_ = 0;  // ecc
  unsigned bytes = 0;    // short_read
  unsigned every = 0;    // garbage: each how many sampling instants
  DropMode drop = DropMode::kMissing;
  GarbageMode garbage = GarbageMode::kFlip;
  OpticalMode optical = OpticalMode::kMissing;
  int lane = kAllLanes;  // optical
  int64_t flap_ns = 0;   // link_down; 0: down all the time
  ToolMode tool = ToolMode::kHang;

  bool Covers(int64_t t_ns) const { return t_ns >= begin_ns && t_ns < end_ns; }
  bool Concerns(int dev) const { return device == kAllDevices || device == dev; }
};

struct SimProcess {
  int pid;
  int device;
  uint64_t memory_bytes;
};

// A virtual NPU, for dcmi_get_device_info(VDEV_MNG).
struct SimVnpu {
  uint32_t id;
  int device;
  double share;  // of the device's AI Cores
  uint64_t memory_bytes;
};

struct Scenario {
  std::string chip = "910B";
  int devices = 8;
  uint64_t seed = 1;
  int64_t time_scale = 1;  // how many times as fast as the host's the device side's time runs
  // Nominal length of each phase of one training step.
  std::array<int64_t, kPhases> phase_ns = {150'000'000, 300'000'000, 90'000'000, 40'000'000,
                                           20'000'000};
  std::vector<SimProcess> processes;
  std::string processes_file;  // lines "pid [device]", read anew at every query
  std::vector<SimVnpu> vnpus;
  std::vector<Fault> faults;
};

inline constexpr int kOpticalLanes = 4;
inline constexpr int kMaxSimDevices = 64;  // DEV_NUM, driver-abi 1.6
inline constexpr size_t kMaxFaults = 64;
inline constexpr int64_t kMaxTimeScale = 1000;
inline constexpr std::string_view kScenarioEnv = "PROFD_SIM_SCENARIO";
inline constexpr std::string_view kTimeScaleEnv = "PROFD_SIM_TIME_SCALE";  // before the scenario's

// All errors carry the place in the text ("line 7: ...").
Result<Scenario> ParseScenario(std::string_view toml_text);
Result<Scenario> LoadScenario(const std::string& path);
// What the environment requests; the built-in default if nothing.
Result<Scenario> ScenarioFromEnvironment();

}  // namespace profd::sim
