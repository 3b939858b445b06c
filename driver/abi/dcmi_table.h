// THE table of libdcmi: every function that is looked up in it, and every question that is asked of
// these functions (dcmi-and-metrics 1.3). A metric value is a QUERY row here, and a row in
// collectors/metrics_device.h for the series it feeds. A structure that one question alone uses may
// be declared here, above the rows.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <string_view>

#include "driver/abi/dcmi_abi.h"

/* ONE(member, type, symbol) is a function of one generation of the interface;
   PAIR(member, v1 type, v1 symbol, v2 symbol) one that both have. */
#define PROFD_DCMI_FUNCTIONS(ONE, PAIR)                                                           \
  ONE(init, DcmiInitFn, "dcmi_init")                                                              \
  ONE(v2_init, DcmiInitFn, "dcmiv2_init")                                                         \
  ONE(dcmi_version, DcmiGetVersionFn, "dcmi_get_dcmi_version")                                    \
  ONE(v2_dcmi_version, DcmiGetVersionFn, "dcmiv2_get_dcmi_version")                               \
  ONE(driver_version, DcmiGetVersionFn, "dcmi_get_driver_version")                                \
  ONE(v2_driver_version, DcmiGetVersionFn, "dcmiv2_get_driver_version")                           \
  ONE(driver_health, DcmiGetDriverHealthFn, "dcmi_get_driver_health")                             \
  ONE(v2_driver_health, DcmiGetDriverHealthFn, "dcmiv2_get_driver_health")                        \
  ONE(card_list, DcmiGetCardListFn, "dcmi_get_card_list")                                         \
  ONE(device_num_in_card, DcmiGetDeviceNumInCardFn, "dcmi_get_device_num_in_card")                \
  ONE(device_logic_id, DcmiGetDeviceLogicIdFn, "dcmi_get_device_logic_id")                        \
  ONE(phyid_from_logicid, DcmiConvertIdFn, "dcmi_get_device_phyid_from_logicid")                  \
  ONE(v2_device_list, DcmiV2GetDeviceListFn, "dcmiv2_get_device_list")                            \
  ONE(v2_chip_phy_id, DcmiConvertIdFn, "dcmiv2_get_chip_phy_id_by_dev_id")                        \
  PAIR(device_type, DcmiDeviceQueryFn<int>, "dcmi_get_device_type", "dcmiv2_get_device_type")     \
  PAIR(chip_info, DcmiDeviceQueryFn<DcmiChipInfoV2>,                                              \
       "dcmi_get_device_chip_info_v2", "dcmiv2_get_device_chip_info")                             \
  ONE(old_chip_info, DcmiDeviceQueryFn<DcmiChipInfoV2>, "dcmi_get_device_chip_info")              \
  PAIR(die, DcmiGetDieFn, "dcmi_get_device_die_v2", "dcmiv2_get_device_die_id")                   \
  PAIR(pcie_info, DcmiDeviceQueryFn<DcmiPcieInfoAll>,                                             \
       "dcmi_get_device_pcie_info_v2", "dcmiv2_get_device_pcie_info")                             \
  ONE(board_info, DcmiDeviceQueryFn<DcmiBoardInfo>, "dcmi_get_device_board_info")                 \
  ONE(v2_board_info, DcmiV2DeviceQueryFn<DcmiBoardInfo>, "dcmiv2_get_device_board_info")          \
  ONE(v2_board_id, DcmiV2DeviceQueryFn<unsigned>, "dcmiv2_get_device_board_id")                   \
  ONE(mainboard_id, DcmiDeviceQueryFn<unsigned>, "dcmi_get_mainboard_id")                         \
  ONE(elabel, DcmiGetElabelFn, "dcmi_get_card_elabel_v2")                                         \
  ONE(v2_elabel, DcmiGetElabelFn, "dcmiv2_get_device_elabel_info")                                \
  ONE(product_type, DcmiGetProductTypeFn, "dcmi_get_product_type")                                \
  PAIR(compatibility, DcmiDeviceQueryFn<int>,                                                     \
       "dcmi_get_device_compatibility", "dcmiv2_get_device_compatibility")                        \
  PAIR(boot_status, DcmiDeviceQueryFn<int>,                                                       \
       "dcmi_get_device_boot_status", "dcmiv2_get_device_boot_status")                            \
  ONE(topology, DcmiGetTopoFn, "dcmi_get_topo_info_by_device_id")                                 \
  PAIR(health, DcmiDeviceQueryFn<unsigned>, "dcmi_get_device_health", "dcmiv2_get_device_health") \
  PAIR(error_codes, DcmiGetErrorCodeFn,                                                           \
       "dcmi_get_device_errorcode_v2", "dcmiv2_get_device_error_code_list")                       \
  PAIR(current_faults, DcmiGetCurrentFaultsFn,                                                    \
       "dcmi_get_device_current_fault_event", "dcmiv2_get_device_current_fault_event")            \
  PAIR(temperature, DcmiDeviceQueryFn<int>,                                                       \
       "dcmi_get_device_temperature", "dcmiv2_get_device_temperature")                            \
  PAIR(power, DcmiDeviceQueryFn<int>,                                                             \
       "dcmi_get_device_power_info", "dcmiv2_get_device_power_info")                              \
  PAIR(voltage, DcmiDeviceQueryFn<unsigned>,                                                      \
       "dcmi_get_device_voltage", "dcmiv2_get_device_voltage")                                    \
  PAIR(frequency, DcmiGetFrequencyFn, "dcmi_get_device_frequency", "dcmiv2_get_device_frequency") \
  PAIR(aicore_info, DcmiDeviceQueryFn<DcmiAicoreInfo>,                                            \
       "dcmi_get_device_aicore_info", "dcmiv2_get_device_aicore_info")                            \
  PAIR(aicpu_info, DcmiDeviceQueryFn<DcmiAicpuInfo>,                                              \
       "dcmi_get_device_aicpu_info", "dcmiv2_get_device_aicpu_info")                              \
  PAIR(utilization, DcmiGetUtilizationFn,                                                         \
       "dcmi_get_device_utilization_rate", "dcmiv2_get_device_utilization_rate")                  \
  PAIR(multi_utilization, DcmiDeviceQueryFn<DcmiMultiUtilizationInfo>,                            \
       "dcmi_get_device_multi_utilization_rate", "dcmiv2_get_device_multi_utilization_rate")      \
  PAIR(hbm_info, DcmiDeviceQueryFn<DcmiHbmInfo>,                                                  \
       "dcmi_get_device_hbm_info", "dcmiv2_get_device_hbm_info")                                  \
  ONE(memory_info_v3, DcmiDeviceQueryFn<DcmiMemoryInfoV3>, "dcmi_get_device_memory_info_v3")      \
  ONE(memory_info, DcmiDeviceQueryFn<DcmiMemoryInfo>, "dcmi_get_memory_info")                     \
  PAIR(cgroup_info, DcmiDeviceQueryFn<DcmiCgroupInfo>,                                            \
       "dcmi_get_device_cgroup_info", "dcmiv2_get_device_cgroup_info")                            \
  PAIR(ecc_info, DcmiGetEccInfoFn, "dcmi_get_device_ecc_info", "dcmiv2_get_device_ecc_info")      \
  PAIR(pcie_bandwidth, DcmiDeviceQueryFn<DcmiPcieLinkBandwidthInfo>,                              \
       "dcmi_get_pcie_link_bandwidth_info", "dcmiv2_get_pcie_link_bandwidth_info")                \
  PAIR(pcie_error_counts, DcmiDeviceQueryFn<DcmiChipPcieErrRate>,                                 \
       "dcmi_get_device_pcie_error_cnt", "dcmiv2_get_device_pcie_error_cnt")                      \
  ONE(hccs_bandwidth, DcmiDeviceQueryFn<DcmiHccsBandwidthInfo>,                                   \
       "dcmi_get_hccs_link_bandwidth_info")                                                       \
  PAIR(device_info, DcmiGetDeviceInfoFn, "dcmi_get_device_info", "dcmiv2_get_device_info")        \
  PAIR(network_health, DcmiDeviceQueryFn<int>,                                                    \
       "dcmi_get_device_network_health", "dcmiv2_get_device_network_health")                      \
  PAIR(packet_statistics, DcmiGetPktStatsFn,                                                      \
       "dcmi_get_netdev_pkt_stats_info", "dcmiv2_get_netdev_pkt_stats_info")                      \
  PAIR(llc_perf, DcmiDeviceQueryFn<DcmiLlcPerf>,                                                  \
       "dcmi_get_device_llc_perf_para", "dcmiv2_get_device_llc_perf_para")                        \
  ONE(dvpp_ratio, DcmiDeviceQueryFn<DcmiDvppRatio>, "dcmi_get_device_dvpp_ratio_info")            \
  PAIR(processes, DcmiGetResourceInfoFn,                                                          \
       "dcmi_get_device_resource_info", "dcmiv2_get_device_proc_mem_info")                        \
  PAIR(sensor_info, DcmiGetSensorInfoFn,                                                          \
       "dcmi_get_device_sensor_info", "dcmiv2_get_device_sensor_info")                            \
  PAIR(rdma_bandwidth, DcmiGetRdmaBandwidthFn,                                                    \
       "dcmi_get_rdma_bandwidth_info", "dcmiv2_get_rdma_bandwidth_info")                          \
  ONE(hccs_credits, DcmiDeviceQueryFn<DcmiHccsCreditInfo>, "dcmi_get_hccs_avail_credit_info")     \
  ONE(traffic_classes, DcmiDeviceQueryFn<DcmiTcStatData>, "dcmi_get_netdev_tc_stat_info")         \
  ONE(pfc_duration, DcmiDeviceQueryFn<DcmiPfcDurationInfo>, "dcmi_get_pfc_duration_info")         \
  ONE(extra_statistics, DcmiGetExtraStatisticsFn, "dcmi_get_extra_statistics_info")               \
  PAIR(serdes_quality, DcmiGetSerdesQualityFn,                                                    \
       "dcmi_get_serdes_quality_info", "dcmiv2_get_serdes_quality_info")                          \
  ONE(v2_ub_port_list, DcmiV2DeviceQueryFn<DcmiUbPortList>, "dcmiv2_get_device_port_list_info")   \
  ONE(v2_ub_port_statistics, DcmiV2GetPortPktStatsFn, "dcmiv2_get_port_pkt_stats_info")           \
  ONE(v2_ub_link_status, DcmiV2DeviceQueryFn<DcmiUbPortLinkStatus>,                               \
       "dcmiv2_get_ub_port_link_status")                                                          \
  ONE(board_power, DcmiGetBoardPowerFn, "dcmi_mcu_get_power_info")

