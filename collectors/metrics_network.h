// What is measured at the network ports of the NPUs; otherwise as metrics_device.h.
#pragma once

#include <array>

#include "collectors/device_reading.h"
#include "collectors/metric_spec.h"

namespace profd {

inline constexpr auto kNetworkMetrics = [] {
  using enum MetricType;
  using enum MetricScope;
  return std::to_array<MetricSpec>({
      // ---- Unified Bus, per port (7.3) ----
      {"atlas_npu_ub_link_up", kGauge, kDevice, "udie,port", "",
       "1 if the Unified Bus port is linked, with all or some of its lanes; ports the chip does not have are "
       "absent; udie is empty because the driver numbers the ports across the chip here",
       "DCMI 47: get_ub_port_link_status (cards)"},
      {"atlas_npu_ub_packets_total", kCounter, kDevice, "udie,port,direction,kind", "",
       "Packets through a Unified Bus port by direction and kind (ub_ipv4, ub_ipv6, unic_ipv4, unic_ipv6, "
       "ub_compact, ub_umoc_ctph, ub_umoc_ntph, ub_mem, unknown)", "DCMI 47: *_pkt_cnt_*, ub_umoc_*"},
      {"atlas_npu_ub_forwarded_packets_total", kCounter, kDevice, "udie,port,target", "",
       "Packets a Unified Bus port received, by what they were handed to (host, imp, mar, link, noc)",
       "DCMI 47: to_*_pkt_cnt_rx"},
      {"atlas_npu_ub_loopback_packets_total", kCounter, kDevice, "udie,port", "",
       "Packets a Unified Bus port sent to itself", "DCMI 47: lpbk_ind_cnt_tx"},
      {"atlas_npu_ub_errors_total", kCounter, kDevice, "udie,port,direction,type", "",
       "Packets a Unified Bus port dropped (drop), marked (error) or found wrong (length, out, route)",
       "DCMI 47: *_ind_cnt_*, *_err_cnt_*"},
      {"atlas_npu_ub_flits_total", kCounter, kDevice, "udie,port,direction,kind", "",
       "Flits through a Unified Bus port, by kind: with data (busy), acknowledging (ack: sent for what was "
       "received, received for what was sent)", "DCMI 47: *_busi_flit_num, *_ack_flit"},
      {"atlas_npu_ub_retries_total", kCounter, kDevice, "udie,port,kind", "",
       "Retransmissions on a Unified Bus port, by kind (request, ack)", "DCMI 47: retry_*_sum"},
      {"atlas_npu_ub_crc_errors_total", kCounter, kDevice, "udie,port", "",
       "Checksum errors on a Unified Bus port", "DCMI 47: crc_error_sum"},
      {"atlas_npu_ub_ethernet_pause_frames_total", kCounter, kDevice, "udie,port,direction", "",
       "Pause frames at a Unified Bus port in Ethernet mode (UBoE)", "DCMI 47: core_mib_*pausepkts"},
      {"atlas_npu_ub_ethernet_pfc_frames_total", kCounter, kDevice, "udie,port,direction", "",
       "Priority flow control frames at a Unified Bus port in Ethernet mode (UBoE)", "DCMI 47: core_mib_*pfcpkts"},
      {"atlas_npu_ub_ethernet_bad_packets_total", kCounter, kDevice, "udie,port,direction", "",
       "Damaged packets at a Unified Bus port in Ethernet mode (UBoE)", "DCMI 47: core_mib_*badpkts"},
      {"atlas_npu_ub_ethernet_bad_bytes_total", kCounter, kDevice, "udie,port,direction", "bytes",
       "Bytes of damaged packets at a Unified Bus port in Ethernet mode (UBoE)", "DCMI 47: core_mib_*badoctets"},

      // ---- network port of the NPU (7.4) ----
      {"atlas_npu_network_bytes_total", kCounter, kDevice, "direction,layer", "bytes",
       "Bytes through the NPU's network port", "DCMI 27; channel nic"},
      {"atlas_npu_network_packets_total", kCounter, kDevice, "direction,layer", "",
       "Packets through the NPU's network port", "DCMI 27; channel nic"},
      {"atlas_npu_network_bad_packets_total", kCounter, kDevice, "direction", "",
       "Damaged packets at the NPU's network port", "DCMI 27"},
      {"atlas_npu_network_bad_bytes_total", kCounter, kDevice, "direction", "bytes",
       "Bytes of damaged packets at the NPU's network port", "DCMI 27"},
      {"atlas_npu_network_fcs_errors_total", kCounter, kDevice, "", "",
       "Packets received with a wrong frame checksum", "DCMI 27"},
      {"atlas_npu_network_pause_frames_total", kCounter, kDevice, "direction", "",
       "Pause frames at the NPU's network port", "DCMI 27"},
      {"atlas_npu_network_pfc_frames_total", kCounter, kDevice, "direction,priority", "",
       "Priority flow control frames by priority", "DCMI 27"},
      {"atlas_npu_network_pfc_duration_total", kCounter, kDevice, "direction,priority", "",
       "How long priority flow control paused the port, by direction of the frames and priority; the vendor does "
       "not document the unit", "DCMI 30"},
      {"atlas_npu_network_tc_packets_total", kCounter, kDevice, "direction,tc", "",
       "Packets through the NPU's network port by traffic class", "DCMI 29"},
      {"atlas_npu_network_fec_codewords_total", kCounter, kDevice, "state", "",
       "Code words of the network port's error correction: all of them (total), corrected, beyond correction "
       "(uncorrected), bad", "DCMI 31"},
      // Not ..._fec_corrected_bits_total: Prometheus takes "bits" for a unit, which should be bytes.
      {"atlas_npu_network_fec_corrections_total", kCounter, kDevice, "", "",
       "Bits the network port's error correction has corrected", "DCMI 31"},
      {"atlas_npu_network_fec_bit_error_ratio", kGauge, kDevice, "", "ratio",
       "Share of the received bits that error correction had to correct, since the port counts", "DCMI 31"},
      {"atlas_npu_roce_packets_total", kCounter, kDevice, "direction,kind", "",
       "RoCE packets by kind: all, reliable (rc), broken (err), congestion (cnp)", "DCMI 27"},
      {"atlas_npu_roce_retransmits_total", kCounter, kDevice, "", "", "RoCE packets sent again", "DCMI 27"},
      {"atlas_npu_roce_errors_total", kCounter, kDevice, "type", "", "RoCE protocol errors by type", "DCMI 27"},
      {"atlas_npu_roce_ecn_doorbells_total", kCounter, kDevice, "", "",
       "Doorbells of the RoCE engine for congestion marks", "DCMI 27"},
      {"atlas_npu_roce_cqes_total", kCounter, kDevice, "", "", "RoCE completion queue entries", "DCMI 27"},
      {"atlas_npu_rdma_bandwidth_bytes_per_second", kGauge, kDevice, "direction", "bytes per second",
       "RDMA bandwidth of the NPU's network port", "DCMI 28 (off by default)"},
      {"atlas_npu_serdes_snr", kGauge, kDevice, "macro,lane", "",
       "Signal to noise ratio of a SerDes lane in the driver's own unit; lanes without a link are absent",
       "DCMI 32 (off by default)"},
      {"atlas_npu_serdes_eye_height", kGauge, kDevice, "macro,lane", "",
       "Opening of a SerDes lane's eye in the driver's own unit: half its height, or on macros that report bounds "
       "top minus bottom", "DCMI 32 (off by default)"},

      // ---- link and optics of the network port (7.4): only the vendor's program knows ----
      // On A2 and A3 an NPU has one port, "0"; on A5 several, "DIE/PORT".
      {"atlas_npu_network_link_up", kGauge, kDevice, "port", "",
       "1 if the link of the NPU's network port is up", "hccn_tool -link"},
      {"atlas_npu_network_link_up_transitions_total", kCounter, kDevice, "", "",
       "Times the link of the NPU's network port went up", "hccn_tool -link_stat"},
      {"atlas_npu_network_speed_bytes_per_second", kGauge, kDevice, "port", "bytes per second",
       "Speed of the link of the NPU's network port, one direction", "hccn_tool -speed"},
      {"atlas_npu_optical_present", kGauge, kDevice, "port", "",
       "1 if an optical module is in the NPU's network port", "hccn_tool -optical"},
      {"atlas_npu_optical_temperature_celsius", kGauge, kDevice, "port", "celsius",
       "Temperature of the optical module", "hccn_tool -optical"},
      {"atlas_npu_optical_supply_volts", kGauge, kDevice, "port", "volts",
       "Supply voltage of the optical module", "hccn_tool -optical"},
      {"atlas_npu_optical_power_watts", kGauge, kDevice, "port,direction,lane", "watts",
       "Power of the light in a lane of the optical module; rx is what arrives", "hccn_tool -optical"},

      // ---- the management library itself ----
      {"profd_dcmi_calls_total", kCounter, kNode, "call", "", "Calls into libdcmi", "DCMI service"},
      {"profd_dcmi_call_errors_total", kCounter, kNode, "call,code", "",
       "Calls into libdcmi that failed, by return code", "DCMI service"},
      {"profd_dcmi_call_duration_seconds", kHistogram, kNode, "call", "seconds",
       "How long calls into libdcmi took, by function (the part of `call` before the slash elsewhere); without "
       "buckets unless metrics.npu_extra has call_buckets", "DCMI service"},
      {"profd_dcmi_unsupported", kGauge, kNode, "npu,call", "",
       "Always 1; a call the NPU or driver does not support, or does not allow, and that is not tried again before "
       "the daemon restarts", "DCMI service"},
  });
}();

inline constexpr auto kNetworkReadings = [] {
  using enum ReadingPace;
  using reading::From, reading::kCount, reading::kNetworkCode, reading::kNetworkHealthy, reading::kRatio, reading::Of;
  using Packets = abi::DcmiNetworkPktStats;
  using Extra = abi::DcmiExtraStatistics;
  constexpr auto& kPackets = dcmi::kPacketStatistics;
  constexpr auto& kExtra = dcmi::kExtraStatistics;
  return std::to_array<ReadingRow>({
      {kMedium, "atlas_npu_network_health", {}, {From(dcmi::kNetworkHealth, kNetworkHealthy)}},
      {kMedium, "atlas_npu_network_health_code", {}, {From(dcmi::kNetworkHealth, kNetworkCode)}},
      {kMedium, "atlas_npu_network_bytes_total", {"tx", "mac"}, {Of<&Packets::mac_tx_total_oct_num>(kPackets)}},
      {kMedium, "atlas_npu_network_bytes_total", {"rx", "mac"}, {Of<&Packets::mac_rx_total_oct_num>(kPackets)}},
      {kMedium, "atlas_npu_network_bytes_total", {"tx", "nic"}, {Of<&Packets::nic_tx_all_oct_num>(kPackets)}},
      {kMedium, "atlas_npu_network_bytes_total", {"rx", "nic"}, {Of<&Packets::nic_rx_all_oct_num>(kPackets)}},
      {kMedium, "atlas_npu_network_packets_total", {"tx", "mac"},
       {Of<&Packets::mac_tx_total_pkt_num>(kPackets)}},
      {kMedium, "atlas_npu_network_packets_total", {"rx", "mac"},
       {Of<&Packets::mac_rx_total_pkt_num>(kPackets)}},
      {kMedium, "atlas_npu_network_packets_total", {"tx", "nic"}, {Of<&Packets::nic_tx_all_pkg_num>(kPackets)}},
      {kMedium, "atlas_npu_network_packets_total", {"rx", "nic"}, {Of<&Packets::nic_rx_all_pkg_num>(kPackets)}},
      {kMedium, "atlas_npu_network_bad_packets_total", {"tx"}, {Of<&Packets::mac_tx_bad_pkt_num>(kPackets)}},
      {kMedium, "atlas_npu_network_bad_packets_total", {"rx"}, {Of<&Packets::mac_rx_bad_pkt_num>(kPackets)}},
      {kMedium, "atlas_npu_network_bad_bytes_total", {"tx"}, {Of<&Packets::mac_tx_bad_oct_num>(kPackets)}},
      {kMedium, "atlas_npu_network_bad_bytes_total", {"rx"}, {Of<&Packets::mac_rx_bad_oct_num>(kPackets)}},
      {kMedium, "atlas_npu_network_pause_frames_total", {"tx"}, {Of<&Packets::mac_tx_mac_pause_num>(kPackets)}},
      {kMedium, "atlas_npu_network_pause_frames_total", {"rx"}, {Of<&Packets::mac_rx_mac_pause_num>(kPackets)}},
      {kMedium, "atlas_npu_network_fcs_errors_total", {}, {Of<&Packets::mac_rx_fcs_err_pkt_num>(kPackets)}},
      {kMedium, "atlas_npu_roce_packets_total", {"tx", "all"}, {Of<&Packets::roce_tx_all_pkt_num>(kPackets)}},
      {kMedium, "atlas_npu_roce_packets_total", {"rx", "all"}, {Of<&Packets::roce_rx_all_pkt_num>(kPackets)}},
      {kMedium, "atlas_npu_roce_packets_total", {"tx", "rc"}, {Of<&Packets::roce_tx_rc_pkt_num>(kPackets)}},
      {kMedium, "atlas_npu_roce_packets_total", {"rx", "rc"}, {Of<&Packets::roce_rx_rc_pkt_num>(kPackets)}},
      {kMedium, "atlas_npu_roce_packets_total", {"tx", "err"}, {Of<&Packets::roce_tx_err_pkt_num>(kPackets)}},
      {kMedium, "atlas_npu_roce_packets_total", {"rx", "err"}, {Of<&Packets::roce_rx_err_pkt_num>(kPackets)}},
      {kMedium, "atlas_npu_roce_packets_total", {"tx", "cnp"}, {Of<&Packets::roce_tx_cnp_pkt_num>(kPackets)}},
      {kMedium, "atlas_npu_roce_packets_total", {"rx", "cnp"}, {Of<&Packets::roce_rx_cnp_pkt_num>(kPackets)}},
      {kMedium, "atlas_npu_roce_retransmits_total", {}, {Of<&Packets::roce_new_pkt_rty_num>(kPackets)}},
      {kMedium, "atlas_npu_roce_ecn_doorbells_total", {}, {Of<&Packets::roce_ecn_db_num>(kPackets)}},
      {kMedium, "atlas_npu_roce_cqes_total", {}, {Of<&Packets::roce_cqe_num>(kPackets)}},
      {kMedium, "atlas_npu_roce_errors_total", {"unexpected_ack"}, {Of<&Packets::roce_err_ack_num>(kPackets)}},
      {kMedium, "atlas_npu_roce_errors_total", {"out_of_order"}, {Of<&Packets::roce_err_psn_num>(kPackets)}},
      {kMedium, "atlas_npu_roce_errors_total", {"verification"},
       {Of<&Packets::roce_verification_err_num>(kPackets)}},
      {kMedium, "atlas_npu_roce_errors_total", {"qp_status"}, {Of<&Packets::roce_err_qp_status_num>(kPackets)}},
      {kMedium, "atlas_npu_network_fec_codewords_total", {"total"}, {Of<&Extra::cw_total_cnt>(kExtra, kCount)}},
      {kMedium, "atlas_npu_network_fec_codewords_total", {"corrected"},
       {Of<&Extra::cw_correct_cnt>(kExtra, kCount)}},
      {kMedium, "atlas_npu_network_fec_codewords_total", {"uncorrected"},
       {Of<&Extra::cw_uncorrect_cnt>(kExtra, kCount)}},
      {kMedium, "atlas_npu_network_fec_codewords_total", {"bad"}, {Of<&Extra::cw_bad_cnt>(kExtra, kCount)}},
      {kMedium, "atlas_npu_network_fec_corrections_total", {},
       {Of<&Extra::cw_total_correct_bit>(kExtra, kCount)}},
      {kMedium, "atlas_npu_network_fec_bit_error_ratio", {}, {Of<&Extra::correcting_bit_rate>(kExtra, kRatio)}},
  });
}();

}  // namespace profd
