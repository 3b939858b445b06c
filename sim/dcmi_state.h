// One device at one instant, as libdcmi.so reports it: every function fills a vendor struct in the
// vendor's unit (dcmi-and-metrics 1.3) and returns the vendor's code. Pure: nothing here waits, and
// nothing depends on the caller.
#pragma once

#include <cstdint>
#include <cstring>

#include "driver/abi/dcmi_abi.h"
#include "sim/node.h"

namespace profd::sim {

struct DcmiView {
  const Node& node;
  unsigned device;  // logic id
  int64_t t_ns;     // scenario time

  const DeviceModel& model() const { return node.model(device); }
  const ChipSpec& chip() const { return node.chip(); }
  bool Is910() const { return chip().key == "910"; }
  bool IsA2() const { return chip().key == "910B"; }
  bool IsA3() const { return chip().key == "A3"; }
  bool IsA5() const { return chip().key == "950"; }

  // Identity (dcmi_identity.cc).
  int ChipInfo(abi::DcmiChipInfoV2* out) const;
  int DieId(int die_type, abi::DcmiDieId* out) const;
  int PcieInfo(abi::DcmiPcieInfoAll* out) const;
  int BoardInfo(abi::DcmiBoardInfo* out) const;
  int MainboardId(unsigned* out) const;
  int Elabel(abi::DcmiElabelInfo* out) const;

  // State (dcmi_state.cc).
  int Health(unsigned* out) const;
  int ErrorCodes(int* count, unsigned* list, unsigned length) const;
  // Up to `length` events, one per active fault code.
  int CurrentFaults(abi::DcmiEvent* list, int length, int* count) const;
  int Temperature(int* out) const;
  int Power(int* out) const;
  int Voltage(unsigned* out) const;
  int Frequency(int type, unsigned* out) const;
  int Aicore(abi::DcmiAicoreInfo* out) const;
  int Aicpu(abi::DcmiAicpuInfo* out) const;
  int Utilization(int type, unsigned* out) const;
  int MultiUtilization(abi::DcmiMultiUtilizationInfo* out) const;
  int Hbm(abi::DcmiHbmInfo* out) const;
  int Memory(abi::DcmiMemoryInfoV3* out) const;
  int MemoryOld(abi::DcmiMemoryInfo* out) const;
  int Cgroup(abi::DcmiCgroupInfo* out) const;
  int Ecc(int memory, abi::DcmiEccInfo* out) const;
  int Sensor(int id, abi::DcmiSensorInfo* out) const;
  int Llc(abi::DcmiLlcPerf* out) const;
  // Up to kDcmiMaxProcesses entries.
  int Processes(abi::DcmiProcMemInfo* out, int* count) const;

  // Links (dcmi_links.cc). The bandwidth calls give the average from `before_ns` to `t_ns`.
  int PcieBandwidth(int64_t before_ns, abi::DcmiPcieLinkBandwidthInfo* out) const;
  int HccsBandwidth(int64_t before_ns, abi::DcmiHccsBandwidthInfo* out) const;
  int RdmaBandwidth(int64_t before_ns, abi::DcmiRdmaBandwidthInfo* out) const;
  int PktStats(abi::DcmiNetworkPktStats* out) const;
  // dcmi_get_device_info; `size` is in and out.
  int DeviceInfo(int main_cmd, unsigned sub_cmd, void* buf, unsigned* size) const;

  // Ports and lanes (dcmi_ports.cc).
  int HccsCredits(abi::DcmiHccsCreditInfo* out) const;
  int TrafficClasses(abi::DcmiTcStatData* out) const;
  int PfcDuration(abi::DcmiPfcDurationInfo* out) const;
  int ExtraStatistics(abi::DcmiExtraStatistics* out) const;
  int Serdes(unsigned macro, abi::DcmiSerdesQuality* out) const;
  // Unified Bus.
  int UbPorts(abi::DcmiUbPortList* out) const;
  int UbPortStatistics(const abi::DcmiUbPortInfo& port, abi::DcmiPortPktStats* out) const;
  int UbLinkStatus(abi::DcmiUbPortLinkStatus* out) const;
  // dcmi_get_device_info(VDEV_MNG)
  int VdevInfo(unsigned sub_cmd, void* buf, unsigned* size) const;

  bool SupportsPcieBandwidth() const { return IsA2(); }
  bool SupportsHccsBandwidth() const { return IsA2() || IsA3(); }
};

// Copies a result of dcmi_get_device_info into the caller's buffer.
template <class T>
int Answer(const T& value, void* buf, unsigned* size) {
  if (*size < sizeof value) return abi::kDcmiInvalidParameter;
  std::memcpy(buf, &value, sizeof value);
  *size = sizeof value;
  return abi::kDcmiOk;
}

}  // namespace profd::sim