/* QUERY(name, label, answer, how) is a question about an NPU that a function answers as it stands:
   `how` uses f (the functions), at (whom to ask) and out (the answer). DcmiService::Ask asks it as
   dcmi::name. CALL(name, label) is one that needs code of its own, in DcmiService. The label is the
   v1 name of the function, and after a slash its selector. Calls up to kDeviceList, but for
   kDriverHealth, belong to start-up and are always tried again. */
#define PROFD_DCMI_CALLS(CALL, QUERY)                                                             \
  CALL(kInit, "dcmi_init")                                                                        \
  CALL(kDcmiVersion, "dcmi_get_dcmi_version")                                                     \
  CALL(kDriverVersion, "dcmi_get_driver_version")                                                 \
  CALL(kDriverHealth, "dcmi_get_driver_health")                                                   \
  CALL(kCardList, "dcmi_get_card_list")                                                           \
  CALL(kDeviceNumInCard, "dcmi_get_device_num_in_card")                                           \
  CALL(kDeviceType, "dcmi_get_device_type")                                                       \
  CALL(kLogicId, "dcmi_get_device_logic_id")                                                      \
  CALL(kPhysicalId, "dcmi_get_device_phyid_from_logicid")                                         \
  CALL(kDeviceList, "dcmiv2_get_device_list")                                                     \
  CALL(kChipInfo, "dcmi_get_device_chip_info")                                                    \
  CALL(kVdie, "dcmi_get_device_die/vdie")                                                         \
  CALL(kDdie, "dcmi_get_device_die/ddie")                                                         \
  CALL(kPcieInfo, "dcmi_get_device_pcie_info")                                                    \
  CALL(kBoardInfo, "dcmi_get_device_board_info")                                                  \
  CALL(kMainboardId, "dcmi_get_mainboard_id")                                                     \
  CALL(kElabel, "dcmi_get_card_elabel")                                                           \
  CALL(kProductType, "dcmi_get_product_type")                                                     \
  QUERY(kCompatibility, "dcmi_get_device_compatibility",                                          \
        int, at.Invoke(f.compatibility, out)) /* 1 yes, 2 no, 3 unknown */                        \
  QUERY(kBootStatus, "dcmi_get_device_boot_status",                                               \
        int, at.Invoke(f.boot_status, out)) /* 16: finished */                                    \
  CALL(kTopology, "dcmi_get_topo_info_by_device_id")                                              \
  QUERY(kHealth, "dcmi_get_device_health", unsigned, at.Invoke(f.health, out))                    \
  CALL(kErrorCodes, "dcmi_get_device_errorcode")                                                  \
  CALL(kCurrentFaults, "dcmi_get_device_current_fault_event")                                     \
  QUERY(kTemperature, "dcmi_get_device_temperature",                                              \
        int, at.Invoke(f.temperature, out)) /* degrees C */                                       \
  QUERY(kPower, "dcmi_get_device_power_info", int, at.Invoke(f.power, out)) /* 0.1 W */           \
  QUERY(kVoltage, "dcmi_get_device_voltage", unsigned, at.Invoke(f.voltage, out)) /* 0.01 V */    \
  QUERY(kFrequencyDdr, "dcmi_get_device_frequency/ddr",                                           \
        unsigned, at.Invoke(f.frequency, abi::kFreqDdr, out)) /* MHz, these six */                \
  QUERY(kFrequencyCtrlCpu, "dcmi_get_device_frequency/ctrlcpu",                                   \
        unsigned, at.Invoke(f.frequency, abi::kFreqCtrlCpu, out))                                 \
  QUERY(kFrequencyHbm, "dcmi_get_device_frequency/hbm",                                           \
        unsigned, at.Invoke(f.frequency, abi::kFreqHbm, out))                                     \
  QUERY(kFrequencyAicore, "dcmi_get_device_frequency/aicore",                                     \
        unsigned, at.Invoke(f.frequency, abi::kFreqAicoreCurrent, out))                           \
  QUERY(kFrequencyAicoreRated, "dcmi_get_device_frequency/aicore_rated",                          \
        unsigned, at.Invoke(f.frequency, abi::kFreqAicoreRated, out))                             \
  QUERY(kFrequencyVector, "dcmi_get_device_frequency/vector",                                     \
        unsigned, at.Invoke(f.frequency, abi::kFreqVectorCurrent, out))                           \
  QUERY(kAicoreInfo, "dcmi_get_device_aicore_info",                                               \
        abi::DcmiAicoreInfo, at.Invoke(f.aicore_info, out)) /* MHz */                             \
  QUERY(kAicpuInfo, "dcmi_get_device_aicpu_info",                                                 \
        abi::DcmiAicpuInfo, at.Invoke(f.aicpu_info, out)) /* MHz */                               \
  QUERY(kUtilAicore, "dcmi_get_device_utilization_rate/aicore",                                   \
        unsigned, at.Invoke(f.utilization, abi::kUtilAicore, out)) /* %, these eight */           \
  QUERY(kUtilAicpu, "dcmi_get_device_utilization_rate/aicpu",                                     \
        unsigned, at.Invoke(f.utilization, abi::kUtilAicpu, out))                                 \
  QUERY(kUtilCtrlCpu, "dcmi_get_device_utilization_rate/ctrlcpu",                                 \
        unsigned, at.Invoke(f.utilization, abi::kUtilCtrlCpu, out))                               \
  QUERY(kUtilHbm, "dcmi_get_device_utilization_rate/hbm",                                         \
        unsigned, at.Invoke(f.utilization, abi::kUtilHbm, out))                                   \
  QUERY(kUtilHbmBandwidth, "dcmi_get_device_utilization_rate/hbm_bandwidth",                      \
        unsigned, at.Invoke(f.utilization, abi::kUtilHbmBandwidth, out))                          \
  QUERY(kUtilVector, "dcmi_get_device_utilization_rate/vector",                                   \
        unsigned, at.Invoke(f.utilization, abi::kUtilVector, out))                                \
  QUERY(kUtilNpu, "dcmi_get_device_utilization_rate/npu",                                         \
        unsigned, at.Invoke(f.utilization, abi::kUtilNpu, out))                                   \
  QUERY(kUtilCube, "dcmi_get_device_utilization_rate/cube",                                       \
        unsigned, at.Invoke(f.utilization, abi::kUtilCube, out))                                  \
  QUERY(kMultiUtilization, "dcmi_get_device_multi_utilization_rate",                              \
        abi::DcmiMultiUtilizationInfo, at.Invoke(f.multi_utilization, out)) /* % */               \
  QUERY(kHbmInfo, "dcmi_get_device_hbm_info",                                                     \
        abi::DcmiHbmInfo, at.Invoke(f.hbm_info, out)) /* MB, MHz, degrees C, % */                 \
  QUERY(kMemoryInfoV3, "dcmi_get_device_memory_info_v3",                                          \
        abi::DcmiMemoryInfoV3, at.InvokeV1(f.memory_info_v3, out)) /* MB, % */                    \
  QUERY(kMemoryInfo, "dcmi_get_memory_info",                                                      \
        abi::DcmiMemoryInfo, at.InvokeV1(f.memory_info, out)) /* MB, % */                         \
  QUERY(kCgroupInfo, "dcmi_get_device_cgroup_info",                                               \
        abi::DcmiCgroupInfo, at.Invoke(f.cgroup_info, out)) /* bytes */                           \
  CALL(kEccDdr, "dcmi_get_device_ecc_info/ddr")                                                   \
  CALL(kEccHbm, "dcmi_get_device_ecc_info/hbm")                                                   \
  CALL(kPcieBandwidth, "dcmi_get_pcie_link_bandwidth_info")                                       \
  QUERY(kPcieErrorCounts, "dcmi_get_device_pcie_error_cnt",                                       \
        abi::DcmiChipPcieErrRate, at.Invoke(f.pcie_error_counts, out))                            \
  QUERY(kPcieErrors, "dcmi_get_device_info/pcie_errors",                                          \
        abi::DcmiPcieErrors, at.Info(f, abi::kCmdPcie, abi::kSubPcieErrors, out))                 \
  CALL(kHccsBandwidth, "dcmi_get_hccs_link_bandwidth_info")                                       \
  QUERY(kHccsStatistic, "dcmi_get_device_info/hccs_statistic",                                    \
        abi::DcmiHccsStatisticInfo, at.Info(f, abi::kCmdHccs, abi::kSubHccsStatistic, out))       \
  QUERY(kHccsStatisticU64, "dcmi_get_device_info/hccs_statistic_u64",                             \
        abi::DcmiHccsStatisticInfoU64, at.Info(f, abi::kCmdHccs, abi::kSubHccsStatisticU64, out)) \
  QUERY(kHccsStatus, "dcmi_get_device_info/hccs_status",                                          \
        abi::DcmiHccsStatus, at.Info(f, abi::kCmdHccs, abi::kSubHccsStatus, out))                 \
  QUERY(kHccsLanes, "dcmi_get_device_info/hccs_lanes",                                            \
        abi::DcmiHccsLanes, at.Info(f, abi::kCmdHccs, abi::kSubHccsLanes, out))                   \
  QUERY(kSioCrc, "dcmi_get_device_info/sio_crc",                                                  \
        abi::DcmiSioCrcErrInfo, at.Info(f, abi::kCmdSio, abi::kSubSioCrc, out))                   \
  CALL(kCoreUtilAicore, "dcmi_get_device_info/aicore_cores")                                      \
  CALL(kCoreUtilVector, "dcmi_get_device_info/vector_cores")                                      \
  QUERY(kThrottleReason, "dcmi_get_device_info/freq_reduction_cause",                             \
        unsigned, at.Info(f, abi::kCmdLp, abi::kSubLpFreqReductionCause, out)) /* bit mask */     \
  QUERY(kRatedPower, "dcmi_get_device_info/power_info",                                           \
        abi::DcmiLpPowerInfo, at.Info(f, abi::kCmdLp, abi::kSubLpPowerInfo, out)) /* W */         \
  QUERY(kNetworkHealth, "dcmi_get_device_network_health",                                         \
        int, at.Invoke(f.network_health, out)) /* abi::DcmiNetworkHealth */                       \
  QUERY(kPacketStatistics, "dcmi_get_netdev_pkt_stats_info",                                      \
        abi::DcmiNetworkPktStats, at.Invoke(f.packet_statistics, 0, out))                         \
  CALL(kRdmaBandwidth, "dcmi_get_rdma_bandwidth_info")                                            \
  QUERY(kLlcPerf, "dcmi_get_device_llc_perf_para",                                                \
        abi::DcmiLlcPerf, at.Invoke(f.llc_perf, out)) /* %, KB/s */                               \
  QUERY(kDvppRatio, "dcmi_get_device_dvpp_ratio_info",                                            \
        abi::DcmiDvppRatio, at.InvokeV1(f.dvpp_ratio, out)) /* % */                               \
  QUERY(kDvppVdec, "dcmi_get_device_info/dvpp_vdec",                                              \
        unsigned, at.Info(f, abi::kCmdDvpp, abi::kSubDvppVdec, out)) /* %, these four */          \
  QUERY(kDvppVpc, "dcmi_get_device_info/dvpp_vpc",                                                \
        unsigned, at.Info(f, abi::kCmdDvpp, abi::kSubDvppVpc, out))                               \
  QUERY(kDvppJpege, "dcmi_get_device_info/dvpp_jpege",                                            \
        unsigned, at.Info(f, abi::kCmdDvpp, abi::kSubDvppJpege, out))                             \
  QUERY(kDvppJpegd, "dcmi_get_device_info/dvpp_jpegd",                                            \
        unsigned, at.Info(f, abi::kCmdDvpp, abi::kSubDvppJpegd, out))                             \
  CALL(kProcesses, "dcmi_get_device_resource_info")                                               \
  QUERY(kSensorCluster, "dcmi_get_device_sensor_info/cluster",                                    \
        abi::DcmiSensorInfo, at.Invoke(f.sensor_info, abi::kSensorClusterTemp, out))              \
  QUERY(kSensorThreshold, "dcmi_get_device_sensor_info/threshold",                                \
        abi::DcmiSensorInfo, at.Invoke(f.sensor_info, abi::kSensorThermalThreshold, out))         \
  QUERY(kSensorNtc, "dcmi_get_device_sensor_info/ntc",                                            \
        abi::DcmiSensorInfo, at.Invoke(f.sensor_info, abi::kSensorNtc, out))                      \
  QUERY(kSensorSoc, "dcmi_get_device_sensor_info/soc",                                            \
        abi::DcmiSensorInfo, at.Invoke(f.sensor_info, abi::kSensorSocTemp, out))                  \
  QUERY(kSensorOpticalCage, "dcmi_get_device_sensor_info/optical_cage",                           \
        abi::DcmiSensorInfo, at.Invoke(f.sensor_info, abi::kSensorFpTemp, out))                   \
  QUERY(kSensorNdie, "dcmi_get_device_sensor_info/ndie",                                          \
        abi::DcmiSensorInfo, at.Invoke(f.sensor_info, abi::kSensorNDieTemp, out))                 \
  QUERY(kHccsCredits, "dcmi_get_hccs_avail_credit_info",                                          \
        abi::DcmiHccsCreditInfo, at.InvokeV1(f.hccs_credits, out))                                \
  QUERY(kTrafficClasses, "dcmi_get_netdev_tc_stat_info",                                          \
        abi::DcmiTcStatData, at.InvokeV1(f.traffic_classes, out))                                 \
  QUERY(kPfcDuration, "dcmi_get_pfc_duration_info",                                               \
        abi::DcmiPfcDurationInfo, at.InvokeV1(f.pfc_duration, out))                               \
  QUERY(kExtraStatistics, "dcmi_get_extra_statistics_info",                                       \
        abi::DcmiExtraStatistics, at.InvokeV1(f.extra_statistics, 0, out))                        \
  CALL(kSerdesQuality, "dcmi_get_serdes_quality_info")                                            \
  QUERY(kVdevTotal, "dcmi_get_device_info/vdev_total",                                            \
        abi::DcmiSocTotalResource, at.Info(f, abi::kCmdVdevMng, abi::kSubVdevTotal, out))         \
  CALL(kVdevActivity, "dcmi_get_device_info/vdev_activity")                                       \
  QUERY(kUbPortList, "dcmiv2_get_device_port_list_info",                                          \
        abi::DcmiUbPortList, at.InvokeV2(f.v2_ub_port_list, out))                                 \
  CALL(kUbPortStatistics, "dcmiv2_get_port_pkt_stats_info")                                       \
  QUERY(kUbLinkStatus, "dcmiv2_get_ub_port_link_status",                                          \
        abi::DcmiUbPortLinkStatus, at.InvokeV2(f.v2_ub_link_status, out))                         \
  QUERY(kBoardPower, "dcmi_mcu_get_power_info",                                                   \
        int, at.InvokeCard(f.board_power, out)) /* 0.1 W of the card */

