#include "daemon/metrics/npu_exporter_table.h"

#include <charconv>

namespace profd {
namespace {

using enum NpuExporterLabels;
using enum NpuExporterValue;
using Row = NpuExporterRow;

// npu-exporter's units in ours.
constexpr double kPercent = 100;
constexpr double kMegabytes = 1.0 / (1024 * 1024);  // it says MB and means MiB
constexpr double kKilobytes = 1.0 / 1024;
constexpr double kGigabytes = 1.0 / (1024.0 * 1024 * 1024);
constexpr double kMegabytesPerMs = 1.0 / (1024.0 * 1024 * 1000);
constexpr double kDecimalMegabytes = 1e-6;
constexpr double kMegahertz = 1e-6;
constexpr double kMegabits = 8e-6;
constexpr double kGigabits = 8e-9;
constexpr double kMilli = 1e3;

// A metric of a chip from one of ours.
constexpr Row Chip(std::string_view group, std::string_view name, std::string_view unit,
                   NpuExporterSource source, std::string_view note = {}) {
  return {group, name, kChip, unit, {source}, {}, note};
}
constexpr Row Links(std::string_view name, std::string_view unit, NpuExporterSource source) {
  return {"hccs", name, kChip, unit, {source}, "link", {}};
}
constexpr Row Lanes(std::string_view name, NpuExporterLabels labels, NpuExporterSource source) {
  return {"optical", name, labels, "mW (A5: dBm)", {source}, "lane", {}};
}
constexpr Row Pcie(std::string_view name, std::string_view match) {
  return {"pcie", name, kPcie, "MB/ms",
          {{{"atlas_npu_pcie_bandwidth_bytes_per_second", match, kMegabytesPerMs}}}, {},
          "direction as the NPU sees it, which npu-exporter's own help text has the other way round"};
}
constexpr Row Ecc(std::string_view name, std::string_view metric, std::string_view match) {
  return {"hbm", name, kChip, "count", {{{metric, match}}}, {}, {}};
}
constexpr Row Roce(std::string_view name, std::string_view metric, std::string_view match = {}) {
  return {"roce", name, kChip, "count", {{{metric, match}}}, {}, {}};
}
// Of a Unified Bus port (A5).
constexpr Row Ub(std::string_view name, std::string_view metric, std::string_view match = {}) {
  return {"ub", name, kPort, "count", {{{metric, match}}}, {}, {}};
}
constexpr Row Machine(std::string_view name, std::string_view match) {
  return {"npu", name, kNone, "count", {{{"atlas_npus", match}}}, {}, {}};
}

constexpr std::string_view kInfo = "atlas_npu_info";
constexpr std::string_view kUtilization = "atlas_npu_utilization_ratio";
constexpr std::string_view kHccsBandwidth = "atlas_npu_hccs_bandwidth_bytes_per_second";
constexpr std::string_view kPortBandwidth = "atlas_npu_network_port_bandwidth_bytes_per_second";
constexpr std::string_view kRdmaBandwidth = "atlas_npu_rdma_bandwidth_bytes_per_second";
constexpr std::string_view kNetworkBytes = "atlas_npu_network_bytes_total";
constexpr std::string_view kBandwidthNote =
    "from the nic channel while it runs, else the growth of the byte counter between its last two "
    "samples";

constexpr std::string_view kVnpuNote = "aicore_count is empty; the pod is that of the complete NPU";
constexpr std::string_view kUbErrors = "atlas_npu_ub_errors_total";
constexpr std::string_view kUbFlits = "atlas_npu_ub_flits_total";
constexpr std::string_view kUbPackets = "atlas_npu_ub_packets_total";

constexpr Row kRows[] = {
    {"version", "npu_exporter_version_info", kVersion, "-", {{{"profd_build_info", {}, 1, kOne}}}, {},
     "the version is profd's"},
    {"nodeBase", "node_base_info", kNode, "-", {{{"atlas_driver_info", {}, 1, kOne}}}, {},
     "driverVersion is the version of libdcmi, as there"},

    // ---- npu ----
    {"npu", "container_npu_total_memory", kInContainer, "MB",
     {{{"atlas_npu_hbm_size_bytes", {}, kMegabytes}, {"atlas_npu_ddr_size_bytes", {}, kMegabytes}}},
     {}, "for NPUs a container has"},
    {"npu", "container_npu_used_memory", kInContainer, "MB",
     {{{"atlas_npu_hbm_used_bytes", {}, kMegabytes}, {"atlas_npu_ddr_used_bytes", {}, kMegabytes}}},
     {}, "for NPUs a container has"},
    Chip("npu", "npu_chip_info_aicore_current_freq", "MHz",
         {"atlas_npu_frequency_hertz", "domain=aicore", kMegahertz}),
    {"npu", "npu_chip_info_health_status", kChip, "1/0/-1",
     {{{"atlas_npu_up", {}, -1, kIfZero}, {"atlas_npu_health_status", {}, 1, kOneIfZero}}}, {},
     "1 healthy, 0 an alarm is raised, -1 the NPU does not answer"},
    Chip("npu", "npu_chip_info_network_status", "1/0/-1", {"atlas_npu_network_health"}),
    {"npu", "npu_chip_info_power", kChip, "W",
     {{{"atlas_npu_power_watts", "scope=board"}, {"atlas_npu_power_watts", "scope=chip"}}}, {},
     "of the board where it is known (310P), else of the chip"},
    Chip("npu", "npu_chip_info_process_info_num", "count", {"atlas_npu_processes"}),
    Chip("npu", "npu_chip_info_temperature", "C", {"atlas_npu_temperature_celsius", "sensor=chip"}),
    Chip("npu", "npu_chip_info_voltage", "V", {"atlas_npu_voltage_volts", "rail=chip"}),
    Chip("npu", "npu_chip_info_error_code", "hex code as number",
         {"atlas_npu_fault_active", {}, 1, kCode}, "the lowest code that is active"),
    Chip("npu", "npu_chip_info_error_code_<1..9>", "hex code as number",
         {"atlas_npu_fault_active", {}, 1, kCode}, "the codes after the lowest, in ascending order"),
    Machine("machine_healthy_npu_nums", "state=healthy"),
    Machine("machine_npu_nums", "state=present"),
    Machine("machine_unhealthy_npu_nums", "state=unhealthy"),
    Machine("machine_unknown_npu_nums", "state=unknown"),
    {"npu", "npu_chip_info_name", kChipName, "-", {{{kInfo, {}, 1, kOne}}}, {}, {}},
    {"npu", "npu_chip_info_process_info", kProcess, "MB",
     {{{"atlas_npu_process_memory_bytes", {}, kMegabytes}, {"atlas_npu_processes", {}, 0, kIfZero}}},
     {}, "without processes one sample of 0, as there"},
    {"npu", "npu_chip_info_product_type", kProduct, "-", {{{kInfo, {}, 1, kOne}}}, {}, "310P only"},
    {"npu", "npu_chip_info_serial_number", kSerial, "-", {{{kInfo, {}, 1, kOne}}}, {}, {}},
    {"npu", "npu_container_info", kContainer, "-", {{{kInfo, {}, 1, kOne}}}, {},
     "a sample for each container, from atlas_npu_container_info"},
    {"npu", "machine_card_nums", kNone, "count", {{{kInfo, {}, 1, kCountCards}}}, {}, {}},

    // ---- utilization ----
    {"utilization", "container_npu_utilization", kInContainer, "%",
     {{{kUtilization, "unit=aicore", kPercent}}}, {}, "for NPUs a container has"},
    Chip("utilization", "npu_chip_info_cube_utilization", "%",
         {kUtilization, "unit=cube", kPercent}),
    Chip("utilization", "npu_chip_info_overall_utilization", "%",
         {kUtilization, "unit=npu", kPercent}),
    Chip("utilization", "npu_chip_info_utilization", "%", {kUtilization, "unit=aicore", kPercent}),
    Chip("utilization", "npu_chip_info_vector_utilization", "%",
         {kUtilization, "unit=vector", kPercent}),

    // ---- ddr, hbm ----
    Chip("ddr", "npu_chip_info_total_memory", "MB", {"atlas_npu_ddr_size_bytes", {}, kMegabytes}),
    Chip("ddr", "npu_chip_info_used_memory", "MB", {"atlas_npu_ddr_used_bytes", {}, kMegabytes}),
    Chip("hbm", "npu_chip_info_hbm_bandwidth_utilization", "%",
         {"atlas_npu_hbm_bandwidth_utilization_ratio", {}, kPercent}),
    Ecc("npu_chip_info_hbm_ecc_double_bit_error_cnt", "atlas_npu_ecc_errors_current",
        "memory=hbm,type=double"),
    Ecc("npu_chip_info_hbm_ecc_double_bit_isolated_pages_cnt", "atlas_npu_ecc_isolated_pages",
        "memory=hbm,type=double,state=active"),
    Chip("hbm", "npu_chip_info_hbm_ecc_enable_flag", "1/0", {"atlas_npu_ecc_enabled", "memory=hbm"}),
    Ecc("npu_chip_info_hbm_ecc_single_bit_error_cnt", "atlas_npu_ecc_errors_current",
        "memory=hbm,type=single"),
    Ecc("npu_chip_info_hbm_ecc_single_bit_isolated_pages_cnt", "atlas_npu_ecc_isolated_pages",
        "memory=hbm,type=single,state=active"),
    Ecc("npu_chip_info_hbm_ecc_total_double_bit_error_cnt", "atlas_npu_ecc_errors_total",
        "memory=hbm,type=double"),
    Ecc("npu_chip_info_hbm_ecc_total_single_bit_error_cnt", "atlas_npu_ecc_errors_total",
        "memory=hbm,type=single"),
    Chip("hbm", "npu_chip_info_hbm_temperature", "C",
         {"atlas_npu_temperature_celsius", "sensor=hbm"}),
    Chip("hbm", "npu_chip_info_hbm_total_memory", "MB",
         {"atlas_npu_hbm_size_bytes", {}, kMegabytes}),
    Chip("hbm", "npu_chip_info_hbm_used_memory", "MB", {"atlas_npu_hbm_used_bytes", {}, kMegabytes}),
    Chip("hbm", "npu_chip_info_hbm_utilization", "%",
         {"atlas_npu_hbm_utilization_ratio", {}, kPercent}),

    // ---- hccs ----
    Chip("hccs", "npu_chip_info_hccs_bandwidth_info_profiling_time", "ms",
         {"atlas_npu_hccs_sampling_seconds", {}, kMilli}),
    Chip("hccs", "npu_chip_info_hccs_bandwidth_info_total_rx", "GB/s",
         {kHccsBandwidth, "link=all,direction=rx", kGigabytes}),
    Chip("hccs", "npu_chip_info_hccs_bandwidth_info_total_tx", "GB/s",
         {kHccsBandwidth, "link=all,direction=tx", kGigabytes}),
    Links("npu_chip_info_hccs_bandwidth_info_rx_<1..7>", "GB/s",
          {kHccsBandwidth, "direction=rx", kGigabytes}),
    Links("npu_chip_info_hccs_bandwidth_info_tx_<1..7>", "GB/s",
          {kHccsBandwidth, "direction=tx", kGigabytes}),
    Links("npu_chip_info_hccs_statistic_info_crc_err_cnt_<1..7>", "count",
          {"atlas_npu_hccs_crc_errors_total"}),
    Links("npu_chip_info_hccs_statistic_info_rx_cnt_<1..7>", "count",
          {"atlas_npu_hccs_flits_total", "direction=rx"}),
    Links("npu_chip_info_hccs_statistic_info_tx_cnt_<1..7>", "count",
          {"atlas_npu_hccs_flits_total", "direction=tx"}),

    // ---- pcie ----
    Pcie("npu_chip_info_pcie_rx_cpl_bw", "direction=rx,type=completion"),
    Pcie("npu_chip_info_pcie_rx_np_bw", "direction=rx,type=nonposted"),
    Pcie("npu_chip_info_pcie_rx_p_bw", "direction=rx,type=posted"),
    Pcie("npu_chip_info_pcie_tx_cpl_bw", "direction=tx,type=completion"),
    Pcie("npu_chip_info_pcie_tx_np_bw", "direction=tx,type=nonposted"),
    Pcie("npu_chip_info_pcie_tx_p_bw", "direction=tx,type=posted"),

    // ---- network ----
    {"network", "npu_chip_info_bandwidth_rx", kChip, "MB/s",
     {{{kPortBandwidth, "layer=nic,direction=rx", kDecimalMegabytes},
       {kNetworkBytes, "direction=rx,layer=mac", kDecimalMegabytes, kPerSecond},
       {kRdmaBandwidth, "direction=rx", kDecimalMegabytes}}},
     {}, kBandwidthNote},
    {"network", "npu_chip_info_bandwidth_tx", kChip, "MB/s",
     {{{kPortBandwidth, "layer=nic,direction=tx", kDecimalMegabytes},
       {kNetworkBytes, "direction=tx,layer=mac", kDecimalMegabytes, kPerSecond},
       {kRdmaBandwidth, "direction=tx", kDecimalMegabytes}}},
     {}, kBandwidthNote},
    Chip("network", "npu_chip_info_link_status", "1/0/-1",
         {"atlas_npu_network_link_up", "port=!/"}),
    Chip("network", "npu_chip_link_speed", "Mb/s",
         {"atlas_npu_network_speed_bytes_per_second", "port=!/", kMegabits}),
    Chip("network", "npu_chip_link_up_num", "count", {"atlas_npu_network_link_up_transitions_total"}),
    {"network", "npu_chip_info_bandwidth_rx", kPort, "MB/s", {}, {},
     "the bandwidth of single A5 ports is not read"},
    {"network", "npu_chip_info_bandwidth_tx", kPort, "MB/s", {}, {},
     "the bandwidth of single A5 ports is not read"},
    {"network", "npu_chip_info_link_status", kPort, "1/0/-1",
     {{{"atlas_npu_network_link_up", "port=/"}}}, {}, {}},
    {"network", "npu_chip_info_link_speed", kPort, "G",
     {{{"atlas_npu_network_speed_bytes_per_second", "port=/", kGigabits}}}, {}, {}},

    // ---- roce ----
    Roce("npu_chip_info_rx_ecn_num", "atlas_npu_roce_ecn_doorbells_total"),
    Roce("npu_chip_info_rx_fcs_num", "atlas_npu_network_fcs_errors_total"),
    Roce("npu_chip_mac_rx_bad_oct_num", "atlas_npu_network_bad_bytes_total", "direction=rx"),
    Roce("npu_chip_mac_rx_bad_pkt_num", "atlas_npu_network_bad_packets_total", "direction=rx"),
    Roce("npu_chip_mac_rx_pause_num", "atlas_npu_network_pause_frames_total", "direction=rx"),
    Chip("roce", "npu_chip_mac_rx_pfc_pkt_num", "count",
         {"atlas_npu_network_pfc_frames_total", "direction=rx", 1, kSum}, "all priorities together"),
    Roce("npu_chip_mac_tx_bad_oct_num", "atlas_npu_network_bad_bytes_total", "direction=tx"),
    Roce("npu_chip_mac_tx_bad_pkt_num", "atlas_npu_network_bad_packets_total", "direction=tx"),
    Roce("npu_chip_mac_tx_pause_num", "atlas_npu_network_pause_frames_total", "direction=tx"),
    Chip("roce", "npu_chip_mac_tx_pfc_pkt_num", "count",
         {"atlas_npu_network_pfc_frames_total", "direction=tx", 1, kSum}, "all priorities together"),
    Roce("npu_chip_roce_new_pkt_rty_num", "atlas_npu_roce_retransmits_total"),
    Roce("npu_chip_roce_out_of_order_num", "atlas_npu_roce_errors_total", "type=out_of_order"),
    Roce("npu_chip_roce_qp_status_err_num", "atlas_npu_roce_errors_total", "type=qp_status"),
    Roce("npu_chip_roce_rx_all_pkt_num", "atlas_npu_roce_packets_total", "direction=rx,kind=all"),
    Roce("npu_chip_roce_rx_cnp_pkt_num", "atlas_npu_roce_packets_total", "direction=rx,kind=cnp"),
    Roce("npu_chip_roce_rx_err_pkt_num", "atlas_npu_roce_packets_total", "direction=rx,kind=err"),
    Roce("npu_chip_roce_tx_all_pkt_num", "atlas_npu_roce_packets_total", "direction=tx,kind=all"),
    Roce("npu_chip_roce_tx_cnp_pkt_num", "atlas_npu_roce_packets_total", "direction=tx,kind=cnp"),
    Roce("npu_chip_roce_tx_err_pkt_num", "atlas_npu_roce_packets_total", "direction=tx,kind=err"),
    Roce("npu_chip_roce_unexpected_ack_num", "atlas_npu_roce_errors_total", "type=unexpected_ack"),
    Roce("npu_chip_roce_verification_err_num", "atlas_npu_roce_errors_total", "type=verification"),

    // ---- optical ----
    Lanes("npu_chip_optical_rx_power_<0..3>", kChip,
          {"atlas_npu_optical_power_watts", "port=!/,direction=rx", kMilli}),
    Chip("optical", "npu_chip_optical_state", "1/0", {"atlas_npu_optical_present", "port=!/"}),
    Chip("optical", "npu_chip_optical_temp", "C",
         {"atlas_npu_optical_temperature_celsius", "port=!/"}),
    Lanes("npu_chip_optical_tx_power_<0..3>", kChip,
          {"atlas_npu_optical_power_watts", "port=!/,direction=tx", kMilli}),
    Chip("optical", "npu_chip_optical_vcc", "mV",
         {"atlas_npu_optical_supply_volts", "port=!/", kMilli}),
    {"optical", "npu_chip_info_optical_index_num", kPort, "count", {}, {},
     "hccn_tool's count of a port's modules is not read"},
    Lanes("npu_chip_info_optical_rx_power_<0..3>", kPort,
          {"atlas_npu_optical_power_watts", "port=/,direction=rx", 1, kDecibels}),
    Lanes("npu_chip_info_optical_tx_power_<0..3>", kPort,
          {"atlas_npu_optical_power_watts", "port=/,direction=tx", 1, kDecibels}),

    // ---- sio, vnpu ----
    Chip("sio", "npu_chip_info_sio_crc_rx_err_cnt", "count",
         {"atlas_npu_sio_crc_errors_total", "direction=rx"}, "since profd started; does not wrap at 65536"),
    Chip("sio", "npu_chip_info_sio_crc_tx_err_cnt", "count",
         {"atlas_npu_sio_crc_errors_total", "direction=tx"}, "since profd started; does not wrap at 65536"),
    {"vnpu", "vnpu_pod_aicore_utilization", kVnpu, "%",
     {{{"atlas_npu_vnpu_utilization_ratio", {}, kPercent}}}, {}, kVnpuNote},
    {"vnpu", "vnpu_pod_total_memory", kVnpu, "KB",
     {{{"atlas_npu_vnpu_memory_bytes", "kind=total", kKilobytes}}}, {}, kVnpuNote},
    {"vnpu", "vnpu_pod_used_memory", kVnpu, "KB",
     {{{"atlas_npu_vnpu_memory_bytes", "kind=used", kKilobytes}}}, {}, kVnpuNote},

    // ---- ub ----
    Ub("npu_chip_info_core_mib_rxbadoctets", "atlas_npu_ub_ethernet_bad_bytes_total",
       "direction=rx"),
    Ub("npu_chip_info_core_mib_rxbadpkts", "atlas_npu_ub_ethernet_bad_packets_total",
       "direction=rx"),
    Ub("npu_chip_info_core_mib_rxpausepkts", "atlas_npu_ub_ethernet_pause_frames_total",
       "direction=rx"),
    Ub("npu_chip_info_core_mib_rxpfcpkts", "atlas_npu_ub_ethernet_pfc_frames_total",
       "direction=rx"),
    Ub("npu_chip_info_core_mib_txbadoctets", "atlas_npu_ub_ethernet_bad_bytes_total",
       "direction=tx"),
    Ub("npu_chip_info_core_mib_txbadpkts", "atlas_npu_ub_ethernet_bad_packets_total",
       "direction=tx"),
    Ub("npu_chip_info_core_mib_txpausepkts", "atlas_npu_ub_ethernet_pause_frames_total",
       "direction=tx"),
    Ub("npu_chip_info_core_mib_txpfcpkts", "atlas_npu_ub_ethernet_pfc_frames_total",
       "direction=tx"),
    Ub("npu_chip_info_crc_error_sum", "atlas_npu_ub_crc_errors_total"),
    Ub("npu_chip_info_drop_ind_cnt_rx", kUbErrors, "direction=rx,type=drop"),
    Ub("npu_chip_info_drop_ind_cnt_tx", kUbErrors, "direction=tx,type=drop"),
    Ub("npu_chip_info_err_ind_cnt_rx", kUbErrors, "direction=rx,type=error"),
    Ub("npu_chip_info_err_ind_cnt_tx", kUbErrors, "direction=tx,type=error"),
    Ub("npu_chip_info_length_err_cnt_rx", kUbErrors, "direction=rx,type=length"),
    Ub("npu_chip_info_length_err_cnt_tx", kUbErrors, "direction=tx,type=length"),
    Ub("npu_chip_info_out_err_cnt_rx", kUbErrors, "direction=rx,type=out"),
    Ub("npu_chip_info_out_err_cnt_tx", kUbErrors, "direction=tx,type=out"),
    Ub("npu_chip_info_route_err_cnt_rx", kUbErrors, "direction=rx,type=route"),
    Ub("npu_chip_info_lpbk_ind_cnt_tx", "atlas_npu_ub_loopback_packets_total"),
    Ub("npu_chip_info_retry_ack_sum", "atlas_npu_ub_retries_total", "kind=ack"),
    Ub("npu_chip_info_retry_req_sum", "atlas_npu_ub_retries_total", "kind=request"),
    Ub("npu_chip_info_rx_busi_flit_num", kUbFlits, "direction=rx,kind=busy"),
    Ub("npu_chip_info_tx_busi_flit_num", kUbFlits, "direction=tx,kind=busy"),
    Ub("npu_chip_info_rx_send_ack_flit", kUbFlits, "direction=rx,kind=ack"),
    Ub("npu_chip_info_tx_recv_ack_flit", kUbFlits, "direction=tx,kind=ack"),
    Ub("npu_chip_info_to_host_pkt_cnt_rx", "atlas_npu_ub_forwarded_packets_total", "target=host"),
    Ub("npu_chip_info_to_imp_pkt_cnt_rx", "atlas_npu_ub_forwarded_packets_total", "target=imp"),
    Ub("npu_chip_info_to_link_pkt_cnt_rx", "atlas_npu_ub_forwarded_packets_total", "target=link"),
    Ub("npu_chip_info_to_mar_pkt_cnt_rx", "atlas_npu_ub_forwarded_packets_total", "target=mar"),
    Ub("npu_chip_info_to_noc_pkt_cnt_rx", "atlas_npu_ub_forwarded_packets_total", "target=noc"),
    Ub("npu_chip_info_ub_compact_pkt_cnt_rx", kUbPackets, "direction=rx,kind=ub_compact"),
    Ub("npu_chip_info_ub_compact_pkt_cnt_tx", kUbPackets, "direction=tx,kind=ub_compact"),
    Ub("npu_chip_info_ub_ipv4_pkt_cnt_rx", kUbPackets, "direction=rx,kind=ub_ipv4"),
    Ub("npu_chip_info_ub_ipv4_pkt_cnt_tx", kUbPackets, "direction=tx,kind=ub_ipv4"),
    Ub("npu_chip_info_ub_ipv6_pkt_cnt_rx", kUbPackets, "direction=rx,kind=ub_ipv6"),
    Ub("npu_chip_info_ub_ipv6_pkt_cnt_tx", kUbPackets, "direction=tx,kind=ub_ipv6"),
    Ub("npu_chip_info_ub_mem_pkt_cnt_rx", kUbPackets, "direction=rx,kind=ub_mem"),
    Ub("npu_chip_info_ub_mem_pkt_cnt_tx", kUbPackets, "direction=tx,kind=ub_mem"),
    Ub("npu_chip_info_ub_umoc_ctph_cnt_rx", kUbPackets, "direction=rx,kind=ub_umoc_ctph"),
    Ub("npu_chip_info_ub_umoc_ctph_cnt_tx", kUbPackets, "direction=tx,kind=ub_umoc_ctph"),
    Ub("npu_chip_info_ub_umoc_ntph_cnt_rx", kUbPackets, "direction=rx,kind=ub_umoc_ntph"),
    Ub("npu_chip_info_ub_umoc_ntph_cnt_tx", kUbPackets, "direction=tx,kind=ub_umoc_ntph"),
    Ub("npu_chip_info_unic_ipv4_pkt_cnt_rx", kUbPackets, "direction=rx,kind=unic_ipv4"),
    Ub("npu_chip_info_unic_ipv4_pkt_cnt_tx", kUbPackets, "direction=tx,kind=unic_ipv4"),
    Ub("npu_chip_info_unic_ipv6_pkt_cnt_rx", kUbPackets, "direction=rx,kind=unic_ipv6"),
    Ub("npu_chip_info_unic_ipv6_pkt_cnt_tx", kUbPackets, "direction=tx,kind=unic_ipv6"),
    Ub("npu_chip_info_unknown_pkt_cnt_rx", kUbPackets, "direction=rx,kind=unknown"),
    Ub("npu_chip_info_unknown_pkt_cnt_tx", kUbPackets, "direction=tx,kind=unknown"),
};

}  // namespace

std::span<const NpuExporterRow> NpuExporterTable() { return kRows; }

std::string_view NpuExporterLabelNames(NpuExporterLabels labels) {
  switch (labels) {
    case kNone:
      return "";
    case kVersion:
      return "exporterVersion";
    case kNode:
      return "exporterVersion,driverVersion";
    case kChip:
    case kInContainer:
      return "id,model_name,vdie_id,pcie_bus_info,namespace,pod_name,container_name";
    case kChipName:
      return "id,name,vdie_id,pcie_bus_info,namespace,pod_name,container_name";
    case kSerial:
      return "id,model_name,vdie_id,pcie_bus_info,namespace,pod_name,container_name,serial_number";
    case kProduct:
      return "id,model_name,vdie_id,pcie_bus_info,namespace,pod_name,container_name,product_type";
    case kProcess:
      return "id,model_name,vdie_id,pcie_bus_info,namespace,pod_name,container_name,process_id,"
             "container_id";
    case kContainer:
      return "npuID,model_name,vdie_id,pcie_bus_info,namespace,pod_name,container_name,containerID,"
             "containerName";
    case kPcie:
      return "id,model_name,vdie_id,pcie_bus_info,namespace,pod_name,container_name,pcie_bw_type";
    case kPort:
      return "id,model_name,vdie_id,pcie_bus_info,namespace,pod_name,container_name,udie,port";
    case kVnpu:
      return "id,model_name,v_dev_id,aicore_count,namespace,pod_name,container_name,is_virtual";
  }
  return "";
}

NpuExporterName SplitNpuExporterName(std::string_view name) {
  NpuExporterName split{name};
  const size_t open = name.find('<');
  if (open == std::string_view::npos) return split;
  split.stem = name.substr(0, open);
  const std::string_view range = name.substr(open + 1);  // "1..7>"
  const char* end = range.data() + range.size();
  std::from_chars(range.data(), end, split.first);
  std::from_chars(range.data() + range.find("..") + 2, end, split.last);
  return split;
}

std::span<const NpuExporterSource> SourcesOf(const NpuExporterRow& row) {
  size_t count = 0;
  while (count < row.sources.size() && !row.sources[count].metric.empty()) ++count;
  return std::span(row.sources).first(count);
}

}  // namespace profd
