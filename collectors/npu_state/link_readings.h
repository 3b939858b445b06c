// What connects one NPU to the others, to the host and to the network, as far as it takes more than
// a row (row_readings.h).
#pragma once

#include "collectors/metric_table.h"
#include "collectors/npu_state/device_pass.h"
#include "collectors/npu_state/npu_state.h"
#include "collectors/npu_state/row_readings.h"

namespace profd {

class LinkReadings {
 public:
  LinkReadings(SlotOwner& owner, const DcmiDevice& device);
  // `rows` have been read.
  void Medium(DevicePass& pass, const RowReadings& rows);
  void Slow(DevicePass& pass, const NpuStateOptions& options);

 private:
  static constexpr size_t kLinks = 8;
  // As many as any chip numbers (dcmi-and-metrics 1.3, row 32; the chips have 5 to 18).
  static constexpr unsigned kSerdesMacros = 18;
  using PerLink = std::array<SeriesSlot, kLinks>;
  // [0] tx, [1] rx.
  using Both = std::array<SeriesSlot, 2>;

  void ReadHccs(DevicePass& pass);
  void ReadHccsLanes(DevicePass& pass);
  void ReadFlowControl(DevicePass& pass, const RowReadings& rows);
  void ReadSerdes(DevicePass& pass);
  void ReadPcieBandwidth(DevicePass& pass, int ms);
  void ReadHccsBandwidth(DevicePass& pass, int ms);
  void ReadRdmaBandwidth(DevicePass& pass, int ms);

  bool ArePacked(const abi::DcmiHccsLanes& lanes) const;

  const size_t first_link_;
  const size_t end_link_;
  bool lanes_are_packed_ = false;
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
  std::array<std::array<SeriesSlot, 8>, 2> pfc_;
  // [tx, rx][posted, nonposted, completion][min, max, avg]
  std::array<std::array<std::array<SeriesSlot, 3>, 3>, 2> pcie_bandwidth_;
  std::array<SeriesSlot, 3> pcie_latency_;
  Both rdma_;
  std::array<std::array<SeriesSlot, 8>, 2> traffic_classes_;
  std::array<std::array<SeriesSlot, 8>, 2> pfc_duration_;
  ComingAndGoing<std::tuple<unsigned, size_t, bool>> serdes_;  // macro, lane, eye (else snr)
  std::array<bool, kSerdesMacros> no_macro_{};                 // the chip has none of that number
};

}  // namespace profd
