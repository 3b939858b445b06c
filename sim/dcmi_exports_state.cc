// libdcmi.so: telemetry (dcmi-and-metrics 1.3; numbers are its rows).
#include "sim/dcmi_library.h"
#include "sim/network_port.h"

using profd::sim::Ask;
using profd::sim::AskV2;
using profd::sim::Dcmi;
using profd::sim::DcmiView;
using profd::sim::NetworkPort;
namespace abi = profd::abi;

namespace {

int NetworkHealthy(const DcmiView& view, int* out) {
  const NetworkPort port(view.node.scenario(), static_cast<int>(view.device));
  *out = port.LinkUp(view.t_ns) ? abi::kNetOk : abi::kNetUnreach;
  return abi::kDcmiOk;
}

int ProfilePcie(const DcmiView& view, abi::DcmiPcieLinkBandwidthInfo* out) {
  if (!view.SupportsPcieBandwidth()) return abi::kDcmiNotSupported;
  return Dcmi().Profile(view, out->profiling_time, [&](const DcmiView& after, int64_t before) {
    return after.PcieBandwidth(before, out);
  });
}

bool ValidPcieTime(int ms) { return ms >= 0 && ms <= abi::kPcieProfilingMaxMs; }

}  // namespace

// 1
PROFD_SIM_ASK(dcmi_get_device_health, unsigned, &DcmiView::Health)
PROFD_SIM_ASK_V2(dcmiv2_get_device_health, unsigned, &DcmiView::Health)

// 2
PROFD_SIM_EXPORT int dcmi_get_device_errorcode_v2(int card, int device, int* count, unsigned* list,
                                                  unsigned length) {
  if (count == nullptr || list == nullptr || length == 0) return abi::kDcmiInvalidParameter;
  return Dcmi().OnDevice(
      card, device, [&](const DcmiView& view) { return view.ErrorCodes(count, list, length); });
}
PROFD_SIM_EXPORT int dcmiv2_get_device_error_code_list(int device, int* count, unsigned* list,
                                                       unsigned length) {
  if (count == nullptr || list == nullptr || length == 0) return abi::kDcmiInvalidParameter;
  return Dcmi().OnLogic(device,
                        [&](const DcmiView& view) { return view.ErrorCodes(count, list, length); });
}

// 44
PROFD_SIM_EXPORT int dcmi_get_device_current_fault_event(int card, int device, abi::DcmiEvent* list,
                                                         int length, int* count) {
  if (list == nullptr || count == nullptr || length <= 0) return abi::kDcmiInvalidParameter;
  return Dcmi().OnDevice(
      card, device, [&](const DcmiView& view) { return view.CurrentFaults(list, length, count); });
}

// 4 to 9
PROFD_SIM_ASK(dcmi_get_device_temperature, int, &DcmiView::Temperature)
PROFD_SIM_ASK(dcmi_get_device_power_info, int, &DcmiView::Power)
PROFD_SIM_ASK(dcmi_get_device_voltage, unsigned, &DcmiView::Voltage)
PROFD_SIM_EXPORT int dcmi_get_device_frequency(int card, int device, int type, unsigned* out) {
  return Ask(card, device, out, &DcmiView::Frequency, type);
}
PROFD_SIM_ASK(dcmi_get_device_aicore_info, abi::DcmiAicoreInfo, &DcmiView::Aicore)
PROFD_SIM_ASK_V2(dcmiv2_get_device_aicore_info, abi::DcmiAicoreInfo, &DcmiView::Aicore)
PROFD_SIM_ASK(dcmi_get_device_aicpu_info, abi::DcmiAicpuInfo, &DcmiView::Aicpu)

// 10, 11
PROFD_SIM_EXPORT int dcmi_get_device_utilization_rate(int card, int device, int type,
                                                      unsigned* out) {
  return Ask(card, device, out, &DcmiView::Utilization, type);
}
PROFD_SIM_ASK(dcmi_get_device_multi_utilization_rate, abi::DcmiMultiUtilizationInfo,
              &DcmiView::MultiUtilization)

// 12 to 15
PROFD_SIM_ASK(dcmi_get_device_hbm_info, abi::DcmiHbmInfo, &DcmiView::Hbm)
PROFD_SIM_ASK(dcmi_get_device_memory_info_v3, abi::DcmiMemoryInfoV3, &DcmiView::Memory)
PROFD_SIM_ASK(dcmi_get_memory_info, abi::DcmiMemoryInfo, &DcmiView::MemoryOld)
PROFD_SIM_ASK(dcmi_get_device_cgroup_info, abi::DcmiCgroupInfo, &DcmiView::Cgroup)
PROFD_SIM_EXPORT int dcmi_get_device_ecc_info(int card, int device, int memory,
                                              abi::DcmiEccInfo* out) {
  return Ask(card, device, out, &DcmiView::Ecc, memory);
}

