// The devices of this node as the driver reports them, read once, before channels run.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "base/status.h"
#include "driver/hal_library.h"
#include "driver/staggered.h"

namespace profd {

// One NPU. Other numbers the driver does not report are 0 (info.json prints them so); `counter_hz` and
// `aicore_mhz` then hold the chip's default.
struct HalDevice {
  uint32_t id = 0;           // logical: what HAL calls take
  uint32_t physical_id = 0;  // /dev/davinciN; the logical id where the driver does not report it
  int chip_id = -1;          // -1: not known
  std::string chip_name;           // "Ascend910B"; "chip 77" for an unknown one
  std::vector<uint32_t> channels;  // sorted, valid and unique ids of prof_drv_get_channels
  double counter_hz = 0;           // system counter
  int64_t aicore_mhz = 0;          // rated

  // For info.json's DeviceInfo (driver-abi 1.5, 5.4).
  int64_t env_type = 0;
  int64_t ts_cpu_core_num = 0;
  int64_t aicpu_occupy_bitmap = 0;
  int64_t ai_core_num = 0;
  int64_t aiv_num = 0;
  int64_t aiv_mhz = 0;
  std::vector<int> ctrl_cpus;  // ids, from 0
  std::vector<int> ai_cpus;    // the bits of aicpu_occupy_bitmap, else a guess by count

  // What channel 133, or channel 52 on some chips, can measure (1.5, 3.3), and the driver's names: "mpam_<id>" where it
  // does not report them.
  std::vector<uint8_t> qos_streams;
  std::vector<std::string> qos_names;

  // Ok, or why nothing should be started on it (kUnavailable: communication lost; kUnimplemented:
  // no channels; ...). The facts above are filled as far as they could be had.
  Status usable;
};

struct HalInventory {
  std::vector<HalDevice> devices;  // in the driver's order
  int api_version = 0;
  int64_t host_osc_khz = 0;  // frequency of Clock::CpuCounter; 0 = not reported by the driver
  bool threads_left = false;  // in calls for a device that have not returned
  Status status;              // why `devices` is empty, if that is an error
};

// A device is asked once, when profd starts: one that is slow to answer is waited for longer.
inline constexpr StaggerPace kDiscoveryPace{.patience = std::chrono::seconds(5)};

// Makes many driver calls: call it from a thread that may be left behind. A device that hangs costs
// the others little time; what it would have answered is not waited for.
HalInventory DiscoverDevices(const std::shared_ptr<const HalLibrary>& hal,
                             const StaggerPace& pace = kDiscoveryPace);

}  // namespace profd
