// Compute, memory, power and temperature of one NPU.
#pragma once

#include "collectors/metric_table.h"
#include "collectors/npu_state/device_pass.h"
#include "collectors/npu_state/npu_state.h"

namespace profd {

class CoreReadings {
 public:
  explicit CoreReadings(SlotOwner& owner) : cores_(owner), throttle_(owner), vnpus_(owner) {}
  void Fast(DevicePass& pass);
  void Medium(DevicePass& pass, const NpuStateOptions& options);
  void Slow(DevicePass& pass);

 private:
  struct Ecc {
    explicit Ecc(std::string_view memory);
    SeriesSlot enabled;
    std::array<SeriesSlot, 2> total;  // single, double
    std::array<SeriesSlot, 2> current;
    std::array<SeriesSlot, 2> isolated;
    std::array<SeriesSlot, 2> next;
  };

  void ReadUtilization(DevicePass& pass);
  void ReadHbm(DevicePass& pass);
  void ReadEcc(DevicePass& pass, DcmiCall call, Ecc& ecc);
  void ReadTemperatures(DevicePass& pass);
  void ReadClocks(DevicePass& pass);
  void ReadDdr(DevicePass& pass);
  void ReadCaches(DevicePass& pass);
  void ReadEngines(DevicePass& pass);
  void ReadCores(DevicePass& pass, const NpuStateOptions& options);
  void ReadThrottle(DevicePass& pass);
  void ReadVirtualNpus(DevicePass& pass);

  static constexpr MetricId kUtil = MetricByName("atlas_npu_utilization_ratio");
  static constexpr MetricId kHertz = MetricByName("atlas_npu_frequency_hertz");
  static constexpr MetricId kRated = MetricByName("atlas_npu_frequency_rated_hertz");
  static constexpr MetricId kCelsius = MetricByName("atlas_npu_temperature_celsius");
  static constexpr MetricId kDvpp = MetricByName("atlas_npu_dvpp_utilization_ratio");
  static constexpr MetricId kThreshold = MetricByName("atlas_npu_temperature_threshold_celsius");

  SeriesSlot util_aicore_{kUtil, "aicore"};
  SeriesSlot util_vector_{kUtil, "vector"};
  SeriesSlot util_cube_{kUtil, "cube"};
  SeriesSlot util_aicpu_{kUtil, "aicpu"};
  SeriesSlot util_ctrlcpu_{kUtil, "ctrlcpu"};
  SeriesSlot util_npu_{kUtil, "npu"};
  SeriesSlot power_{MetricByName("atlas_npu_power_watts"), "chip"};
  SeriesSlot board_power_{MetricByName("atlas_npu_power_watts"), "board"};
  SeriesSlot energy_{MetricByName("atlas_npu_energy_joules_total")};
  SeriesSlot rated_power_{MetricByName("atlas_npu_power_rated_watts")};
  SeriesSlot voltage_{MetricByName("atlas_npu_voltage_volts"), "chip"};
  SeriesSlot hz_aicore_{kHertz, "aicore"};
  SeriesSlot hz_vector_{kHertz, "vector"};
  SeriesSlot hz_hbm_{kHertz, "hbm"};
  SeriesSlot hz_ddr_{kHertz, "ddr"};
  SeriesSlot hz_ctrlcpu_{kHertz, "ctrlcpu"};
  SeriesSlot hz_aicpu_{kHertz, "aicpu"};
  SeriesSlot rated_aicore_{kRated, "aicore"};
  SeriesSlot rated_aicpu_{kRated, "aicpu"};
  SeriesSlot hbm_size_{MetricByName("atlas_npu_hbm_size_bytes")};
  SeriesSlot hbm_used_{MetricByName("atlas_npu_hbm_used_bytes")};
  SeriesSlot hbm_util_{MetricByName("atlas_npu_hbm_utilization_ratio")};
  SeriesSlot hbm_bandwidth_{MetricByName("atlas_npu_hbm_bandwidth_utilization_ratio")};
  SeriesSlot ddr_size_{MetricByName("atlas_npu_ddr_size_bytes")};
  SeriesSlot ddr_used_{MetricByName("atlas_npu_ddr_used_bytes")};
  SeriesSlot ddr_util_{MetricByName("atlas_npu_ddr_utilization_ratio")};
  SeriesSlot os_limit_{MetricByName("atlas_npu_device_memory_limit_bytes")};
  SeriesSlot os_usage_{MetricByName("atlas_npu_device_memory_usage_bytes")};
  SeriesSlot os_max_usage_{MetricByName("atlas_npu_device_memory_max_usage_bytes")};
  Ecc ecc_hbm_{"hbm"};
  Ecc ecc_ddr_{"ddr"};
  SeriesSlot temp_chip_{kCelsius, "chip"};
  SeriesSlot temp_hbm_{kCelsius, "hbm"};
  SeriesSlot temp_cluster_{kCelsius, "cluster"};
  SeriesSlot temp_soc_{kCelsius, "soc"};
  SeriesSlot temp_ndie_{kCelsius, "ndie"};
  SeriesSlot temp_cage_{kCelsius, "optical_cage"};
  std::array<SeriesSlot, 4> temp_ntc_{SeriesSlot{kCelsius, "ntc0"}, SeriesSlot{kCelsius, "ntc1"},
                                      SeriesSlot{kCelsius, "ntc2"}, SeriesSlot{kCelsius, "ntc3"}};
  std::array<SeriesSlot, 2> threshold_{SeriesSlot{kThreshold, "0"}, SeriesSlot{kThreshold, "1"}};
  SeriesSlot llc_read_{MetricByName("atlas_npu_llc_hit_ratio"), "read"};
  SeriesSlot llc_write_{MetricByName("atlas_npu_llc_hit_ratio"), "write"};
  SeriesSlot llc_throughput_{MetricByName("atlas_npu_llc_throughput_bytes_per_second")};
  SeriesSlot dvpp_vdec_{kDvpp, "vdec"};
  SeriesSlot dvpp_vpc_{kDvpp, "vpc"};
  SeriesSlot dvpp_venc_{kDvpp, "venc"};
  SeriesSlot dvpp_jpege_{kDvpp, "jpege"};
  SeriesSlot dvpp_jpegd_{kDvpp, "jpegd"};
  SeriesSlot profiling_{MetricByName("atlas_npu_profiling_active")};
  ComingAndGoing<int> cores_;                          // core, vector cores from 1000 on
  ComingAndGoing<int> throttle_;                       // bit
  ComingAndGoing<std::pair<uint32_t, size_t>> vnpus_;  // id, one of its values
};

}  // namespace profd
