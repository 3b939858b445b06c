// Metrics that only the driver's sampling channels feed; see metric_table.h. What DCMI can read as
// well (HCCS, PCIe, LLC, DVPP, frequency, voltage, network totals) is in metrics_device.h; while a
// channel runs, its decoder feeds those names too.
#pragma once

#include <array>

#include "collectors/metric_spec.h"

namespace profd {

inline constexpr auto kChannelMetrics = [] {
  using enum MetricType;
  using enum MetricScope;
  return std::to_array<MetricSpec>({
      // hbm, ddr
      {"atlas_npu_hbm_bandwidth_bytes_per_second", kGauge, kDevice, "hbm,direction", "bytes per second",
       "Traffic of one HBM stack since its previous record, by direction (read, write)",
       "channel 1: accesses of 32 bytes"},
      {"atlas_npu_ddr_bandwidth_bytes_per_second", kGauge, kDevice, "ddr,direction", "bytes per second",
       "Traffic of one DDR controller since its previous record, by direction (read, write)",
       "channel 7: accesses of the bus width (256 bits on chips 1-4, else 128)"},
      {"atlas_npu_hbm_bytes_total", kCounter, kDevice, "hbm,direction", "bytes",
       "Bytes read from or written to one HBM stack (read, write), counted only while the channel runs; continues "
       "in the next session", "channel 1: sum of the accesses"},
      {"atlas_npu_ddr_bytes_total", kCounter, kDevice, "ddr,direction", "bytes",
       "Bytes read from or written to one DDR controller (read, write), counted only while the channel runs; "
       "continues in the next session", "channel 7: sum of the accesses"},
      // llc
      {"atlas_npu_llc_bytes_total", kCounter, kDevice, "", "bytes",
       "Bytes through the last level cache, all slices, counted only while the channel runs; continues in the next "
       "session", "channel 8: sum of (e0+e1) cache lines of 64 bytes"},
      {"atlas_npu_llc_slice_hit_ratio", kGauge, kDevice, "op,llc", "ratio",
       "Hit ratio of one last level cache slice for the sampled operation (read, write); the counters are not "
       "exactly simultaneous, so it can pass 1", "channel 8: (e2+e3+e5+e7)/(e4+e6)"},
      {"atlas_npu_llc_slice_throughput_bytes_per_second", kGauge, kDevice, "op,llc", "bytes per second",
       "Throughput of one last level cache slice for the sampled operation (read, write)",
       "channel 8: (e0+e1) cache lines of 64 bytes"},
      // hccs
      {"atlas_npu_hccs_bytes_total", kCounter, kDevice, "direction", "bytes",
       "Bytes over all HCCS links of the device, by direction (tx, rx)", "channel 9"},
      // nic, roce
      {"atlas_npu_network_port_speed_bytes_per_second", kGauge, kDevice, "layer,port", "bytes per second",
       "Nominal speed of a network port of the device, as layer nic or roce sees it",
       "channels 4, 129: bandwidth column, Mbit/s"},
      {"atlas_npu_network_port_bandwidth_bytes_per_second", kGauge, kDevice,
       "layer,port,direction", "bytes per second",
       "Traffic of a network port as the driver computes it, by direction (tx, rx)",
       "channels 4, 129: rxByte/s, txByte/s"},
      {"atlas_npu_network_port_packets_per_second", kGauge, kDevice, "layer,port,direction", "packets per second",
       "Packet rate of a network port as the driver computes it, by direction (tx, rx)",
       "channels 4, 129: rxPacket/s, txPacket/s"},
      {"atlas_npu_network_port_utilization_ratio", kGauge, kDevice, "layer,port,direction", "ratio",
       "Traffic of a network port as a share of its nominal speed, computed as the vendor's analyser does (one Mbit "
       "counted as 2^20 bits)", "channels 4, 129: byte/s * 8 / (bandwidth * 2^20)"},
      {"atlas_npu_network_port_bytes_total", kCounter, kDevice, "layer,port,direction", "bytes",
       "Bytes through a network port, by direction (tx, rx)", "channels 4, 129: rxBytes, txBytes"},
      {"atlas_npu_network_port_packets_total", kCounter, kDevice, "layer,port,direction", "packets",
       "Packets through a network port, by direction (tx, rx)", "channels 4, 129: rxPackets, txPackets"},
      {"atlas_npu_network_port_errors_total", kCounter, kDevice, "layer,port,direction", "packets",
       "Packets in error at a network port", "channels 4, 129: rxErrors, txErrors"},
      {"atlas_npu_network_port_dropped_total", kCounter, kDevice, "layer,port,direction", "packets",
       "Packets dropped at a network port", "channels 4, 129: rxDropped, txDropped"},
      // dvpp
      {"atlas_npu_dvpp_engine_utilization_ratio", kGauge, kDevice, "engine,dvpp,engine_id", "ratio",
       "Share of the sampling period one DVPP engine instance worked, all processes",
       "channels 6, 135-141: all_utilization"},
      {"atlas_npu_dvpp_engine_busy_seconds", kGauge, kDevice, "engine,dvpp,engine_id", "seconds",
       "Time one DVPP engine instance worked, as the driver reports it with each sample",
       "channels 6, 135-141: all_time, us"},
      {"atlas_npu_dvpp_engine_frames", kGauge, kDevice, "engine,dvpp,engine_id", "frames",
       "Frames one DVPP engine instance processed, as the driver reports them with each sample",
       "channels 6, 135-141: all_frame"},
      // npu_mem
      {"atlas_npu_memory_used_bytes", kGauge, kDevice, "kind,memory", "bytes",
       "Device memory (hbm, ddr) in use by the application (app) or in all (device)",
       "channels 130 (app), 131 (device)"},
      {"atlas_npu_module_memory_reserved_bytes", kGauge, kDevice, "module", "bytes",
       "Device memory one component of the vendor's software has reserved", "channel 142"},
      // soc_profile
      {"atlas_npu_sio_bandwidth_bytes_per_second", kGauge, kDevice, "die,kind,direction", "bytes per second",
       "Traffic between the dies of the package, by kind (req, rsp, snp, dat) and direction (tx, rx)",
       "channel 52: function 011001"},
      {"atlas_npu_acc_pmu_bandwidth", kGauge, kDevice, "acc,direction", "",
       "Bandwidth of one accelerator's PMU (read, write); the driver does not document its unit",
       "channel 52: function 011010"},
      {"atlas_npu_acc_pmu_outstanding", kGauge, kDevice, "acc,direction", "",
       "Outstanding transactions of one accelerator's PMU (read, write)", "channel 52: function 011010"},
      {"atlas_npu_chip_link_bandwidth", kGauge, kDevice, "kind,link,direction", "",
       "Bandwidth of a chip-to-chip link: kind pa with directions rx and tx, kind pcie with directions write and "
       "read; the driver does not document its unit", "channel 52: function 011011"},
      {"atlas_npu_soc_bandwidth_level", kGauge, kDevice, "unit", "level",
       "Bandwidth level the SoC has set for a unit: mata (0-7), l2_buffer (0-255)", "channel 52: function 011100"},
      {"atlas_npu_die_frequency_hertz", kGauge, kDevice, "die,domain", "hertz",
       "Frequency of a domain (aicore) on one die", "channel 52: function 011101, word 11"},
      {"atlas_npu_low_power_value", kGauge, kDevice, "die,source,index", "",
       "One raw low power value of a die (source hard or soft, index 0-9); meaning not documented",
       "channel 52: function 011101", MetricVisibility::kStreamOnly},
      // qos, soc_profile
      {"atlas_npu_qos_bandwidth_bytes_per_second", kGauge, kDevice, "die,stream", "bytes per second",
       "Memory bandwidth of one QoS stream, by its place in the list of streams; die is all where the chip does not "
       "distinguish dies", "channel 133; channel 52: function 011000"},
  });
}();

}  // namespace profd
