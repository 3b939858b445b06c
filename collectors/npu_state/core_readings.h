// Compute, memory and power of one NPU, as far as it takes more than a row (row_readings.h).
#pragma once

#include "collectors/metric_table.h"
#include "collectors/npu_state/device_pass.h"
#include "collectors/npu_state/npu_state.h"
#include "collectors/npu_state/row_readings.h"

namespace profd {

class CoreReadings {
 public:
  explicit CoreReadings(SlotOwner& owner) : cores_(owner), throttle_(owner), vnpus_(owner) {}
  // `rows` have been read.
  void Fast(DevicePass& pass, const RowReadings& rows);
  void Medium(DevicePass& pass, const NpuStateOptions& options);

 private:
  struct Ecc {
    explicit Ecc(std::string_view memory);
    SeriesSlot enabled;
    std::array<SeriesSlot, 2> total;  // single, double
    std::array<SeriesSlot, 2> current;
    std::array<SeriesSlot, 2> isolated;
    std::array<SeriesSlot, 2> next;
  };

  void ReadEcc(DevicePass& pass, DcmiCall call, Ecc& ecc);
  void ReadCores(DevicePass& pass, const NpuStateOptions& options);
  void ReadThrottle(DevicePass& pass);
  void ReadVirtualNpus(DevicePass& pass);

  SeriesSlot energy_{MetricByName("atlas_npu_energy_joules_total")};
  Ecc ecc_hbm_{"hbm"};
  Ecc ecc_ddr_{"ddr"};
  SeriesSlot profiling_{MetricByName("atlas_npu_profiling_active")};
  ComingAndGoing<int> cores_;                          // core, vector cores from 1000 on
  ComingAndGoing<int> throttle_;                       // bit
  ComingAndGoing<std::pair<uint32_t, size_t>> vnpus_;  // id, one of its values
};

}  // namespace profd