// 17 to 19
PROFD_SIM_EXPORT int dcmi_get_pcie_link_bandwidth_info(int card, int device,
                                                       abi::DcmiPcieLinkBandwidthInfo* out) {
  if (out == nullptr || !ValidPcieTime(out->profiling_time)) return abi::kDcmiInvalidParameter;
  return Dcmi().OnDevice(card, device, [&](const DcmiView& v) { return ProfilePcie(v, out); });
}
PROFD_SIM_EXPORT int dcmiv2_get_pcie_link_bandwidth_info(int device,
                                                         abi::DcmiPcieLinkBandwidthInfo* out) {
  if (out == nullptr || !ValidPcieTime(out->profiling_time)) return abi::kDcmiInvalidParameter;
  return Dcmi().OnLogic(device, [&](const DcmiView& v) { return ProfilePcie(v, out); });
}
PROFD_SIM_EXPORT int dcmi_get_device_pcie_error_cnt(int card, int device,
                                                    abi::DcmiChipPcieErrRate* out) {
  if (out == nullptr) return abi::kDcmiInvalidParameter;
  return Dcmi().OnDevice(card, device, [&](const DcmiView& view) {
    if (!view.IsA2()) return abi::kDcmiNotSupported;
    *out = {};
    return abi::kDcmiOk;
  });
}
PROFD_SIM_EXPORT int dcmi_get_hccs_link_bandwidth_info(int card, int device,
                                                       abi::DcmiHccsBandwidthInfo* out) {
  if (out == nullptr || out->profiling_time < 1 || out->profiling_time > abi::kHccsProfilingMaxMs) {
    return abi::kDcmiInvalidParameter;
  }
  return Dcmi().OnDevice(card, device, [&](const DcmiView& view) {
    if (!view.SupportsHccsBandwidth()) return abi::kDcmiNotSupported;
    return Dcmi().Profile(view, out->profiling_time, [&](const DcmiView& after, int64_t before) {
      return after.HccsBandwidth(before, out);
    });
  });
}

// 18, 20 to 22, 25, 36 to 38
PROFD_SIM_EXPORT int dcmi_get_device_info(int card, int device, int main_cmd, unsigned sub_cmd,
                                          void* buf, unsigned* size) {
  if (buf == nullptr || size == nullptr) return abi::kDcmiInvalidParameter;
  return Dcmi().OnDevice(card, device, [&](const DcmiView& view) {
    return view.DeviceInfo(main_cmd, sub_cmd, buf, size);
  });
}

// 26 to 28. Only port 0 exists.
PROFD_SIM_ASK(dcmi_get_device_network_health, int, NetworkHealthy)
PROFD_SIM_ASK_V2(dcmiv2_get_device_network_health, int, NetworkHealthy)
PROFD_SIM_EXPORT int dcmi_get_netdev_pkt_stats_info(int card, int device, int port,
                                                    abi::DcmiNetworkPktStats* out) {
  if (port != 0) return abi::kDcmiInvalidParameter;
  return Ask(card, device, out, &DcmiView::PktStats);
}
PROFD_SIM_EXPORT int dcmiv2_get_netdev_pkt_stats_info(int device, int port,
                                                      abi::DcmiNetworkPktStats* out) {
  if (port != 0) return abi::kDcmiInvalidParameter;
  return AskV2(device, out, &DcmiView::PktStats);
}
PROFD_SIM_EXPORT int dcmi_get_rdma_bandwidth_info(int card, int device, int port, unsigned ms,
                                                  abi::DcmiRdmaBandwidthInfo* out) {
  if (out == nullptr || port != 0 || ms < abi::kRdmaProfilingMinMs ||
      ms > abi::kRdmaProfilingMaxMs) {
    return abi::kDcmiInvalidParameter;
  }
  return Dcmi().OnDevice(card, device, [&](const DcmiView& view) {
    return Dcmi().Profile(view, ms, [&](const DcmiView& after, int64_t before) {
      return after.RdmaBandwidth(before, out);
    });
  });
}

// 35
PROFD_SIM_ASK(dcmi_get_device_llc_perf_para, abi::DcmiLlcPerf, &DcmiView::Llc)
PROFD_SIM_ASK_V2(dcmiv2_get_device_llc_perf_para, abi::DcmiLlcPerf, &DcmiView::Llc)

// 36: none of the simulated chips answers; their way is dcmi_get_device_info.
PROFD_SIM_EXPORT int dcmi_get_device_dvpp_ratio_info(int card, int device,
                                                     abi::DcmiDvppRatio* out) {
  if (out == nullptr) return abi::kDcmiInvalidParameter;
  return Dcmi().OnDevice(card, device, [&](const DcmiView&) { return abi::kDcmiNotSupported; });
}

// 39, 40
PROFD_SIM_EXPORT int dcmi_get_device_resource_info(int card, int device, abi::DcmiProcMemInfo* out,
                                                   int* count) {
  if (out == nullptr || count == nullptr) return abi::kDcmiInvalidParameter;
  return Dcmi().OnDevice(card, device,
                         [&](const DcmiView& view) { return view.Processes(out, count); });
}
PROFD_SIM_EXPORT int dcmiv2_get_device_proc_mem_info(int device, abi::DcmiProcMemInfo* out,
                                                     int* count) {
  if (out == nullptr || count == nullptr) return abi::kDcmiInvalidParameter;
  return Dcmi().OnLogic(device, [&](const DcmiView& view) { return view.Processes(out, count); });
}
PROFD_SIM_EXPORT int dcmi_get_device_sensor_info(int card, int device, int sensor,
                                                 abi::DcmiSensorInfo* out) {
  return Ask(card, device, out, &DcmiView::Sensor, sensor);
}

// 43
PROFD_SIM_EXPORT int dcmi_get_driver_health(unsigned* out) {
  if (out == nullptr) return abi::kDcmiInvalidParameter;
  if (!Dcmi().node()) return abi::kDcmiInternal;
  *out = 0;
  return abi::kDcmiOk;
}
PROFD_SIM_EXPORT int dcmiv2_get_driver_health(unsigned* out) { return dcmi_get_driver_health(out); }
