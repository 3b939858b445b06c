// What connects one NPU to the others, to the host and to the network.
#pragma once

#include "collectors/metric_table.h"
#include "collectors/npu_state/device_pass.h"
#include "collectors/npu_state/npu_state.h"

namespace profd {

class LinkReadings {
 public:
  explicit LinkReadings(SlotOwner& owner);
  void Medium(DevicePass& pass);
  void Slow(DevicePass& pass, const NpuStateOptions& options);

 private:
  // Links 1 to 7 are wired; 0 exists in the driver's arrays only (dcmi-and-metrics 1.7).
  static constexpr size_t kFirstLink = 1;
  static constexpr size_t kLinks = 8;
  // As many as any chip numbers (dcmi-and-metrics 1.3, row 32; the chips have 5 to 18).
  static constexpr unsigned kSerdesMacros = 18;
  using PerLink = std::array<SeriesSlot, kLinks>;
  // [0] tx, [1] rx.
  using Both = std::array<SeriesSlot, 2>;

  void NameErrors();  // part of the constructor
  void ReadHccs(DevicePass& pass);
  void ReadHccsLanes(DevicePass& pass);
  void ReadNetwork(DevicePass& pass);
  void PutMac(DevicePass& pass, bool ok, const abi::DcmiNetworkPktStats& s);
  void PutRoce(DevicePass& pass, bool ok, const abi::DcmiNetworkPktStats& s);
  void ReadFlowControl(DevicePass& pass);
  void ReadErrorCorrection(DevicePass& pass);
  void ReadSerdes(DevicePass& pass);
  void ReadPcieErrors(DevicePass& pass);
  void ReadPcieBandwidth(DevicePass& pass, int ms);
  void ReadHccsBandwidth(DevicePass& pass, int ms);
  void ReadRdmaBandwidth(DevicePass& pass, int ms);
  static void PutBoth(DevicePass& pass, Both& slots, bool ok, uint64_t tx, uint64_t rx);

  std::array<PerLink, 2> flits_;
  PerLink hccs_crc_;
  PerLink hccs_retries_;
  PerLink link_up_;
  PerLink lanes_up_;
  PerLink credits_;
  SeriesSlot port_logic_up_{MetricByName("atlas_npu_hccs_link_up"), "all"};
  std::array<PerLink, 2> hccs_bandwidth_;
  Both hccs_bandwidth_all_;
  SeriesSlot hccs_sampling_{MetricByName("atlas_npu_hccs_sampling_seconds")};
  Both sio_;
  SeriesSlot health_{MetricByName("atlas_npu_network_health")};
  SeriesSlot health_code_{MetricByName("atlas_npu_network_health_code")};
  Both mac_bytes_, nic_bytes_, mac_packets_, nic_packets_;
  Both bad_packets_, bad_bytes_, pause_;
  std::array<std::array<SeriesSlot, 8>, 2> pfc_;
  SeriesSlot fcs_{MetricByName("atlas_npu_network_fcs_errors_total")};
  Both roce_all_, roce_rc_, roce_err_, roce_cnp_;
  SeriesSlot retransmits_{MetricByName("atlas_npu_roce_retransmits_total")};
  SeriesSlot ecn_{MetricByName("atlas_npu_roce_ecn_doorbells_total")};
  SeriesSlot cqes_{MetricByName("atlas_npu_roce_cqes_total")};
  std::array<SeriesSlot, 4> roce_errors_;
  // By name of the error in link_readings.cc.
  std::array<SeriesSlot, 9> pcie_errors_;
  // [tx, rx][posted, nonposted, completion][min, max, avg]
  std::array<std::array<std::array<SeriesSlot, 3>, 3>, 2> pcie_bandwidth_;
  std::array<SeriesSlot, 3> pcie_latency_;
  Both rdma_;
  std::array<std::array<SeriesSlot, 8>, 2> traffic_classes_;
  std::array<std::array<SeriesSlot, 8>, 2> pfc_duration_;
  std::array<SeriesSlot, 4> codewords_;
  SeriesSlot corrected_bits_{MetricByName("atlas_npu_network_fec_corrections_total")};
  SeriesSlot bit_errors_{MetricByName("atlas_npu_network_fec_bit_error_ratio")};
  ComingAndGoing<std::tuple<unsigned, size_t, bool>> serdes_;  // macro, lane, eye (else snr)
  std::array<bool, kSerdesMacros> no_macro_{};                 // the chip has none of that number
};

}  // namespace profd