namespace profd {

enum class DcmiApi : uint8_t { kNone, kV1, kV2 };

// The code the vendor's own wrappers use for a function the library does not have.
inline constexpr int kDcmiSymbolMissing = -99998;

// The same query in both generations of the interface: v1 takes (card, device, ...), v2 the logical
// id alone.
template <class V1>
struct DcmiPair;
template <class... Args>
struct DcmiPair<int (*)(int, int, Args...)> {
  int (*v1)(int, int, Args...) = nullptr;
  int (*v2)(int, Args...) = nullptr;
};

namespace abi {

// Null: the library has no such function.
struct DcmiFunctions {
#define PROFD_DCMI_ONE(member, type, symbol) type member = nullptr;
#define PROFD_DCMI_PAIR(member, type, v1_symbol, v2_symbol) DcmiPair<type> member;
  PROFD_DCMI_FUNCTIONS(PROFD_DCMI_ONE, PROFD_DCMI_PAIR)
#undef PROFD_DCMI_ONE
#undef PROFD_DCMI_PAIR
};

}  // namespace abi

using abi::DcmiFunctions;

// Calls visit(symbol, slot, member) for every symbol of the table.
template <class Functions, class Visit>
constexpr void VisitDcmiSymbols(Functions& f, Visit&& visit) {
#define PROFD_DCMI_ONE(member, type, symbol) visit(symbol, f.member, #member);
#define PROFD_DCMI_PAIR(member, type, v1_symbol, v2_symbol) \
  visit(v1_symbol, f.member.v1, #member);                   \
  visit(v2_symbol, f.member.v2, #member);
  PROFD_DCMI_FUNCTIONS(PROFD_DCMI_ONE, PROFD_DCMI_PAIR)
#undef PROFD_DCMI_ONE
#undef PROFD_DCMI_PAIR
}

// What a symbol of the table may look like.
constexpr bool IsDcmiQuery(std::string_view name) {
  return name == "dcmi_init" || name == "dcmiv2_init" || name.starts_with("dcmi_get_") ||
         name.starts_with("dcmi_mcu_get_") || name.starts_with("dcmiv2_get_");
}
static_assert(
    [] {
      DcmiFunctions functions;
      bool only_queries = true;
      VisitDcmiSymbols(functions, [&](std::string_view name, auto&, std::string_view) {
        only_queries = only_queries && IsDcmiQuery(name);
      });
      return only_queries;
    }(),
    "the daemon only reads: no setter of libdcmi may be looked up (dcmi-and-metrics 1.9, item 8)");

// What is remembered and counted is remembered and counted for each of them.
enum class DcmiCall : uint8_t {
#define PROFD_DCMI_CALL(name, label, ...) name,
  PROFD_DCMI_CALLS(PROFD_DCMI_CALL, PROFD_DCMI_CALL)
#undef PROFD_DCMI_CALL
};

// Label values and messages.
inline constexpr auto kDcmiCallNames = std::to_array<std::string_view>({
#define PROFD_DCMI_CALL(name, label, ...) label,
    PROFD_DCMI_CALLS(PROFD_DCMI_CALL, PROFD_DCMI_CALL)
#undef PROFD_DCMI_CALL
});
inline constexpr size_t kDcmiCallCount = kDcmiCallNames.size();

constexpr std::string_view NameOf(DcmiCall call) {
  return kDcmiCallNames[static_cast<size_t>(call)];
}

// Whom to ask, and how in the generation of the interface there is.
struct DcmiAddress {
  DcmiApi api;
  int card;
  int chip;
  int logical_id;

  template <class... P, class... A>
  int Invoke(const DcmiPair<int (*)(int, int, P...)>& pair, A... args) const {
    if (api == DcmiApi::kV2) {
      return pair.v2 != nullptr ? pair.v2(logical_id, args...) : kDcmiSymbolMissing;
    }
    return pair.v1 != nullptr ? pair.v1(card, chip, args...) : kDcmiSymbolMissing;
  }
  // Functions that only v1 has.
  template <class... P, class... A>
  int InvokeV1(int (*fn)(int, int, P...), A... args) const {
    return fn != nullptr && api == DcmiApi::kV1 ? fn(card, chip, args...) : kDcmiSymbolMissing;
  }
  // Functions that only v2 has.
  template <class... P, class... A>
  int InvokeV2(int (*fn)(int, P...), A... args) const {
    return fn != nullptr && api == DcmiApi::kV2 ? fn(logical_id, args...) : kDcmiSymbolMissing;
  }
  // Functions of v1 about the card.
  template <class... P, class... A>
  int InvokeCard(int (*fn)(int, P...), A... args) const {
    return fn != nullptr && api == DcmiApi::kV1 ? fn(card, args...) : kDcmiSymbolMissing;
  }
  // dcmi_get_device_info.
  template <class T>
  int Info(const DcmiFunctions& f, abi::DcmiMainCmd main_command, abi::DcmiSubCmd sub_command,
           T* out) const {
    unsigned size = sizeof(T);
    return Invoke(f.device_info, static_cast<int>(main_command),
                  static_cast<unsigned>(sub_command), static_cast<void*>(out), &size);
  }
};

// The largest answer of a query.
inline constexpr size_t kMaxDcmiAnswer = 1024;

// A row without the type of its answer.
struct DcmiQueryRow {
  DcmiCall call;
  size_t size;
  int (*ask)(const DcmiFunctions& f, const DcmiAddress& at, void* out);
};
template <class T>
struct DcmiQuery : DcmiQueryRow {
  static_assert(sizeof(T) <= kMaxDcmiAnswer);
};

namespace dcmi {

#define PROFD_DCMI_CALL(name, label)
// NOLINTBEGIN(bugprone-macro-parentheses): T is a type
#define PROFD_DCMI_QUERY(name, label, T, how)                                                 \
  inline constexpr DcmiQuery<T> name{                                                         \
      {DcmiCall::name, sizeof(T),                                                             \
       [](const DcmiFunctions& f [[maybe_unused]], const DcmiAddress& at, void* answer) {     \
         T* out = static_cast<T*>(answer);                                                    \
         return how;                                                                          \
       }}};
// NOLINTEND(bugprone-macro-parentheses)
PROFD_DCMI_CALLS(PROFD_DCMI_CALL, PROFD_DCMI_QUERY)
#undef PROFD_DCMI_CALL
#undef PROFD_DCMI_QUERY

}  // namespace dcmi
}  // namespace profd
