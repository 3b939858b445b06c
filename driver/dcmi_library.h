// libdcmi.so as a table of optional functions. Everything that is ever looked up in it is listed in
// VisitDcmiSymbols and nowhere else; a static_assert below keeps that list to queries, so that no
// setter, reset or active probe can slip into the daemon (dcmi-and-metrics 1.9, item 8).
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "base/status.h"
#include "driver/abi/dcmi_abi.h"

namespace profd {

// The same query in both generations of the interface: v1 takes (card, device, ...), v2 the logical
// id alone.
template <class V1>
struct DcmiPair;
template <class... Args>
struct DcmiPair<int (*)(int, int, Args...)> {
  int (*v1)(int, int, Args...) = nullptr;
  int (*v2)(int, Args...) = nullptr;
};

// Null: the library has no such function.
struct DcmiFunctions {
  // The library and the node.
  abi::DcmiInitFn init = nullptr;
  abi::DcmiInitFn v2_init = nullptr;
  abi::DcmiGetVersionFn dcmi_version = nullptr;
  abi::DcmiGetVersionFn v2_dcmi_version = nullptr;
  abi::DcmiGetVersionFn driver_version = nullptr;
  abi::DcmiGetVersionFn v2_driver_version = nullptr;
  abi::DcmiGetDriverHealthFn driver_health = nullptr;
  abi::DcmiGetDriverHealthFn v2_driver_health = nullptr;
  // Enumeration.
  abi::DcmiGetCardListFn card_list = nullptr;
  abi::DcmiGetDeviceNumInCardFn device_num_in_card = nullptr;
  abi::DcmiGetDeviceLogicIdFn device_logic_id = nullptr;
  abi::DcmiConvertIdFn phyid_from_logicid = nullptr;
  abi::DcmiV2GetDeviceListFn v2_device_list = nullptr;
  abi::DcmiConvertIdFn v2_chip_phy_id = nullptr;
  DcmiPair<abi::DcmiGetDeviceTypeFn> device_type;
  // Identity.
  DcmiPair<abi::DcmiGetChipInfoFn> chip_info;
  DcmiPair<abi::DcmiGetDieFn> die;
  DcmiPair<abi::DcmiGetPcieInfoFn> pcie_info;
  abi::DcmiGetBoardInfoFn board_info = nullptr;
  int (*v2_board_id)(int, unsigned*) = nullptr;
  abi::DcmiGetElabelFn elabel = nullptr;     // (card, out)
  abi::DcmiGetElabelFn v2_elabel = nullptr;  // (logical id, out)
  DcmiPair<abi::DcmiGetCompatibilityFn> compatibility;
  DcmiPair<abi::DcmiGetBootStatusFn> boot_status;
  abi::DcmiGetTopoFn topology = nullptr;
  // State; rows of dcmi-and-metrics 1.3.
  DcmiPair<abi::DcmiGetHealthFn> health;
  DcmiPair<abi::DcmiGetErrorCodeFn> error_codes;
  DcmiPair<abi::DcmiGetCurrentFaultsFn> current_faults;
  DcmiPair<abi::DcmiGetTemperatureFn> temperature;
  DcmiPair<abi::DcmiGetPowerFn> power;
  DcmiPair<abi::DcmiGetVoltageFn> voltage;
  DcmiPair<abi::DcmiGetFrequencyFn> frequency;
  DcmiPair<abi::DcmiGetAicoreInfoFn> aicore_info;
  DcmiPair<abi::DcmiGetAicpuInfoFn> aicpu_info;
  DcmiPair<abi::DcmiGetUtilizationFn> utilization;
  DcmiPair<abi::DcmiGetMultiUtilizationFn> multi_utilization;
  DcmiPair<abi::DcmiGetHbmInfoFn> hbm_info;
  abi::DcmiGetMemoryInfoV3Fn memory_info_v3 = nullptr;
  abi::DcmiGetMemoryInfoFn memory_info = nullptr;
  DcmiPair<abi::DcmiGetCgroupInfoFn> cgroup_info;
  DcmiPair<abi::DcmiGetEccInfoFn> ecc_info;
  DcmiPair<abi::DcmiGetPcieBandwidthFn> pcie_bandwidth;
  DcmiPair<abi::DcmiGetPcieErrorCntFn> pcie_error_counts;
  abi::DcmiGetHccsBandwidthFn hccs_bandwidth = nullptr;
  DcmiPair<abi::DcmiGetDeviceInfoFn> device_info;
  DcmiPair<abi::DcmiGetNetworkHealthFn> network_health;
  DcmiPair<abi::DcmiGetPktStatsFn> packet_statistics;
  DcmiPair<abi::DcmiGetRdmaBandwidthFn> rdma_bandwidth;
  DcmiPair<abi::DcmiGetLlcPerfFn> llc_perf;
  abi::DcmiGetDvppRatioFn dvpp_ratio = nullptr;
  DcmiPair<abi::DcmiGetResourceInfoFn> processes;
  DcmiPair<abi::DcmiGetSensorInfoFn> sensor_info;
  abi::DcmiGetHccsCreditsFn hccs_credits = nullptr;
  abi::DcmiGetTcStatFn traffic_classes = nullptr;
  abi::DcmiGetPfcDurationFn pfc_duration = nullptr;
  abi::DcmiGetExtraStatisticsFn extra_statistics = nullptr;
  DcmiPair<abi::DcmiGetSerdesQualityFn> serdes_quality;
  abi::DcmiV2GetUbPortListFn v2_ub_port_list = nullptr;
  abi::DcmiV2GetPortPktStatsFn v2_ub_port_statistics = nullptr;
  abi::DcmiV2GetUbLinkStatusFn v2_ub_link_status = nullptr;
  abi::DcmiGetBoardPowerFn board_power = nullptr;
};

// The part of VisitDcmiSymbols about ports, lanes and cards.
template <class Functions, class Visit>
constexpr void VisitDcmiPortSymbols(Functions& f, Visit& visit) {
  visit("dcmi_get_rdma_bandwidth_info", f.rdma_bandwidth.v1);
  visit("dcmiv2_get_rdma_bandwidth_info", f.rdma_bandwidth.v2);
  visit("dcmi_get_hccs_avail_credit_info", f.hccs_credits);
  visit("dcmi_get_netdev_tc_stat_info", f.traffic_classes);
  visit("dcmi_get_pfc_duration_info", f.pfc_duration);
  visit("dcmi_get_extra_statistics_info", f.extra_statistics);
  visit("dcmi_get_serdes_quality_info", f.serdes_quality.v1);
  visit("dcmiv2_get_serdes_quality_info", f.serdes_quality.v2);
  visit("dcmiv2_get_device_port_list_info", f.v2_ub_port_list);
  visit("dcmiv2_get_port_pkt_stats_info", f.v2_ub_port_statistics);
  visit("dcmiv2_get_ub_port_link_status", f.v2_ub_link_status);
  visit("dcmi_mcu_get_power_info", f.board_power);
}

// Calls visit(name, slot) for every symbol of the table.
template <class Functions, class Visit>
constexpr void VisitDcmiSymbols(Functions& f, Visit&& visit) {
  visit("dcmi_init", f.init);
  visit("dcmiv2_init", f.v2_init);
  visit("dcmi_get_dcmi_version", f.dcmi_version);
  visit("dcmiv2_get_dcmi_version", f.v2_dcmi_version);
  visit("dcmi_get_driver_version", f.driver_version);
  visit("dcmiv2_get_driver_version", f.v2_driver_version);
  visit("dcmi_get_driver_health", f.driver_health);
  visit("dcmiv2_get_driver_health", f.v2_driver_health);
  visit("dcmi_get_card_list", f.card_list);
  visit("dcmi_get_device_num_in_card", f.device_num_in_card);
  visit("dcmi_get_device_logic_id", f.device_logic_id);
  visit("dcmi_get_device_phyid_from_logicid", f.phyid_from_logicid);
  visit("dcmiv2_get_device_list", f.v2_device_list);
  visit("dcmiv2_get_chip_phy_id_by_dev_id", f.v2_chip_phy_id);
  visit("dcmi_get_device_type", f.device_type.v1);
  visit("dcmiv2_get_device_type", f.device_type.v2);
  visit("dcmi_get_device_chip_info_v2", f.chip_info.v1);
  visit("dcmiv2_get_device_chip_info", f.chip_info.v2);
  visit("dcmi_get_device_die_v2", f.die.v1);
  visit("dcmiv2_get_device_die_id", f.die.v2);
  visit("dcmi_get_device_pcie_info_v2", f.pcie_info.v1);
  visit("dcmiv2_get_device_pcie_info", f.pcie_info.v2);
  visit("dcmi_get_device_board_info", f.board_info);
  visit("dcmiv2_get_device_board_id", f.v2_board_id);
  visit("dcmi_get_card_elabel_v2", f.elabel);
  visit("dcmiv2_get_device_elabel_info", f.v2_elabel);
  visit("dcmi_get_device_compatibility", f.compatibility.v1);
  visit("dcmiv2_get_device_compatibility", f.compatibility.v2);
  visit("dcmi_get_device_boot_status", f.boot_status.v1);
  visit("dcmiv2_get_device_boot_status", f.boot_status.v2);
  visit("dcmi_get_topo_info_by_device_id", f.topology);
  visit("dcmi_get_device_health", f.health.v1);
  visit("dcmiv2_get_device_health", f.health.v2);
  visit("dcmi_get_device_errorcode_v2", f.error_codes.v1);
  visit("dcmiv2_get_device_error_code_list", f.error_codes.v2);
  visit("dcmi_get_device_current_fault_event", f.current_faults.v1);
  visit("dcmiv2_get_device_current_fault_event", f.current_faults.v2);
  visit("dcmi_get_device_temperature", f.temperature.v1);
  visit("dcmiv2_get_device_temperature", f.temperature.v2);
  visit("dcmi_get_device_power_info", f.power.v1);
  visit("dcmiv2_get_device_power_info", f.power.v2);
  visit("dcmi_get_device_voltage", f.voltage.v1);
  visit("dcmiv2_get_device_voltage", f.voltage.v2);
  visit("dcmi_get_device_frequency", f.frequency.v1);
  visit("dcmiv2_get_device_frequency", f.frequency.v2);
  visit("dcmi_get_device_aicore_info", f.aicore_info.v1);
  visit("dcmiv2_get_device_aicore_info", f.aicore_info.v2);
  visit("dcmi_get_device_aicpu_info", f.aicpu_info.v1);
  visit("dcmiv2_get_device_aicpu_info", f.aicpu_info.v2);
  visit("dcmi_get_device_utilization_rate", f.utilization.v1);
  visit("dcmiv2_get_device_utilization_rate", f.utilization.v2);
  visit("dcmi_get_device_multi_utilization_rate", f.multi_utilization.v1);
  visit("dcmiv2_get_device_multi_utilization_rate", f.multi_utilization.v2);
  visit("dcmi_get_device_hbm_info", f.hbm_info.v1);
  visit("dcmiv2_get_device_hbm_info", f.hbm_info.v2);
  visit("dcmi_get_device_memory_info_v3", f.memory_info_v3);
  visit("dcmi_get_memory_info", f.memory_info);
  visit("dcmi_get_device_cgroup_info", f.cgroup_info.v1);
  visit("dcmiv2_get_device_cgroup_info", f.cgroup_info.v2);
  visit("dcmi_get_device_ecc_info", f.ecc_info.v1);
  visit("dcmiv2_get_device_ecc_info", f.ecc_info.v2);
  visit("dcmi_get_pcie_link_bandwidth_info", f.pcie_bandwidth.v1);
  visit("dcmiv2_get_pcie_link_bandwidth_info", f.pcie_bandwidth.v2);
  visit("dcmi_get_device_pcie_error_cnt", f.pcie_error_counts.v1);
  visit("dcmiv2_get_device_pcie_error_cnt", f.pcie_error_counts.v2);
  visit("dcmi_get_hccs_link_bandwidth_info", f.hccs_bandwidth);
  visit("dcmi_get_device_info", f.device_info.v1);
  visit("dcmiv2_get_device_info", f.device_info.v2);
  visit("dcmi_get_device_network_health", f.network_health.v1);
  visit("dcmiv2_get_device_network_health", f.network_health.v2);
  visit("dcmi_get_netdev_pkt_stats_info", f.packet_statistics.v1);
  visit("dcmiv2_get_netdev_pkt_stats_info", f.packet_statistics.v2);
  visit("dcmi_get_device_llc_perf_para", f.llc_perf.v1);
  visit("dcmiv2_get_device_llc_perf_para", f.llc_perf.v2);
  visit("dcmi_get_device_dvpp_ratio_info", f.dvpp_ratio);
  visit("dcmi_get_device_resource_info", f.processes.v1);
  visit("dcmiv2_get_device_proc_mem_info", f.processes.v2);
  visit("dcmi_get_device_sensor_info", f.sensor_info.v1);
  visit("dcmiv2_get_device_sensor_info", f.sensor_info.v2);
  VisitDcmiPortSymbols(f, visit);
}

// What a name of that list may look like.
constexpr bool IsDcmiQuery(std::string_view name) {
  return name == "dcmi_init" || name == "dcmiv2_init" || name.starts_with("dcmi_get_") ||
         name.starts_with("dcmi_mcu_get_") || name.starts_with("dcmiv2_get_");
}
static_assert(
    [] {
      DcmiFunctions functions;
      bool only_queries = true;
      VisitDcmiSymbols(functions, [&](std::string_view name, auto&) {
        only_queries = only_queries && IsDcmiQuery(name);
      });
      return only_queries;
    }(),
    "the daemon only reads: no setter of libdcmi may be looked up");

// A loaded library; it stays loaded for good (dl_library.h), so the functions outlive every copy.
struct DcmiLibrary {
  DcmiFunctions functions;
  std::string path;                  // what was loaded; empty for a table made by hand
  std::vector<std::string> missing;  // names the library does not have: those calls are unsupported
};

struct DcmiLibraryOptions {
  std::string configured_path;     // tried alone when set
  bool trust_unsafe_path = false;  // see DlOptions
};

// Otherwise looks for libdcmi.so by its bare name and then in the driver's usual folders.
Result<DcmiLibrary> LoadDcmiLibrary(const DcmiLibraryOptions& options);

}  // namespace profd
