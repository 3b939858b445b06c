// The simulated node as both libraries see it: scenario, timeline, faults, devices with their
// clocks, and where the host is in scenario time. Immutable; the clock is the only thing that
// moves.
#pragma once

#include <memory>
#include <vector>

#include "base/clock.h"
#include "base/status.h"
#include "sim/device_clock.h"
#include "sim/device_model.h"
#include "sim/fault_table.h"
#include "sim/played_time.h"
#include "sim/scenario.h"
#include "sim/timeline.h"

namespace profd::sim {

class Node {
 public:
  // `clock` must outlive the node. `epoch_raw_ns` is scenario time 0 on CLOCK_MONOTONIC_RAW. From
  // then on time is the scenario's: time_scale times as fast.
  Node(Scenario scenario, const Clock& clock, int64_t epoch_raw_ns);
  Node(const Node&) = delete;
  Node& operator=(const Node&) = delete;

  // Played time, as everything here that is called raw.
  int64_t RawNow() const { return played_.FromReal(clock_.MonotonicRawNs()); }
  int64_t ScenarioNow() const { return RawNow() - played_.epoch_ns(); }
  int64_t ToScenario(int64_t raw_ns) const { return raw_ns - played_.epoch_ns(); }
  const PlayedTime& played() const { return played_; }
  // Of the host: nothing of it is played.
  const Clock& clock() const { return clock_; }

  bool HasDevice(int64_t device) const { return device >= 0 && device < scenario_.devices; }
  int devices() const { return scenario_.devices; }
  const DeviceModel& model(unsigned device) const { return *models_[device]; }
  const DeviceClock& device_clock(unsigned device) const { return clocks_[device]; }
  const Scenario& scenario() const { return scenario_; }
  const ChipSpec& chip() const { return chip_; }
  const FaultTable& faults() const { return faults_; }

 private:
  Scenario scenario_;
  const ChipSpec& chip_;
  const Clock& clock_;
  PlayedTime played_;
  Timeline timeline_;
  FaultTable faults_;
  std::vector<std::unique_ptr<DeviceModel>> models_;
  std::vector<DeviceClock> clocks_;
};

// Scenario time 0 of this process on CLOCK_MONOTONIC_RAW: its start time as the kernel keeps it, so
// that both libraries agree without talking (to the slew between CLOCK_BOOTTIME and
// CLOCK_MONOTONIC_RAW in between, nanoseconds).
int64_t ProcessStartRawNs();
// The same of another process; now if there is none.
int64_t ProcessStartRawNs(int pid);

// Scenario time 0 as the variable has it (CLOCK_MONOTONIC_RAW, ns), so that processes that have it
// agree; `otherwise` without it.
inline constexpr char kEpochEnv[] = "PROFD_SIM_EPOCH";
Result<int64_t> EpochFromEnvironment(int64_t otherwise);

// The node this process requested through the environment, or the built-in default. nullptr, after
// one line on stderr, when the scenario cannot be used. `library` is named in that line.
// Node::clock is a clock that lives as long as the process.
std::unique_ptr<Node> NodeFromEnvironment(const char* library);

}  // namespace profd::sim
