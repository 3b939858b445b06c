#include <algorithm>
#include <cmath>
#include <cstring>

#include "sim/dcmi_state.h"
#include "sim/noise.h"

namespace profd::sim {
namespace {

double SpanNs(int64_t before_ns, int64_t t_ns) {
  return static_cast<double>(std::max<int64_t>(1, t_ns - before_ns));
}

uint64_t Flits(uint64_t bytes) { return bytes / abi::kHccsFlitBytes; }

abi::DcmiHccsStatisticInfoU64 HccsCounters(const DcmiView& view) {
  abi::DcmiHccsStatisticInfoU64 info{};
  const unsigned end = kFirstHccsLink + view.chip().hccs_links;
  for (unsigned link = kFirstHccsLink; link < end; ++link) {
    info.tx_cnt[link] = Flits(view.model().LinkTx(link, view.t_ns));
    info.rx_cnt[link] = Flits(view.model().LinkRx(link, view.t_ns));
    info.retry_cnt[link] = view.model().HccsRetries(link, view.t_ns);
    info.crc_err_cnt[link] = info.retry_cnt[link] / 4;
  }
  return info;
}

int HccsInfo(const DcmiView& view, unsigned sub_cmd, void* buf, unsigned* size) {
  if (!view.SupportsHccsBandwidth()) return abi::kDcmiNotSupported;
  const abi::DcmiHccsStatisticInfoU64 counters = HccsCounters(view);
  const unsigned end = kFirstHccsLink + view.chip().hccs_links;
  switch (sub_cmd) {
    case abi::kSubHccsStatus:
      return Answer(abi::DcmiHccsStatus{1, abi::kHccsHdlcOk, {}}, buf, size);
    case abi::kSubHccsLanes: {
      abi::DcmiHccsLanes lanes{};
      for (unsigned link = kFirstHccsLink; link < end; ++link) {
        lanes.port_bitmap |= 1u << link;
        // A slow link has lost lanes.
        lanes.lane_bitmap[link] = view.model().LinkIsSlow(link, view.t_ns) ? 0x3 : 0xF;
      }
      return Answer(lanes, buf, size);
    }
    case abi::kSubHccsStatistic: {
      abi::DcmiHccsStatisticInfo narrow{};
      for (unsigned link = kFirstHccsLink; link < end; ++link) {
        narrow.tx_cnt[link] = static_cast<uint32_t>(counters.tx_cnt[link]);
        narrow.rx_cnt[link] = static_cast<uint32_t>(counters.rx_cnt[link]);
        narrow.crc_err_cnt[link] = static_cast<uint32_t>(counters.crc_err_cnt[link]);
        narrow.retry_cnt[link] = static_cast<uint32_t>(counters.retry_cnt[link]);
      }
      return Answer(narrow, buf, size);
    }
    case abi::kSubHccsStatisticU64:
      return Answer(counters, buf, size);
    default:
      return abi::kDcmiNotSupported;
  }
}

int DvppInfo(const DcmiView& view, unsigned sub_cmd, void* buf, unsigned* size) {
  if (view.Is910() || view.IsA5()) return abi::kDcmiNotSupported;
  const auto answer = [&](Quantity quantity) {
    const double percent = view.model().BusyRatio(quantity, view.t_ns) * 100;
    return Answer(static_cast<uint32_t>(std::lround(percent)), buf, size);
  };
  switch (sub_cmd) {
    case abi::kSubDvppVdec:
      return answer(kDvppVdecBusy);
    case abi::kSubDvppVpc:
      return answer(kDvppVpcBusy);
    case abi::kSubDvppJpege:
      return answer(kDvppJpegeBusy);
    case abi::kSubDvppJpegd:
      return answer(kDvppJpegdBusy);
    default:
      return abi::kDcmiNotSupported;
  }
}

int CoreUtilization(const DcmiView& view, unsigned sub_cmd, void* buf, unsigned* size) {
  const bool vector = sub_cmd == abi::kSubTsVectorUtil;
  if (sub_cmd > abi::kSubTsVectorUtil || (vector && view.Is910())) return abi::kDcmiNotSupported;
  const unsigned bytes = vector ? abi::kTsVectorUtilBytes : abi::kTsAicoreUtilBytes;
  if (*size < bytes) return abi::kDcmiInvalidParameter;
  const unsigned cores = std::min(bytes, vector ? view.chip().aiv_cores : view.chip().aic_cores);
  const double mean = view.model().BusyRatio(vector ? kVectorBusy : kCubeBusy, view.t_ns);
  auto* const util = static_cast<uint8_t*>(buf);
  std::memset(util, 0, bytes);
  for (unsigned core = 0; core < cores; ++core) {
    const double own =
        0.03 * Signed(Hash(view.node.scenario().seed, kNoiseIdentity + 0x20, view.device, core));
    util[core] = static_cast<uint8_t>(std::clamp((mean + own) * 100, 0.0, 100.0));
  }
  *size = bytes;
  return abi::kDcmiOk;
}

int LowPowerInfo(const DcmiView& view, unsigned sub_cmd, void* buf, unsigned* size) {
  if (sub_cmd == abi::kSubLpFreqReductionCause) {
    return Answer(view.model().ThrottleCause(view.t_ns), buf, size);
  }
  if (sub_cmd != abi::kSubLpPowerInfo) return abi::kDcmiNotSupported;
  return Answer(abi::DcmiLpPowerInfo{static_cast<uint32_t>(view.chip().max_watts), {}}, buf, size);
}

abi::DcmiSpodInfo SuperPod(unsigned device) {
  abi::DcmiSpodInfo info{};
  info.sdid = device;
  return info;
}

}  // namespace

int DcmiView::PcieBandwidth(int64_t before_ns, abi::DcmiPcieLinkBandwidthInfo* out) const {
  const double ms = SpanNs(before_ns, t_ns) / 1e6;
  const auto fill = [&](Quantity quantity, uint32_t(&field)[3]) {
    const uint64_t bytes = model().Total(quantity, t_ns) - model().Total(quantity, before_ns);
    const double mb = static_cast<double>(bytes) / 1048576.0 / ms;
    field[0] = static_cast<uint32_t>(mb * 0.9);
    const double limit = chip().pcie_bytes_per_s / 1048576.0 / 1e3;
    field[1] = static_cast<uint32_t>(std::lround(std::min(mb * 1.1, limit)));
    field[2] = static_cast<uint32_t>(std::lround(mb));
    field[1] = std::max(field[1], field[2]);
  };
  fill(kPcieTxPosted, out->tx_p_bw);
  fill(kPcieTxNonPosted, out->tx_np_bw);
  fill(kPcieTxCompletion, out->tx_cpl_bw);
  fill(kPcieRxPosted, out->rx_p_bw);
  fill(kPcieRxNonPosted, out->rx_np_bw);
  fill(kPcieRxCompletion, out->rx_cpl_bw);
  out->tx_np_lantency[0] = 640;
  out->tx_np_lantency[1] = 2300;
  out->tx_np_lantency[2] = 950;
  return abi::kDcmiOk;
}

// Adds to the totals like the driver does (dcmi-and-metrics 1.9): the caller must have zeroed them.
int DcmiView::HccsBandwidth(int64_t before_ns, abi::DcmiHccsBandwidthInfo* out) const {
  const double seconds = SpanNs(before_ns, t_ns) / 1e9;
  constexpr double kGiB = 1073741824.0;
  const auto rate = [&](uint64_t now, uint64_t before) {
    return static_cast<double>((Flits(now) - Flits(before)) * abi::kHccsFlitBytes) / seconds / kGiB;
  };
  for (unsigned link = kFirstHccsLink; link < kFirstHccsLink + chip().hccs_links; ++link) {
    out->tx_bandwidth[link] = rate(model().LinkTx(link, t_ns), model().LinkTx(link, before_ns));
    out->rx_bandwidth[link] = rate(model().LinkRx(link, t_ns), model().LinkRx(link, before_ns));
    out->total_txbw += out->tx_bandwidth[link];
    out->total_rxbw += out->rx_bandwidth[link];
  }
  return abi::kDcmiOk;
}

int DcmiView::RdmaBandwidth(int64_t before_ns, abi::DcmiRdmaBandwidthInfo* out) const {
  const double seconds = SpanNs(before_ns, t_ns) / 1e9;
  const auto rate = [&](Quantity quantity) {
    const uint64_t bytes = model().Total(quantity, t_ns) - model().Total(quantity, before_ns);
    return static_cast<uint32_t>(static_cast<double>(bytes) / seconds / 1048576.0);
  };
  out->tx_bandwidth = rate(kRoceTx);
  out->rx_bandwidth = rate(kRoceRx);
  return abi::kDcmiOk;
}

int DcmiView::PktStats(abi::DcmiNetworkPktStats* out) const {
  *out = {};
  const DeviceModel& m = model();
  const uint64_t retries = m.RoceRetries(t_ns);
  out->mac_tx_total_oct_num = m.MacTx(t_ns);
  out->mac_rx_total_oct_num = m.MacRx(t_ns);
  out->mac_tx_total_pkt_num = PacketsOf(out->mac_tx_total_oct_num);
  out->mac_rx_total_pkt_num = PacketsOf(out->mac_rx_total_oct_num);
  out->nic_tx_all_oct_num = out->mac_tx_total_oct_num;
  out->nic_rx_all_oct_num = out->mac_rx_total_oct_num;
  out->nic_tx_all_pkg_num = out->mac_tx_total_pkt_num;
  out->nic_rx_all_pkg_num = out->mac_rx_total_pkt_num;
  out->roce_tx_all_pkt_num = PacketsOf(m.Total(kRoceTx, t_ns));
  out->roce_rx_all_pkt_num = PacketsOf(m.Total(kRoceRx, t_ns));
  out->roce_tx_rc_pkt_num = out->roce_tx_all_pkt_num;
  out->roce_rx_rc_pkt_num = out->roce_rx_all_pkt_num;
  out->roce_cqe_num = out->roce_tx_all_pkt_num / 64;
  out->roce_new_pkt_rty_num = retries;
  out->roce_err_psn_num = retries;
  out->roce_tx_err_pkt_num = retries / 10;
  out->roce_rx_cnp_pkt_num = out->roce_tx_all_pkt_num / 100'000 + retries;
  out->roce_tx_cnp_pkt_num = out->roce_rx_all_pkt_num / 100'000;
  out->roce_ecn_db_num = out->roce_rx_cnp_pkt_num;
  constexpr unsigned kRocePriority = 4;
  out->mac_tx_pfc_pri_pkt_num[kRocePriority] = out->roce_tx_all_pkt_num / 500'000;
  out->mac_rx_pfc_pri_pkt_num[kRocePriority] = out->roce_rx_all_pkt_num / 400'000 + retries / 5;
  out->mac_tx_pfc_pkt_num = out->mac_tx_pfc_pri_pkt_num[kRocePriority];
  out->mac_rx_pfc_pkt_num = out->mac_rx_pfc_pri_pkt_num[kRocePriority];
  const int64_t us = node.clock().WallNs() / 1'000;
  out->tv_sec = us / 1'000'000;
  out->tv_usec = us % 1'000'000;
  return abi::kDcmiOk;
}

int DcmiView::DeviceInfo(int main_cmd, unsigned sub_cmd, void* buf, unsigned* size) const {
  switch (main_cmd) {
    case abi::kCmdHccs:
      return HccsInfo(*this, sub_cmd, buf, size);
    case abi::kCmdDvpp:
      return DvppInfo(*this, sub_cmd, buf, size);
    case abi::kCmdTs:
      return CoreUtilization(*this, sub_cmd, buf, size);
    case abi::kCmdLp:
      return LowPowerInfo(*this, sub_cmd, buf, size);
    case abi::kCmdPcie:
      if (sub_cmd != abi::kSubPcieErrors || !IsA2()) return abi::kDcmiNotSupported;
      return Answer(abi::DcmiPcieErrors{}, buf, size);
    case abi::kCmdSio:
      if (sub_cmd != abi::kSubSioCrc || !(IsA3() || IsA5())) return abi::kDcmiNotSupported;
      // A healthy die-to-die link still sees one CRC error every few minutes.
      return Answer(abi::DcmiSioCrcErrInfo{static_cast<uint16_t>(t_ns / 240'000'000'000),
                                           static_cast<uint16_t>(t_ns / 310'000'000'000),
                                           {}},
                    buf, size);
    case abi::kCmdVdevMng:
      return VdevInfo(sub_cmd, buf, size);
    case abi::kCmdChipInf:
      if (sub_cmd != abi::kSubChipInfSpod || !IsA3()) return abi::kDcmiNotSupported;
      return Answer(SuperPod(device), buf, size);
    default:
      return abi::kDcmiNotSupported;
  }
}

}  // namespace profd::sim
