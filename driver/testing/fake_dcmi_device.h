// What one NPU of FakeDcmi answers.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <vector>

#include "driver/abi/dcmi_abi.h"

namespace profd::testing {

struct FakeDcmiDevice {
  int physical_id = 0;
  unsigned health = 0;
  std::vector<unsigned> error_codes;
  std::vector<abi::DcmiFaultEvent> faults;
  int temperature = 45;
  int power = 3105;                   // 310.5 W
  unsigned voltage = 81;              // 0.81 V
  std::map<int, unsigned> frequency;  // by DcmiFreqType, MHz
  abi::DcmiAicoreInfo aicore{1800, 1650};
  abi::DcmiAicpuInfo aicpu{2000, 1900, 1, {}};
  std::map<int, unsigned> utilization;  // by DcmiUtilizationType, %
  abi::DcmiMultiUtilizationInfo multi{};
  abi::DcmiHbmInfo hbm{65536, 1600, 32768, 50, 37};
  abi::DcmiMemoryInfoV3 ddr{};
  abi::DcmiCgroupInfo cgroup{1000, 900, 800};
  abi::DcmiEccInfo ecc{};
  size_t ecc_bytes = sizeof(abi::DcmiEccInfo);  // 28: an older driver
  abi::DcmiChipPcieErrRate pcie_counts{};
  abi::DcmiPcieErrors pcie_errors{};
  abi::DcmiHccsStatisticInfoU64 hccs{};
  abi::DcmiHccsStatus hccs_status{1, abi::kHccsHdlcOk, {}};
  abi::DcmiHccsLanes hccs_lanes{};
  unsigned mainboard_id = 0;
  abi::DcmiSioCrcErrInfo sio{};
  std::vector<uint8_t> cores;
  std::vector<uint8_t> vector_cores;
  unsigned throttle = 0;
  unsigned rated_power = 400;
  int network_health = 0;
  abi::DcmiNetworkPktStats packets{};
  abi::DcmiLlcPerf llc{20, 80, 1024};
  std::map<unsigned, unsigned> dvpp;  // by DcmiSubCmd, %
  std::vector<abi::DcmiProcMemInfo> processes;
  std::map<int, abi::DcmiSensorInfo> sensors;  // by DcmiSensorId
  abi::DcmiPcieLinkBandwidthInfo pcie_bandwidth{};
  abi::DcmiHccsBandwidthInfo hccs_bandwidth{};
  abi::DcmiHccsCreditInfo hccs_credits{};
  abi::DcmiTcStatData traffic_classes{};
  abi::DcmiPfcDurationInfo pfc_duration{};
  abi::DcmiExtraStatistics extra{};
  std::map<unsigned, abi::DcmiSerdesQuality> serdes;  // by macro
  std::map<uint32_t, abi::DcmiComputingResource> vdevs;
  abi::DcmiUbPortList ub_ports{};
  std::map<int, std::map<int, abi::DcmiPortPktStats>> ub;  // by udie, port
  abi::DcmiUbPortLinkStatus ub_links{};
};

}  // namespace profd::testing
