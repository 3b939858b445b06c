#include "collectors/npu_state/link_readings.h"

#include <bit>
#include <cmath>

namespace profd {
namespace {

constexpr std::array<std::string_view, 2> kDirections = {"tx", "rx"};
constexpr std::array<std::string_view, 3> kStats = {"min", "max", "avg"};
constexpr std::array<std::string_view, 3> kPcieTypes = {"posted", "nonposted", "completion"};
// The first five are words of PCIE/1, the rest of dcmi_get_device_pcie_error_cnt.
constexpr std::array<std::string_view, 9> kPcieErrors = {
    "tx", "rx", "lcrc", "ecrc", "retry", "symbol_unlock", "pcs_rx", "phy_lane", "dcrc"};
constexpr size_t kPcieLcrc = 2;
constexpr std::array<std::string_view, 4> kCodewordStates = {"total", "corrected", "uncorrected",
                                                             "bad"};
constexpr double kGibPerSecond = 1024.0 * 1024.0 * 1024.0;
constexpr double kMibPerMs = 1024.0 * 1024.0 * 1000.0;

double Number(uint64_t value) { return static_cast<double>(value); }

}  // namespace

LinkReadings::LinkReadings(SlotOwner& owner) : serdes_(owner) {
  constexpr MetricId kBytes = MetricByName("atlas_npu_network_bytes_total");
  constexpr MetricId kPackets = MetricByName("atlas_npu_network_packets_total");
  constexpr MetricId kRoce = MetricByName("atlas_npu_roce_packets_total");
  constexpr MetricId kHccs = MetricByName("atlas_npu_hccs_bandwidth_bytes_per_second");
  for (size_t way = 0; way < 2; ++way) {
    const std::string_view direction = kDirections[way];
    for (size_t i = kFirstLink; i < kLinks; ++i) {
      flits_[way][i] =
          SeriesSlot(MetricByName("atlas_npu_hccs_flits_total"), kNumberText[i], direction);
      hccs_bandwidth_[way][i] = SeriesSlot(kHccs, kNumberText[i], direction);
    }
    hccs_bandwidth_all_[way] = SeriesSlot(kHccs, "all", direction);
    sio_[way] = SeriesSlot(MetricByName("atlas_npu_sio_crc_errors_total"), direction);
    mac_bytes_[way] = SeriesSlot(kBytes, direction, "mac");
    nic_bytes_[way] = SeriesSlot(kBytes, direction, "nic");
    mac_packets_[way] = SeriesSlot(kPackets, direction, "mac");
    nic_packets_[way] = SeriesSlot(kPackets, direction, "nic");
    bad_packets_[way] = SeriesSlot(MetricByName("atlas_npu_network_bad_packets_total"), direction);
    bad_bytes_[way] = SeriesSlot(MetricByName("atlas_npu_network_bad_bytes_total"), direction);
    pause_[way] = SeriesSlot(MetricByName("atlas_npu_network_pause_frames_total"), direction);
    for (size_t i = 0; i < pfc_[way].size(); ++i) {
      pfc_[way][i] =
          SeriesSlot(MetricByName("atlas_npu_network_pfc_frames_total"), direction, kNumberText[i]);
      pfc_duration_[way][i] = SeriesSlot(MetricByName("atlas_npu_network_pfc_duration_total"),
                                         direction, kNumberText[i]);
      traffic_classes_[way][i] =
          SeriesSlot(MetricByName("atlas_npu_network_tc_packets_total"), direction, kNumberText[i]);
    }
    roce_all_[way] = SeriesSlot(kRoce, direction, "all");
    roce_rc_[way] = SeriesSlot(kRoce, direction, "rc");
    roce_err_[way] = SeriesSlot(kRoce, direction, "err");
    roce_cnp_[way] = SeriesSlot(kRoce, direction, "cnp");
    rdma_[way] = SeriesSlot(MetricByName("atlas_npu_rdma_bandwidth_bytes_per_second"), direction);
    for (size_t type = 0; type < kPcieTypes.size(); ++type) {
      for (size_t stat = 0; stat < kStats.size(); ++stat) {
        pcie_bandwidth_[way][type][stat] =
            SeriesSlot(MetricByName("atlas_npu_pcie_bandwidth_bytes_per_second"), direction,
                       kPcieTypes[type], kStats[stat]);
      }
    }
  }
  for (size_t i = kFirstLink; i < kLinks; ++i) {
    hccs_crc_[i] = SeriesSlot(MetricByName("atlas_npu_hccs_crc_errors_total"), kNumberText[i]);
    hccs_retries_[i] = SeriesSlot(MetricByName("atlas_npu_hccs_retries_total"), kNumberText[i]);
    link_up_[i] = SeriesSlot(MetricByName("atlas_npu_hccs_link_up"), kNumberText[i]);
    lanes_up_[i] = SeriesSlot(MetricByName("atlas_npu_hccs_lanes_up"), kNumberText[i]);
    credits_[i] = SeriesSlot(MetricByName("atlas_npu_hccs_credits"), kNumberText[i]);
  }
  NameErrors();
}

void LinkReadings::NameErrors() {
  constexpr MetricId kRoceErrors = MetricByName("atlas_npu_roce_errors_total");
  for (size_t stat = 0; stat < kStats.size(); ++stat) {
    pcie_latency_[stat] =
        SeriesSlot(MetricByName("atlas_npu_pcie_read_latency_seconds"), kStats[stat]);
  }
  for (size_t i = 0; i < kPcieErrors.size(); ++i) {
    pcie_errors_[i] = SeriesSlot(MetricByName("atlas_npu_pcie_errors_total"), kPcieErrors[i]);
  }
  for (size_t i = 0; i < kCodewordStates.size(); ++i) {
    codewords_[i] =
        SeriesSlot(MetricByName("atlas_npu_network_fec_codewords_total"), kCodewordStates[i]);
  }
  roce_errors_ = {SeriesSlot(kRoceErrors, "unexpected_ack"),
                  SeriesSlot(kRoceErrors, "out_of_order"), SeriesSlot(kRoceErrors, "verification"),
                  SeriesSlot(kRoceErrors, "qp_status")};
}

void LinkReadings::PutBoth(DevicePass& pass, Both& slots, bool ok, uint64_t tx, uint64_t rx) {
  pass.Put(slots[0], ok, Number(tx));
  pass.Put(slots[1], ok, Number(rx));
}

void LinkReadings::Medium(DevicePass& pass) {
  ReadHccs(pass);
  ReadHccsLanes(pass);
  auto sio = pass.Ask(&DcmiService::SioErrors);
  PutBoth(pass, sio_, sio.ok(), sio.value.tx, sio.value.rx);
  ReadNetwork(pass);
  ReadFlowControl(pass);
  ReadErrorCorrection(pass);
}

void LinkReadings::ReadHccs(DevicePass& pass) {
  auto wide = pass.Ask(&DcmiService::HccsStatisticU64);
  // Flit counters of 32 bits wrap within seconds and cannot be followed at our pace; the error
  // counters of the narrow form can.
  DcmiAnswer<abi::DcmiHccsStatisticInfo> narrow{kDcmiStuck, {}};
  if (!wide.ok()) narrow = pass.Ask(&DcmiService::HccsStatistic);
  const bool errors = wide.ok() || narrow.ok();
  for (size_t i = kFirstLink; i < kLinks; ++i) {
    pass.Put(flits_[0][i], wide.ok(), Number(wide.value.tx_cnt[i]));
    pass.Put(flits_[1][i], wide.ok(), Number(wide.value.rx_cnt[i]));
    pass.Put(hccs_crc_[i], errors,
             wide.ok() ? Number(wide.value.crc_err_cnt[i]) : narrow.value.crc_err_cnt[i]);
    pass.Put(hccs_retries_[i], errors,
             wide.ok() ? Number(wide.value.retry_cnt[i]) : narrow.value.retry_cnt[i]);
  }
}

void LinkReadings::ReadHccsLanes(DevicePass& pass) {
  auto lanes = pass.Ask(&DcmiService::HccsLanes);
  for (size_t i = kFirstLink; i < kLinks; ++i) {
    // Links the board does not wire are not in the port map.
    const bool wired = lanes.ok() && (lanes.value.port_bitmap >> i & 1u) != 0;
    const int up = std::popcount(lanes.value.lane_bitmap[i]);
    pass.Put(lanes_up_[i], wired, up);
    pass.Put(link_up_[i], wired, up > 0 ? 1 : 0);
  }
  auto status = pass.Ask(&DcmiService::HccsStatus);
  pass.Put(port_logic_up_, status.ok(), status.value.hdlc_status == abi::kHccsHdlcOk ? 1 : 0);
  auto credits = pass.Ask(&DcmiService::HccsCredits);
  for (size_t i = kFirstLink; i < kLinks; ++i) {
    const uint32_t left = credits.value.credit_num[i];
    pass.Put(credits_[i], credits.ok() && left != UINT32_MAX, left);
  }
}

void LinkReadings::ReadNetwork(DevicePass& pass) {
  auto health = pass.Ask(&DcmiService::NetworkHealth);
  const bool healthy = health.value == abi::kNetOk || health.value == abi::kNetInit;
  pass.Put(health_, health.ok() && health.value != abi::kNetUnknown, healthy ? 1 : 0);
  pass.Put(health_code_, health);
  auto packets = pass.Ask(&DcmiService::PacketStatistics);
  PutMac(pass, packets.ok(), packets.value);
  PutRoce(pass, packets.ok(), packets.value);
}

void LinkReadings::PutMac(DevicePass& pass, bool ok, const abi::DcmiNetworkPktStats& s) {
  PutBoth(pass, mac_bytes_, ok, s.mac_tx_total_oct_num, s.mac_rx_total_oct_num);
  PutBoth(pass, nic_bytes_, ok, s.nic_tx_all_oct_num, s.nic_rx_all_oct_num);
  PutBoth(pass, mac_packets_, ok, s.mac_tx_total_pkt_num, s.mac_rx_total_pkt_num);
  PutBoth(pass, nic_packets_, ok, s.nic_tx_all_pkg_num, s.nic_rx_all_pkg_num);
  PutBoth(pass, bad_packets_, ok, s.mac_tx_bad_pkt_num, s.mac_rx_bad_pkt_num);
  PutBoth(pass, bad_bytes_, ok, s.mac_tx_bad_oct_num, s.mac_rx_bad_oct_num);
  PutBoth(pass, pause_, ok, s.mac_tx_mac_pause_num, s.mac_rx_mac_pause_num);
  for (size_t i = 0; i < pfc_[0].size(); ++i) {
    pass.Put(pfc_[0][i], ok, Number(s.mac_tx_pfc_pri_pkt_num[i]));
    pass.Put(pfc_[1][i], ok, Number(s.mac_rx_pfc_pri_pkt_num[i]));
  }
  pass.Put(fcs_, ok, Number(s.mac_rx_fcs_err_pkt_num));
}

void LinkReadings::PutRoce(DevicePass& pass, bool ok, const abi::DcmiNetworkPktStats& s) {
  PutBoth(pass, roce_all_, ok, s.roce_tx_all_pkt_num, s.roce_rx_all_pkt_num);
  PutBoth(pass, roce_rc_, ok, s.roce_tx_rc_pkt_num, s.roce_rx_rc_pkt_num);
  PutBoth(pass, roce_err_, ok, s.roce_tx_err_pkt_num, s.roce_rx_err_pkt_num);
  PutBoth(pass, roce_cnp_, ok, s.roce_tx_cnp_pkt_num, s.roce_rx_cnp_pkt_num);
  pass.Put(retransmits_, ok, Number(s.roce_new_pkt_rty_num));
  pass.Put(ecn_, ok, Number(s.roce_ecn_db_num));
  pass.Put(cqes_, ok, Number(s.roce_cqe_num));
  pass.Put(roce_errors_[0], ok, Number(s.roce_err_ack_num));
  pass.Put(roce_errors_[1], ok, Number(s.roce_err_psn_num));
  pass.Put(roce_errors_[2], ok, Number(s.roce_verification_err_num));
  pass.Put(roce_errors_[3], ok, Number(s.roce_err_qp_status_num));
}

void LinkReadings::ReadFlowControl(DevicePass& pass) {
  auto classes = pass.Ask(&DcmiService::TrafficClasses);
  auto duration = pass.Ask(&DcmiService::PfcDuration);
  for (size_t i = 0; i < traffic_classes_[0].size(); ++i) {
    pass.PutCount(traffic_classes_[0][i], classes.ok(), classes.value.tc_tx[i]);
    pass.PutCount(traffic_classes_[1][i], classes.ok(), classes.value.tc_rx[i]);
    pass.PutCount(pfc_duration_[0][i], duration.ok(), duration.value.tx[i]);
    pass.PutCount(pfc_duration_[1][i], duration.ok(), duration.value.rx[i]);
  }
}

void LinkReadings::ReadErrorCorrection(DevicePass& pass) {
  auto extra = pass.Ask(&DcmiService::ExtraStatistics);
  const abi::DcmiExtraStatistics& v = extra.value;
  pass.PutCount(codewords_[0], extra.ok(), v.cw_total_cnt);
  pass.PutCount(codewords_[1], extra.ok(), v.cw_correct_cnt);
  pass.PutCount(codewords_[2], extra.ok(), v.cw_uncorrect_cnt);
  pass.PutCount(codewords_[3], extra.ok(), v.cw_bad_cnt);
  pass.PutCount(corrected_bits_, extra.ok(), v.cw_total_correct_bit);
  const double ratio = v.correcting_bit_rate;
  const bool sane = std::isfinite(ratio) && ratio >= 0 && ratio <= 1;
  pass.Put(bit_errors_, extra.ok() && sane, ratio);
}

void LinkReadings::ReadSerdes(DevicePass& pass) {
  constexpr MetricId kSnr = MetricByName("atlas_npu_serdes_snr");
  constexpr MetricId kEye = MetricByName("atlas_npu_serdes_eye_height");
  serdes_.BeginRound();
  for (unsigned macro = 0; macro < kSerdesMacros && !pass.over(); ++macro) {
    if (no_macro_[macro]) continue;
    auto quality = pass.Ask(&DcmiService::SerdesQuality, macro);
    if (quality.code == abi::kDcmiInvalidParameter) no_macro_[macro] = true;
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
  ReadPcieErrors(pass);
  if (options.pcie_bandwidth_ms > 0) ReadPcieBandwidth(pass, options.pcie_bandwidth_ms);
  if (options.hccs_bandwidth_ms > 0) ReadHccsBandwidth(pass, options.hccs_bandwidth_ms);
  if (options.rdma_bandwidth_ms > 0) ReadRdmaBandwidth(pass, options.rdma_bandwidth_ms);
  if (options.serdes) ReadSerdes(pass);
}

void LinkReadings::ReadPcieErrors(DevicePass& pass) {
  auto words = pass.Ask(&DcmiService::PcieErrors);
  auto counts = pass.Ask(&DcmiService::PcieErrorCounts);
  const abi::DcmiPcieErrors& w = words.value;
  const abi::DcmiChipPcieErrRate& c = counts.value;
  const std::array<uint32_t, 9> values = {w.tx_err_cnt,
                                          w.rx_err_cnt,
                                          words.ok() ? w.lcrc_err_cnt : c.dl_lcrc_err_num,
                                          w.ecrc_err_cnt,
                                          w.retry_cnt,
                                          c.symbol_unlock_counter,
                                          c.pcs_rx_err_cnt,
                                          c.phy_lane_err_counter,
                                          c.dl_dcrc_err_num};
  for (size_t i = 0; i < values.size(); ++i) {
    const bool known = i < 5 ? words.ok() || (i == kPcieLcrc && counts.ok()) : counts.ok();
    pass.Put(pcie_errors_[i], known, values[i]);
  }
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
  for (size_t i = kFirstLink; i < kLinks; ++i) {
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
