#include "collectors/npu_state/link_readings.h"

#include <bit>

namespace profd {
namespace {

constexpr std::array<std::string_view, 2> kDirections = {"tx", "rx"};
constexpr std::array<std::string_view, 3> kStats = {"min", "max", "avg"};
constexpr std::array<std::string_view, 3> kPcieTypes = {"posted", "nonposted", "completion"};
constexpr double kGibPerSecond = 1024.0 * 1024.0 * 1024.0;
constexpr double kMibPerMs = 1024.0 * 1024.0 * 1000.0;

double Number(uint64_t value) { return static_cast<double>(value); }

// Links 1 to 7 are wired, of the Atlas 9000 A3 (by its mainboards) 2 to 7, of the 310P 1 alone; 0 exists in the
// driver's arrays only (dcmi-and-metrics 1.2, 1.7).
size_t FirstLink(const DcmiDevice& device) { return device.mainboard_id == 0x1C || device.mainboard_id == 0x1D ? 2 : 1; }

// A lane is a bit. Drivers that put the mode of the lanes into bits 9 and 10 have the lanes above bit 0, which then
// says that the link is switched on.
int LanesOf(uint32_t lanes) {
  constexpr uint32_t kMode = 0x600;
  if ((lanes & kMode) == 0) return std::popcount(lanes);
  return (lanes & 1) != 0 ? std::popcount(lanes >> 1 & 0xFFU) : 0;
}

}  // namespace

LinkReadings::LinkReadings(SlotOwner& owner, const DcmiDevice& device)
    : first_link_(FirstLink(device)), end_link_(device.Is310P() ? 2 : kLinks), serdes_(owner) {
  constexpr MetricId kHccs = MetricByName("atlas_npu_hccs_bandwidth_bytes_per_second");
  for (size_t way = 0; way < 2; ++way) {
    const std::string_view direction = kDirections[way];
    for (size_t i = first_link_; i < end_link_; ++i) {
      flits_[way][i] =
          SeriesSlot(MetricByName("atlas_npu_hccs_flits_total"), kNumberText[i], direction);
      hccs_bandwidth_[way][i] = SeriesSlot(kHccs, kNumberText[i], direction);
    }
    hccs_bandwidth_all_[way] = SeriesSlot(kHccs, "all", direction);
    sio_[way] = SeriesSlot(MetricByName("atlas_npu_sio_crc_errors_total"), direction);
    for (size_t i = 0; i < pfc_[way].size(); ++i) {
      pfc_[way][i] =
          SeriesSlot(MetricByName("atlas_npu_network_pfc_frames_total"), direction, kNumberText[i]);
      pfc_duration_[way][i] = SeriesSlot(MetricByName("atlas_npu_network_pfc_duration_total"),
                                         direction, kNumberText[i]);
      traffic_classes_[way][i] =
          SeriesSlot(MetricByName("atlas_npu_network_tc_packets_total"), direction, kNumberText[i]);
    }
    rdma_[way] = SeriesSlot(MetricByName("atlas_npu_rdma_bandwidth_bytes_per_second"), direction);
    for (size_t type = 0; type < kPcieTypes.size(); ++type) {
      for (size_t stat = 0; stat < kStats.size(); ++stat) {
        pcie_bandwidth_[way][type][stat] =
            SeriesSlot(MetricByName("atlas_npu_pcie_bandwidth_bytes_per_second"), direction,
                       kPcieTypes[type], kStats[stat]);
      }
    }
  }
  for (size_t i = first_link_; i < end_link_; ++i) {
    hccs_crc_[i] = SeriesSlot(MetricByName("atlas_npu_hccs_crc_errors_total"), kNumberText[i]);
    hccs_retries_[i] = SeriesSlot(MetricByName("atlas_npu_hccs_retries_total"), kNumberText[i]);
    link_up_[i] = SeriesSlot(MetricByName("atlas_npu_hccs_link_up"), kNumberText[i]);
    lanes_up_[i] = SeriesSlot(MetricByName("atlas_npu_hccs_lanes_up"), kNumberText[i]);
    credits_[i] = SeriesSlot(MetricByName("atlas_npu_hccs_credits"), kNumberText[i]);
  }
  for (size_t stat = 0; stat < kStats.size(); ++stat) {
    pcie_latency_[stat] =
        SeriesSlot(MetricByName("atlas_npu_pcie_read_latency_seconds"), kStats[stat]);
  }
}

void LinkReadings::Medium(DevicePass& pass, const RowReadings& rows) {
  ReadHccs(pass);
  ReadHccsLanes(pass);
  auto sio = pass.Ask(&DcmiService::SioErrors);
  pass.Put(sio_[0], sio.ok(), Number(sio.value.tx));
  pass.Put(sio_[1], sio.ok(), Number(sio.value.rx));
  ReadFlowControl(pass, rows);
}

void LinkReadings::ReadHccs(DevicePass& pass) {
  auto wide = pass.Ask(dcmi::kHccsStatisticU64);
  // Flit counters of 32 bits wrap within seconds and cannot be followed at our pace; the error
  // counters of the narrow form can.
  DcmiAnswer<abi::DcmiHccsStatisticInfo> narrow{kDcmiStuck, {}};
  if (!wide.ok()) narrow = pass.Ask(dcmi::kHccsStatistic);
  const bool errors = wide.ok() || narrow.ok();
  for (size_t i = first_link_; i < end_link_; ++i) {
    pass.Put(flits_[0][i], wide.ok(), Number(wide.value.tx_cnt[i]));
    pass.Put(flits_[1][i], wide.ok(), Number(wide.value.rx_cnt[i]));
    pass.Put(hccs_crc_[i], errors,
             wide.ok() ? Number(wide.value.crc_err_cnt[i]) : narrow.value.crc_err_cnt[i]);
    pass.Put(hccs_retries_[i], errors,
             wide.ok() ? Number(wide.value.retry_cnt[i]) : narrow.value.retry_cnt[i]);
  }
}

// Drivers number the entries by link or by wired link; nothing says which. Entries of unwired links are 0, and so are
// those beyond the number of wired links. Where both would do, it stays as it was.
bool LinkReadings::ArePacked(const abi::DcmiHccsLanes& lanes) const {
  const auto wired = static_cast<size_t>(std::popcount(lanes.port_bitmap));
  for (size_t i = 0; i < std::size(lanes.lane_bitmap); ++i) {
    if (lanes.lane_bitmap[i] == 0) continue;
    if ((lanes.port_bitmap >> i & 1U) == 0) return true;
    if (i >= wired) return false;
  }
  return lanes_are_packed_;
}

void LinkReadings::ReadHccsLanes(DevicePass& pass) {
  auto lanes = pass.Ask(dcmi::kHccsLanes);
  if (lanes.ok()) lanes_are_packed_ = ArePacked(lanes.value);
  for (size_t i = first_link_; i < end_link_; ++i) {
    // Links the board does not wire are not in the port map.
    const bool wired = lanes.ok() && (lanes.value.port_bitmap >> i & 1u) != 0;
    const uint32_t wired_below = lanes.value.port_bitmap & ((1U << i) - 1);
    const int up = LanesOf(lanes.value.lane_bitmap[lanes_are_packed_ ? static_cast<size_t>(std::popcount(wired_below)) : i]);
    pass.Put(lanes_up_[i], wired, up);
    pass.Put(link_up_[i], wired, up > 0 ? 1 : 0);
  }
  auto status = pass.Ask(dcmi::kHccsStatus);
  pass.Put(port_logic_up_, status.ok(), status.value.hdlc_status == abi::kHccsHdlcOk ? 1 : 0);
  auto credits = pass.Ask(dcmi::kHccsCredits);
  for (size_t i = first_link_; i < end_link_; ++i) {
    const uint32_t left = credits.value.credit_num[i];
    pass.Put(credits_[i], credits.ok() && left != UINT32_MAX, left);
  }
}

void LinkReadings::ReadFlowControl(DevicePass& pass, const RowReadings& rows) {
  const abi::DcmiNetworkPktStats* packets = rows.AnswerTo(dcmi::kPacketStatistics);
  for (size_t i = 0; i < pfc_[0].size(); ++i) {
    const bool known = packets != nullptr;
    pass.Put(pfc_[0][i], known, known ? Number(packets->mac_tx_pfc_pri_pkt_num[i]) : 0);
    pass.Put(pfc_[1][i], known, known ? Number(packets->mac_rx_pfc_pri_pkt_num[i]) : 0);
  }
  auto classes = pass.Ask(dcmi::kTrafficClasses);
  auto duration = pass.Ask(dcmi::kPfcDuration);
  for (size_t i = 0; i < traffic_classes_[0].size(); ++i) {
    pass.PutCount(traffic_classes_[0][i], classes.ok(), classes.value.tc_tx[i]);
    pass.PutCount(traffic_classes_[1][i], classes.ok(), classes.value.tc_rx[i]);
    pass.PutCount(pfc_duration_[0][i], duration.ok(), duration.value.tx[i]);
    pass.PutCount(pfc_duration_[1][i], duration.ok(), duration.value.rx[i]);
  }
}

void LinkReadings::ReadSerdes(DevicePass& pass) {
  constexpr MetricId kSnr = MetricByName("atlas_npu_serdes_snr");
  constexpr MetricId kEye = MetricByName("atlas_npu_serdes_eye_height");
  serdes_.BeginRound();
  for (unsigned macro = 0; macro < kSerdesMacros && !pass.over(); ++macro) {
    if (no_macro_[macro]) continue;
    auto quality = pass.Ask(&DcmiService::SerdesQuality, macro);
    if (quality.code == abi::kDcmiInvalidParameter || quality.code == abi::kDcmiNotSupported) no_macro_[macro] = true;
    if (!quality.ok()) continue;
    for (size_t lane = 0; lane < std::size(quality.value.lane); ++lane) {
      const abi::DcmiSerdesLane& v = quality.value.lane[lane];
      auto put = [&](bool eye, int64_t value) {
        const SeriesId series = serdes_.Use({macro, lane, eye}, eye ? kEye : kSnr, [&] {
          return std::array<std::string, 2>{std::to_string(macro), std::to_string(lane)};
        });
        pass.Emit(series, static_cast<double>(value));
      };
      const int64_t bounds = int64_t{v.top} - v.bottom;
      if (v.snr > 0 && v.snr != UINT32_MAX) put(false, v.snr);
      if (v.heh > 0 && v.heh != UINT32_MAX) {
        put(true, v.heh);
      } else if (bounds > 0) {
        put(true, bounds);
      }
    }
  }
  serdes_.EndRound();
}

void LinkReadings::Slow(DevicePass& pass, const NpuStateOptions& options) {
  if (options.pcie_bandwidth_ms > 0) ReadPcieBandwidth(pass, options.pcie_bandwidth_ms);
  if (options.hccs_bandwidth_ms > 0) ReadHccsBandwidth(pass, options.hccs_bandwidth_ms);
  if (options.rdma_bandwidth_ms > 0) ReadRdmaBandwidth(pass, options.rdma_bandwidth_ms);
  if (options.serdes) ReadSerdes(pass);
}

void LinkReadings::ReadPcieBandwidth(DevicePass& pass, int ms) {
  auto info = pass.Ask(&DcmiService::PcieBandwidth, ms);
  const abi::DcmiPcieLinkBandwidthInfo& v = info.value;
  // Directions as the device sees them (dcmi-and-metrics, "PCIe direction").
  const uint32_t* const rates[2][3] = {{v.tx_p_bw, v.tx_np_bw, v.tx_cpl_bw},
                                       {v.rx_p_bw, v.rx_np_bw, v.rx_cpl_bw}};
  for (size_t stat = 0; stat < kStats.size(); ++stat) {
    for (size_t way = 0; way < 2; ++way) {
      for (size_t type = 0; type < kPcieTypes.size(); ++type) {
        pass.Put(pcie_bandwidth_[way][type][stat], info.ok(), rates[way][type][stat] * kMibPerMs);
      }
    }
    pass.Put(pcie_latency_[stat], info.ok(), v.tx_np_lantency[stat] / 1e9);
  }
}

void LinkReadings::ReadHccsBandwidth(DevicePass& pass, int ms) {
  auto info = pass.Ask(&DcmiService::HccsBandwidth, ms);
  for (size_t i = first_link_; i < end_link_; ++i) {
    pass.Put(hccs_bandwidth_[0][i], info.ok(), info.value.tx_bandwidth[i] * kGibPerSecond);
    pass.Put(hccs_bandwidth_[1][i], info.ok(), info.value.rx_bandwidth[i] * kGibPerSecond);
  }
  pass.Put(hccs_bandwidth_all_[0], info.ok(), info.value.total_txbw * kGibPerSecond);
  pass.Put(hccs_bandwidth_all_[1], info.ok(), info.value.total_rxbw * kGibPerSecond);
  pass.Put(hccs_sampling_, info.ok(), info.value.profiling_time / 1e3);
}

void LinkReadings::ReadRdmaBandwidth(DevicePass& pass, int ms) {
  constexpr double kMegabyte = 1e6;  // decimal or binary is not stated; MB/s of a network link
  auto info = pass.Ask(&DcmiService::RdmaBandwidth, ms);
  pass.Put(rdma_[0], info.ok(), info.value.tx_bandwidth * kMegabyte);
  pass.Put(rdma_[1], info.ok(), info.value.rx_bandwidth * kMegabyte);
}

}  // namespace profd
