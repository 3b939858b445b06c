// libdcmi.so: the second generation of the interface, by logic id (dcmi-and-metrics 1.1 to 1.3).
// What is missing here stands beside its first generation in the other dcmi_exports_*.cc.
#include "sim/dcmi_library.h"

using profd::sim::Always;
using profd::sim::AskV2;
using profd::sim::Dcmi;
using profd::sim::DcmiView;
namespace abi = profd::abi;

// Identity.
PROFD_SIM_ASK_V2(dcmiv2_get_device_type, int, Always(abi::kUnitNpu))
PROFD_SIM_ASK_V2(dcmiv2_get_device_chip_info, abi::DcmiChipInfoV2, &DcmiView::ChipInfo)
PROFD_SIM_EXPORT int dcmiv2_get_device_die_id(int device, int type, abi::DcmiDieId* out) {
  return AskV2(device, out, &DcmiView::DieId, type);
}
PROFD_SIM_ASK_V2(dcmiv2_get_device_pcie_info, abi::DcmiPcieInfoAll, &DcmiView::PcieInfo)
PROFD_SIM_EXPORT int dcmiv2_get_device_board_id(int device, unsigned* out) {
  if (out == nullptr) return abi::kDcmiInvalidParameter;
  return Dcmi().OnLogic(device, [&](const DcmiView& view) {
    abi::DcmiBoardInfo info;
    const int code = view.BoardInfo(&info);
    *out = info.board_id;
    return code;
  });
}
PROFD_SIM_ASK_V2(dcmiv2_get_device_compatibility, int, Always(1))
PROFD_SIM_EXPORT int dcmiv2_get_device_boot_status(int device, int* out) {
  constexpr int kStartFinished = 16;
  return AskV2(device, out, Always(kStartFinished));
}

// 4 to 15
PROFD_SIM_ASK_V2(dcmiv2_get_device_temperature, int, &DcmiView::Temperature)
PROFD_SIM_ASK_V2(dcmiv2_get_device_power_info, int, &DcmiView::Power)
PROFD_SIM_ASK_V2(dcmiv2_get_device_voltage, unsigned, &DcmiView::Voltage)
PROFD_SIM_EXPORT int dcmiv2_get_device_frequency(int device, int type, unsigned* out) {
  return AskV2(device, out, &DcmiView::Frequency, type);
}
PROFD_SIM_EXPORT int dcmiv2_get_device_utilization_rate(int device, int type, unsigned* out) {
  return AskV2(device, out, &DcmiView::Utilization, type);
}
PROFD_SIM_ASK_V2(dcmiv2_get_device_multi_utilization_rate, abi::DcmiMultiUtilizationInfo,
                 &DcmiView::MultiUtilization)
PROFD_SIM_ASK_V2(dcmiv2_get_device_hbm_info, abi::DcmiHbmInfo, &DcmiView::Hbm)
PROFD_SIM_EXPORT int dcmiv2_get_device_ecc_info(int device, int memory, abi::DcmiEccInfo* out) {
  return AskV2(device, out, &DcmiView::Ecc, memory);
}

// 18, 20 to 22, 25, 36 to 38, 42
PROFD_SIM_EXPORT int dcmiv2_get_device_info(int device, int main_cmd, unsigned sub_cmd, void* buf,
                                            unsigned* size) {
  if (buf == nullptr || size == nullptr) return abi::kDcmiInvalidParameter;
  return Dcmi().OnLogic(
      device, [&](const DcmiView& view) { return view.DeviceInfo(main_cmd, sub_cmd, buf, size); });
}

// 28
PROFD_SIM_EXPORT int dcmiv2_get_rdma_bandwidth_info(int device, int port, unsigned ms,
                                                    abi::DcmiRdmaBandwidthInfo* out) {
  if (out == nullptr || port != 0 || ms < abi::kRdmaProfilingMinMs ||
      ms > abi::kRdmaProfilingMaxMs) {
    return abi::kDcmiInvalidParameter;
  }
  return Dcmi().OnLogic(device, [&](const DcmiView& view) {
    return Dcmi().Profile(view, ms, [&](const DcmiView& after, int64_t before) {
      return after.RdmaBandwidth(before, out);
    });
  });
}

// 32, 40, 44
PROFD_SIM_EXPORT int dcmiv2_get_serdes_quality_info(int device, unsigned macro,
                                                    abi::DcmiSerdesQuality* out) {
  return AskV2(device, out, &DcmiView::Serdes, macro);
}
PROFD_SIM_EXPORT int dcmiv2_get_device_sensor_info(int device, int sensor,
                                                   abi::DcmiSensorInfo* out) {
  return AskV2(device, out, &DcmiView::Sensor, sensor);
}
PROFD_SIM_EXPORT int dcmiv2_get_device_current_fault_event(int device, abi::DcmiEvent* list,
                                                           int length, int* count) {
  if (list == nullptr || count == nullptr || length <= 0) return abi::kDcmiInvalidParameter;
  return Dcmi().OnLogic(
      device, [&](const DcmiView& view) { return view.CurrentFaults(list, length, count); });
}

// 47
PROFD_SIM_ASK_V2(dcmiv2_get_device_port_list_info, abi::DcmiUbPortList, &DcmiView::UbPorts)
PROFD_SIM_EXPORT int dcmiv2_get_port_pkt_stats_info(int device, abi::DcmiUbPortInfo* port,
                                                    abi::DcmiPortPktStats* out) {
  if (port == nullptr || out == nullptr) return abi::kDcmiInvalidParameter;
  return Dcmi().OnLogic(device,
                        [&](const DcmiView& view) { return view.UbPortStatistics(*port, out); });
}
PROFD_SIM_ASK_V2(dcmiv2_get_ub_port_link_status, abi::DcmiUbPortLinkStatus, &DcmiView::UbLinkStatus)
