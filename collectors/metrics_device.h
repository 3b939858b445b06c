// What is measured on the NPUs, but for their network (metrics_network.h); see metric_table.h. Fed by
// npu_state from libdcmi ("DCMI" in `source`) and, for the names that say "channel" there, by the
// channel collectors while they run. Names and units: dcmi-and-metrics section 7; numbers behind DCMI
// are the rows of its table 1.3. Behind the metrics: from which answers their series are read.
#pragma once

#include <array>

#include "collectors/device_reading.h"
#include "collectors/metric_spec.h"

namespace profd {

inline constexpr auto kDeviceMetrics = [] {
  using enum MetricType;
  using enum MetricScope;
  return std::to_array<MetricSpec>({
      // ---- identity, state, faults (7.1) ----
      {"atlas_driver_info", kGauge, kNode, "driver_version,dcmi_version,api", "",
       "Always 1; the labels name the driver and the generation of its management library",
       "DCMI get_driver_version, get_dcmi_version"},
      {"atlas_driver_health_status", kGauge, kNode, "", "",
       "Health of the driver: 0 healthy, 1 to 3 the level of its worst alarm", "DCMI 43"},
      // Not atlas_npu_count: Prometheus keeps the suffix _count for histograms.
      {"atlas_npus", kGauge, kNode, "state", "",
       "NPUs of the node by state: present, healthy, unhealthy (alarm raised) or unknown (does not answer)",
       "DCMI enumeration, 1"},
      {"atlas_npu_info", kGauge, kDevice,
       "logic_id,card,chip,model,chip_name,chip_version,serial,pci_bus_id,board_id,firmware,numa_node", "",
       "Always 1; the labels hold what never changes about an NPU, for joins", "DCMI section 1.2"},
      {"atlas_npu_up", kGauge, kDevice, "", "",
       "1 if the NPU answers; stays at 0 for a card that dropped off the bus or hangs", "DCMI return codes"},
      {"atlas_npu_health_status", kGauge, kDevice, "", "",
       "Health of the NPU: 0 healthy, 1 to 3 the level of its worst alarm", "DCMI 1"},
      {"atlas_npu_boot_status", kGauge, kDevice, "", "",
       "Boot stage: 0 not initialised, 1 BIOS, 2 operating system, 3 or 16 finished", "DCMI get_device_boot_status"},
      {"atlas_npu_firmware_compatible", kGauge, kDevice, "", "",
       "1 if driver and firmware match, 0 if not; absent if the driver does not report it",
       "DCMI get_device_compatibility"},
      {"atlas_npu_verdict", kGauge, kDevice, "", "",
       "Whether the NPU is fit for work, judged from all sources: 0 ok, 1 degraded, 2 faulty, 3 down, 4 unknown; "
       "the node's health has the reason", "computed"},
      {"atlas_npu_fault_active", kGauge, kDevice, "code,severity,name", "",
       "Always 1; one series for each fault code the NPU reports right now, with the driver's name for it where it "
       "has one", "DCMI 2, 44"},
      {"atlas_npu_faults_active", kGauge, kDevice, "severity", "",
       "Faults the NPU reports right now, by severity; unknown are those of which it gives the code alone",
       "DCMI 2, 44"},
      {"atlas_npu_fault_events_total", kCounter, kDevice, "severity,assertion", "",
       "Faults that began (assertion raised), ended (recovered) or were reported once (one_off) since the daemon "
       "started, seen in the lists of current faults; one shorter than 10 s can be missed", "DCMI 2, 44, counted"},
      {"atlas_npu_network_health", kGauge, kDevice, "", "",
       "1 if the check of the NPU's own network port passed or has not begun", "DCMI 26"},
      {"atlas_npu_network_health_code", kGauge, kDevice, "", "",
       "Result of the network check: 0 ok, 1 socket, 2 receive timeout, 3 unreachable, 4 time exceeded, 5 fault, 6 "
       "initial, 7 thread, 8 address being set", "DCMI 26"},

      // ---- compute (7.2) ----
      {"atlas_npu_utilization_ratio", kGauge, kDevice, "unit", "ratio",
       "Share of time a unit was busy; aicore, vector and cube read 0 while a profiler of the vendor runs (see "
       "atlas_npu_profiling_active)", "DCMI 10, 11"},
      {"atlas_npu_core_utilization_ratio", kGauge, kDevice, "core,kind", "ratio",
       "Share of time a single core was busy; off by default", "DCMI 37"},
      {"atlas_npu_profiling_active", kGauge, kDevice, "", "",
       "1 while task profiling runs on the NPU, which makes its utilisation read 0", "DCMI 37"},
      {"atlas_npu_frequency_hertz", kGauge, kDevice, "domain", "hertz",
       "Current clock of a domain", "DCMI 7, 8, 9, 12; channel 132"},
      {"atlas_npu_frequency_rated_hertz", kGauge, kDevice, "domain", "hertz",
       "Rated clock of a domain", "DCMI 7 type 9, 8, 9"},
      {"atlas_npu_throttle_reason", kGauge, kDevice, "reason", "",
       "1 while the AI Core clock is lowered for the reason; reasons are the bits of the driver's word, which the "
       "vendor does not name", "DCMI 38 sub 9"},

      // ---- memory (7.2) ----
      {"atlas_npu_hbm_size_bytes", kGauge, kDevice, "", "bytes", "On-package memory of the NPU", "DCMI 12"},
      {"atlas_npu_hbm_used_bytes", kGauge, kDevice, "", "bytes", "On-package memory in use", "DCMI 12"},
      {"atlas_npu_hbm_utilization_ratio", kGauge, kDevice, "", "ratio",
       "Share of the on-package memory in use, as the driver computes it", "DCMI 10 type 6"},
      {"atlas_npu_hbm_bandwidth_utilization_ratio", kGauge, kDevice, "", "ratio",
       "Share of the on-package memory's bandwidth in use", "DCMI 10 type 10, 12"},
      {"atlas_npu_ddr_size_bytes", kGauge, kDevice, "", "bytes",
       "DDR memory of the NPU (chips with DDR only)", "DCMI 13"},
      {"atlas_npu_ddr_used_bytes", kGauge, kDevice, "", "bytes",
       "DDR memory in use (chips with DDR only)", "DCMI 13"},
      {"atlas_npu_ddr_utilization_ratio", kGauge, kDevice, "", "ratio",
       "Share of the DDR memory in use, as the driver computes it (chips with DDR only)", "DCMI 13"},
      {"atlas_npu_device_memory_limit_bytes", kGauge, kDevice, "", "bytes",
       "Memory limit of the operating system on the NPU", "DCMI 14"},
      {"atlas_npu_device_memory_usage_bytes", kGauge, kDevice, "", "bytes",
       "Memory used by the operating system on the NPU", "DCMI 14"},
      {"atlas_npu_device_memory_max_usage_bytes", kGauge, kDevice, "", "bytes",
       "Most memory the operating system on the NPU ever used", "DCMI 14"},
      {"atlas_npu_ecc_enabled", kGauge, kDevice, "memory", "", "1 if the memory's error correction is on", "DCMI 15"},
      {"atlas_npu_ecc_errors_total", kCounter, kDevice, "memory,type", "",
       "Bit errors over the life of the memory; an administrator can clear it", "DCMI 15"},
      {"atlas_npu_ecc_errors_current", kGauge, kDevice, "memory,type", "",
       "Bit errors since the NPU started", "DCMI 15"},
      {"atlas_npu_ecc_isolated_pages", kGauge, kDevice, "memory,type,state", "",
       "Pages taken out of use because of bit errors (state active), or to be taken out at the next start (state "
       "next)", "DCMI 15"},
      {"atlas_npu_llc_hit_ratio", kGauge, kDevice, "op", "ratio",
       "Share of last-level cache accesses that hit", "DCMI 35; channel llc"},
      {"atlas_npu_llc_throughput_bytes_per_second", kGauge, kDevice, "", "bytes per second",
       "Traffic through the last-level cache", "DCMI 35; channel llc"},
      {"atlas_npu_processes", kGauge, kDevice, "", "", "Processes that hold memory of the NPU", "DCMI 39"},
      {"atlas_npu_process_memory_bytes", kGauge, kDevice, "pid,job,container", "bytes",
       "Memory of the NPU a process holds; at most 32 processes for each NPU", "DCMI 39"},
      {"atlas_npu_vnpu_utilization_ratio", kGauge, kDevice, "vnpu", "ratio",
       "Share of time the AI Cores of a virtual NPU were busy (NPUs that are split only)", "DCMI 42"},
      {"atlas_npu_vnpu_memory_bytes", kGauge, kDevice, "vnpu,kind", "bytes",
       "Memory of a virtual NPU, by kind (total, used; NPUs that are split only)", "DCMI 42"},

      // ---- temperature, power (7.2) ----
      {"atlas_npu_temperature_celsius", kGauge, kDevice, "sensor", "celsius",
       "Temperature at a sensor", "DCMI 4, 12, 40"},
      {"atlas_npu_temperature_threshold_celsius", kGauge, kDevice, "level", "celsius",
       "Temperature at which the NPU reacts, in the driver's order of levels", "DCMI 40 sensor 9"},
      {"atlas_npu_power_watts", kGauge, kDevice, "scope", "watts",
       "Electrical power drawn by the chip, or of the complete card where chips do not measure it (scope board)",
       "DCMI 5"},
      {"atlas_npu_power_rated_watts", kGauge, kDevice, "", "watts",
       "Electrical power the chip is rated for", "DCMI 38 sub 10"},
      {"atlas_npu_energy_joules_total", kCounter, kDevice, "", "joules",
       "Energy used since the daemon started: the integral of the power samples", "computed"},
      {"atlas_npu_voltage_volts", kGauge, kDevice, "rail", "volts",
       "Voltage of a supply rail", "DCMI 6; channel 132"},
      {"atlas_npu_dvpp_utilization_ratio", kGauge, kDevice, "engine", "ratio",
       "Share of time an image or video engine was busy", "DCMI 36; channel dvpp"},

      // ---- interconnect (7.3) ----
      {"atlas_npu_hccs_flits_total", kCounter, kDevice, "link,direction", "",
       "Flits of 20 bytes over an HCCS link; tx is what the NPU sent; absent where the driver counts in 32 bits "
       "only, which wrap within seconds", "DCMI 20"},
      {"atlas_npu_hccs_crc_errors_total", kCounter, kDevice, "link", "",
       "Checksum errors on an HCCS link", "DCMI 20"},
      {"atlas_npu_hccs_retries_total", kCounter, kDevice, "link", "", "Retransmissions on an HCCS link", "DCMI 20"},
      {"atlas_npu_hccs_bandwidth_bytes_per_second", kGauge, kDevice, "link,direction", "bytes per second",
       "Bandwidth of HCCS; tx is what the NPU sent; link \"all\" is all links together",
       "channel hccs; DCMI 19 (off by default)"},
      {"atlas_npu_hccs_sampling_seconds", kGauge, kDevice, "", "seconds",
       "Time over which the HCCS bandwidth was measured", "DCMI 19 (off by default)"},
      {"atlas_npu_hccs_link_up", kGauge, kDevice, "link", "",
       "1 if the HCCS link has a lane that works; link \"all\" is the state of the port logic", "DCMI 21, 22"},
      {"atlas_npu_hccs_lanes_up", kGauge, kDevice, "link", "", "Lanes of an HCCS link that work", "DCMI 22"},
      {"atlas_npu_hccs_credits", kGauge, kDevice, "link", "",
       "Credits an HCCS link has left; none left means that the other side does not take data", "DCMI 23 (A3)"},
      {"atlas_npu_sio_crc_errors_total", kCounter, kDevice, "direction", "",
       "Checksum errors on the link between the two dies of a chip, since the daemon started", "DCMI 25"},
      {"atlas_npu_pcie_bandwidth_bytes_per_second", kGauge, kDevice, "direction,type,stat", "bytes per second",
       "PCIe bandwidth as the NPU sees it: tx posted is its writes to the other side, tx nonposted its reads of the "
       "other side, tx completion its answers to reads; rx posted and nonposted are writes and reads it receives, "
       "rx completion the data its own reads bring in", "channel pcie; DCMI 17 (off by default)"},
      {"atlas_npu_pcie_read_latency_seconds", kGauge, kDevice, "stat", "seconds",
       "Time from a PCIe read by the NPU to its completion", "channel pcie; DCMI 17 (off by default)"},
      {"atlas_npu_pcie_errors_total", kCounter, kDevice, "type", "",
       "PCIe errors by type; an administrator can clear it", "DCMI 18"},
      {"atlas_npu_topology_info", kGauge, kDevice, "peer_npu,type", "",
       "Always 1; how an NPU reaches another one", "DCMI get_topo_info_by_device_id"},
  });
}();

inline constexpr auto kDeviceReadings = [] {
  using enum ReadingPace;
  using reading::From, reading::FromV1, reading::IfThere, reading::kAsIs, reading::kCelsius,
      reading::kCentivolts, reading::kCompatible, reading::kDeciwatts, reading::kMebibytes,
      reading::kMegahertz, reading::kNoValue, reading::kPercent, reading::kWatts, reading::Of;
  using Units = abi::DcmiMultiUtilizationInfo;
  using Aicore = abi::DcmiAicoreInfo;
  using Aicpu = abi::DcmiAicpuInfo;
  using Sensor = abi::DcmiSensorInfo;
  using Cgroup = abi::DcmiCgroupInfo;
  using Llc = abi::DcmiLlcPerf;
  using Dvpp = abi::DcmiDvppRatio;
  using Pcie = abi::DcmiPcieErrors;
  using PcieCounts = abi::DcmiChipPcieErrRate;
  return std::to_array<ReadingRow>({
      // One question for four units where the driver is new enough.
      {kFast, "atlas_npu_utilization_ratio", {"cube"},
       {Of<&Units::aic_util>(dcmi::kMultiUtilization, kPercent), From(dcmi::kUtilCube, kPercent)}},
      {kFast, "atlas_npu_utilization_ratio", {"vector"},
       {Of<&Units::aiv_util>(dcmi::kMultiUtilization, kPercent), From(dcmi::kUtilVector, kPercent)}},
      {kFast, "atlas_npu_utilization_ratio", {"aicore"},
       {Of<&Units::aicore_util>(dcmi::kMultiUtilization, kPercent), From(dcmi::kUtilAicore, kPercent)}},
      {kFast, "atlas_npu_utilization_ratio", {"npu"},
       {Of<&Units::npu_util>(dcmi::kMultiUtilization, kPercent), From(dcmi::kUtilNpu, kPercent)}},
      {kFast, "atlas_npu_utilization_ratio", {"aicpu"}, {From(dcmi::kUtilAicpu, kPercent)}},
      {kFast, "atlas_npu_utilization_ratio", {"ctrlcpu"}, {From(dcmi::kUtilCtrlCpu, kPercent)}},
      {kFast, "atlas_npu_power_watts", {"chip"}, {From(dcmi::kPower, kDeciwatts)}},
      {kFast, "atlas_npu_power_watts", {"board"}, {From(dcmi::kBoardPower, kDeciwatts)}, &dcmi::kPower},
      {kFast, "atlas_npu_hbm_size_bytes", {},
       {From(dcmi::kHbmInfo, [](auto& v) { return IfThere(v, kMebibytes(v.memory_size)); })}},
      {kFast, "atlas_npu_hbm_used_bytes", {},
       {From(dcmi::kHbmInfo, [](auto& v) { return IfThere(v, kMebibytes(v.memory_usage)); })}},
      {kFast, "atlas_npu_temperature_celsius", {"hbm"},
       {From(dcmi::kHbmInfo, [](auto& v) { return IfThere(v, kCelsius(v.temp)); })}},
      {kFast, "atlas_npu_frequency_hertz", {"hbm"},
       {From(dcmi::kHbmInfo,
             [](auto& v) { return v.freq > 0 ? IfThere(v, kMegahertz(v.freq)) : kNoValue; })}},
      {kFast, "atlas_npu_hbm_utilization_ratio", {}, {From(dcmi::kUtilHbm, kPercent)}},
      {kFast, "atlas_npu_hbm_bandwidth_utilization_ratio", {},
       {From(dcmi::kUtilHbmBandwidth, kPercent),
        FromV1(dcmi::kHbmInfo, [](auto& v) { return IfThere(v, kPercent(v.bandwith_util_rate)); })}},
      {kFast, "atlas_npu_frequency_hertz", {"aicore"},
       {Of<&Aicore::cur_freq>(dcmi::kAicoreInfo, kMegahertz), From(dcmi::kFrequencyAicore, kMegahertz)}},
      {kFast, "atlas_npu_frequency_hertz", {"vector"}, {From(dcmi::kFrequencyVector, kMegahertz)}},

      {kMedium, "atlas_npu_temperature_celsius", {"chip"}, {From(dcmi::kTemperature, kCelsius)}},
      {kMedium, "atlas_npu_temperature_celsius", {"cluster"},
       {Of<&Sensor::int_value>(dcmi::kSensorCluster, kCelsius)}},
      {kMedium, "atlas_npu_temperature_celsius", {"soc"}, {Of<&Sensor::int_value>(dcmi::kSensorSoc, kCelsius)}},
      {kMedium, "atlas_npu_temperature_celsius", {"ndie"},
       {Of<&Sensor::int_value>(dcmi::kSensorNdie, kCelsius)}},
      {kMedium, "atlas_npu_temperature_celsius", {"optical_cage"},
       {Of<&Sensor::int_value>(dcmi::kSensorOpticalCage, kCelsius)}},
      {kMedium, "atlas_npu_temperature_celsius", {"ntc0"},
       {From(dcmi::kSensorNtc, [](auto& v) { return kCelsius(v.ntc_temp[0]); })}},
      {kMedium, "atlas_npu_temperature_celsius", {"ntc1"},
       {From(dcmi::kSensorNtc, [](auto& v) { return kCelsius(v.ntc_temp[1]); })}},
      {kMedium, "atlas_npu_temperature_celsius", {"ntc2"},
       {From(dcmi::kSensorNtc, [](auto& v) { return kCelsius(v.ntc_temp[2]); })}},
      {kMedium, "atlas_npu_temperature_celsius", {"ntc3"},
       {From(dcmi::kSensorNtc, [](auto& v) { return kCelsius(v.ntc_temp[3]); })}},
      {kMedium, "atlas_npu_temperature_threshold_celsius", {"0"},
       {From(dcmi::kSensorThreshold, [](auto& v) { return v.temp[0]; })}},
      {kMedium, "atlas_npu_temperature_threshold_celsius", {"1"},
       {From(dcmi::kSensorThreshold, [](auto& v) { return v.temp[1]; })}},
      {kMedium, "atlas_npu_voltage_volts", {"chip"}, {From(dcmi::kVoltage, kCentivolts)}},
      {kMedium, "atlas_npu_frequency_hertz", {"ddr"}, {From(dcmi::kFrequencyDdr, kMegahertz)}},
      {kMedium, "atlas_npu_frequency_hertz", {"ctrlcpu"}, {From(dcmi::kFrequencyCtrlCpu, kMegahertz)}},
      {kMedium, "atlas_npu_frequency_hertz", {"aicpu"}, {Of<&Aicpu::cur_freq>(dcmi::kAicpuInfo, kMegahertz)}},
      {kMedium, "atlas_npu_frequency_rated_hertz", {"aicpu"},
       {Of<&Aicpu::max_freq>(dcmi::kAicpuInfo, kMegahertz)}},
      {kMedium, "atlas_npu_ddr_size_bytes", {},
       {From(dcmi::kMemoryInfoV3, [](auto& v) { return IfThere(v, kMebibytes(v.memory_size)); }),
        From(dcmi::kMemoryInfo, [](auto& v) { return IfThere(v, kMebibytes(v.memory_size)); })}},
      {kMedium, "atlas_npu_ddr_used_bytes", {},
       {From(dcmi::kMemoryInfoV3,
             [](auto& v) { return IfThere(v, kMebibytes(v.memory_size - v.memory_available)); })}},
      {kMedium, "atlas_npu_ddr_utilization_ratio", {},
       {From(dcmi::kMemoryInfoV3, [](auto& v) { return IfThere(v, kPercent(v.utiliza)); }),
        From(dcmi::kMemoryInfo, [](auto& v) { return IfThere(v, kPercent(v.utiliza)); })}},
      {kMedium, "atlas_npu_device_memory_limit_bytes", {}, {Of<&Cgroup::limit_in_bytes>(dcmi::kCgroupInfo)}},
      {kMedium, "atlas_npu_device_memory_usage_bytes", {}, {Of<&Cgroup::usage_in_bytes>(dcmi::kCgroupInfo)}},
      {kMedium, "atlas_npu_device_memory_max_usage_bytes", {},
       {Of<&Cgroup::max_usage_in_bytes>(dcmi::kCgroupInfo)}},
      {kMedium, "atlas_npu_llc_hit_ratio", {"read"}, {Of<&Llc::rd_hit_rate>(dcmi::kLlcPerf, kPercent)}},
      {kMedium, "atlas_npu_llc_hit_ratio", {"write"}, {Of<&Llc::wr_hit_rate>(dcmi::kLlcPerf, kPercent)}},
      {kMedium, "atlas_npu_llc_throughput_bytes_per_second", {},
       {From(dcmi::kLlcPerf, [](auto& v) { return v.throughput * 1024.0; })}},
      // The 310P answers for all engines at once.
      {kMedium, "atlas_npu_dvpp_utilization_ratio", {"vdec"},
       {Of<&Dvpp::vdec_ratio>(dcmi::kDvppRatio, kPercent), From(dcmi::kDvppVdec, kPercent)}},
      {kMedium, "atlas_npu_dvpp_utilization_ratio", {"vpc"},
       {Of<&Dvpp::vpc_ratio>(dcmi::kDvppRatio, kPercent), From(dcmi::kDvppVpc, kPercent)}},
      {kMedium, "atlas_npu_dvpp_utilization_ratio", {"venc"},
       {Of<&Dvpp::venc_ratio>(dcmi::kDvppRatio, kPercent)}},
      {kMedium, "atlas_npu_dvpp_utilization_ratio", {"jpege"},
       {Of<&Dvpp::jpege_ratio>(dcmi::kDvppRatio, kPercent), From(dcmi::kDvppJpege, kPercent)}},
      {kMedium, "atlas_npu_dvpp_utilization_ratio", {"jpegd"},
       {Of<&Dvpp::jpegd_ratio>(dcmi::kDvppRatio, kPercent), From(dcmi::kDvppJpegd, kPercent)}},

      {kSlow, "atlas_npu_boot_status", {}, {From(dcmi::kBootStatus, kAsIs)}},
      {kSlow, "atlas_npu_firmware_compatible", {}, {From(dcmi::kCompatibility, kCompatible)}},
      {kSlow, "atlas_npu_frequency_rated_hertz", {"aicore"},
       {Of<&Aicore::freq>(dcmi::kAicoreInfo, kMegahertz), From(dcmi::kFrequencyAicoreRated, kMegahertz)}},
      {kSlow, "atlas_npu_power_rated_watts", {},
       {Of<&abi::DcmiLpPowerInfo::soc_rated_power>(dcmi::kRatedPower, kWatts)}},
      {kSlow, "atlas_npu_pcie_errors_total", {"tx"}, {Of<&Pcie::tx_err_cnt>(dcmi::kPcieErrors)}},
      {kSlow, "atlas_npu_pcie_errors_total", {"rx"}, {Of<&Pcie::rx_err_cnt>(dcmi::kPcieErrors)}},
      {kSlow, "atlas_npu_pcie_errors_total", {"lcrc"},
       {Of<&Pcie::lcrc_err_cnt>(dcmi::kPcieErrors),
        Of<&PcieCounts::dl_lcrc_err_num>(dcmi::kPcieErrorCounts)}},
      {kSlow, "atlas_npu_pcie_errors_total", {"ecrc"}, {Of<&Pcie::ecrc_err_cnt>(dcmi::kPcieErrors)}},
      {kSlow, "atlas_npu_pcie_errors_total", {"retry"}, {Of<&Pcie::retry_cnt>(dcmi::kPcieErrors)}},
      {kSlow, "atlas_npu_pcie_errors_total", {"symbol_unlock"},
       {Of<&PcieCounts::symbol_unlock_counter>(dcmi::kPcieErrorCounts)}},
      {kSlow, "atlas_npu_pcie_errors_total", {"pcs_rx"},
       {Of<&PcieCounts::pcs_rx_err_cnt>(dcmi::kPcieErrorCounts)}},
      {kSlow, "atlas_npu_pcie_errors_total", {"phy_lane"},
       {Of<&PcieCounts::phy_lane_err_counter>(dcmi::kPcieErrorCounts)}},
      {kSlow, "atlas_npu_pcie_errors_total", {"dcrc"},
       {Of<&PcieCounts::dl_dcrc_err_num>(dcmi::kPcieErrorCounts)}},
  });
}();

}  // namespace profd
