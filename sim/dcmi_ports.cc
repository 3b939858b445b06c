// Flow control, error correction and lanes of one device's links, and the virtual NPUs it is split
// into (dcmi-and-metrics 1.3, rows 23, 29 to 32, 42).
#include <algorithm>
#include <cmath>
#include <cstring>

#include "sim/dcmi_state.h"
#include "sim/noise.h"

namespace profd::sim {
namespace {

constexpr unsigned kRocePriority = 4;  // as in DcmiView::PktStats
constexpr uint64_t kPauseQuanta = 65535;
constexpr uint64_t kCodewordBits = 5440;  // RS(544,514) of ten-bit symbols
constexpr unsigned kLanes = 8;

// How many bits of the wire are wrong: a module that has lost light has some orders more.
double BitErrorRatio(const DcmiView& view) {
  constexpr double kHealthy = 1e-10, kWeak = 4e-6;
  for (const Fault& fault : view.node.faults().all()) {
    if (fault.kind == FaultKind::kOptical && fault.optical == OpticalMode::kLowPower &&
        fault.Covers(view.t_ns) && fault.Concerns(static_cast<int>(view.device))) {
      return kWeak;
    }
  }
  return kHealthy;
}

// What the faults so far have added to the corrected bits, so that the counter stays one when a
// fault ends.
uint64_t CorrectedByFaults(const DcmiView& view) {
  constexpr double kPerSecond = 800'000;
  double bits = 0;
  for (const Fault& fault : view.node.faults().all()) {
    if (fault.kind != FaultKind::kOptical || fault.optical != OpticalMode::kLowPower ||
        !fault.Concerns(static_cast<int>(view.device))) {
      continue;
    }
    const int64_t elapsed =
        std::clamp<int64_t>(view.t_ns - fault.begin_ns, 0, fault.end_ns - fault.begin_ns);
    bits += std::floor(kPerSecond * static_cast<double>(elapsed) / 1e9);
  }
  return static_cast<uint64_t>(bits);
}

bool HasMacro(const DcmiView& view, unsigned macro) {
  if (view.IsA5()) return macro <= 17;
  constexpr unsigned kNone = 8;  // on no chip
  return macro != kNone && macro <= (view.IsA2() ? 12u : 7u);
}

// A server with ports 0 to 8 on each die, of which the last one speaks Ethernet.
constexpr int kUbPorts = 9;
constexpr int kEthernetDie = 1, kEthernetPort = 8;
constexpr uint64_t kUbFlitBytes = 32;

bool IsUbPort(int die, int port) {
  return die >= 0 && die < abi::kUbMaxDies && port >= 0 && port < kUbPorts;
}

// The link whose bytes go over the port.
unsigned LinkOf(const DcmiView& view, int port) {
  return kFirstHccsLink + static_cast<unsigned>(port) % view.chip().hccs_links;
}

}  // namespace

int DcmiView::HccsCredits(abi::DcmiHccsCreditInfo* out) const {
  if (!IsA3()) return abi::kDcmiNotSupported;
  *out = {};
  for (unsigned link = kFirstHccsLink; link < kFirstHccsLink + chip().hccs_links; ++link) {
    // The other side of a slow link takes data slowly.
    out->credit_num[link] = model().LinkIsSlow(link, t_ns) ? 2 : 64;
  }
  return abi::kDcmiOk;
}

int DcmiView::TrafficClasses(abi::DcmiTcStatData* out) const {
  if (!IsA2() && !IsA3()) return abi::kDcmiNotSupported;
  *out = {};
  const uint64_t tx = PacketsOf(model().MacTx(t_ns));
  const uint64_t rx = PacketsOf(model().MacRx(t_ns));
  out->tc_tx[kRocePriority] = PacketsOf(model().Total(kRoceTx, t_ns));
  out->tc_rx[kRocePriority] = PacketsOf(model().Total(kRoceRx, t_ns));
  out->tc_tx[0] = tx - std::min(tx, out->tc_tx[kRocePriority]);
  out->tc_rx[0] = rx - std::min(rx, out->tc_rx[kRocePriority]);
  return abi::kDcmiOk;
}

int DcmiView::PfcDuration(abi::DcmiPfcDurationInfo* out) const {
  if (!IsA2() && !IsA3()) return abi::kDcmiNotSupported;
  abi::DcmiNetworkPktStats packets;
  PktStats(&packets);
  *out = {};
  for (unsigned i = 0; i < std::size(out->tx); ++i) {
    out->tx[i] = packets.mac_tx_pfc_pri_pkt_num[i] * kPauseQuanta;
    out->rx[i] = packets.mac_rx_pfc_pri_pkt_num[i] * kPauseQuanta;
  }
  return abi::kDcmiOk;
}

int DcmiView::ExtraStatistics(abi::DcmiExtraStatistics* out) const {
  if (!IsA2()) return abi::kDcmiNotSupported;
  *out = {};
  // The line is never silent: code words go by at its nominal rate.
  const double seconds = static_cast<double>(std::max<int64_t>(0, t_ns)) / 1e9;
  const auto bits = static_cast<uint64_t>(seconds * chip().roce_mbit_per_s) * 1'000'000;
  out->trans_total_bit = bits;
  out->cw_total_cnt = bits / kCodewordBits;
  out->cw_total_correct_bit = bits / 10'000'000'000 + CorrectedByFaults(*this);
  out->cw_before_correct_cnt = out->cw_total_correct_bit;
  out->cw_correct_cnt = out->cw_total_correct_bit;
  out->cw_uncorrect_cnt = model().RoceRetries(t_ns) / 20;  // what arrives broken is sent again
  out->cw_bad_cnt = out->cw_uncorrect_cnt;
  out->rx_send_app_good_pkts = PacketsOf(model().MacRx(t_ns));
  out->correcting_bit_rate = BitErrorRatio(*this);
  return abi::kDcmiOk;
}

int DcmiView::Serdes(unsigned macro, abi::DcmiSerdesQuality* out) const {
  if (Is910()) return abi::kDcmiNotSupported;
  if (!HasMacro(*this, macro)) return abi::kDcmiInvalidParameter;
  *out = {};
  out->macro_id = macro;
  constexpr unsigned kFirstWithBounds = 9;  // these macros report the eye's bounds
  for (unsigned lane = 0; lane < kLanes; ++lane) {
    const uint64_t noise =
        Hash(node.scenario().seed, kNoiseIdentity + 0x30, device, macro * kLanes + lane);
    abi::DcmiSerdesLane& eye = out->lane[lane];
    if (IsA5()) {
      eye.snr = 26 + static_cast<uint32_t>(noise % 5);
    } else if (macro < kFirstWithBounds) {
      eye.snr = 26 + static_cast<uint32_t>(noise % 5);
      eye.heh = 55 + static_cast<uint32_t>(noise / 5 % 12);
    } else {
      eye.top = 28 + static_cast<int32_t>(noise % 6);
      eye.bottom = -eye.top;
      eye.right = 9;
      eye.left = -9;
    }
  }
  return abi::kDcmiOk;
}

int DcmiView::UbPorts(abi::DcmiUbPortList* out) const {
  if (!IsA5()) return abi::kDcmiNotSupported;
  *out = {};
  out->die_nums = abi::kUbMaxDies;
  for (int die = 0; die < abi::kUbMaxDies; ++die) {
    out->die[die].die_index = die;
    out->die[die].port_nums = kUbPorts;
    for (int port = 0; port < kUbPorts; ++port) {
      const bool ethernet = die == kEthernetDie && port == kEthernetPort;
      out->die[die].port[port] = {port, ethernet ? abi::kUbModeUboe : abi::kUbModeUb};
    }
  }
  return abi::kDcmiOk;
}

int DcmiView::UbPortStatistics(const abi::DcmiUbPortInfo& where, abi::DcmiPortPktStats* out) const {
  if (!IsA5()) return abi::kDcmiNotSupported;
  if (!IsUbPort(where.udie_id, where.port_id)) return abi::kDcmiInvalidParameter;
  // Places in the vendor's list (dcmi-and-metrics 1.4).
  enum : size_t { kRxMemory = 7, kRxToNoc = 15, kRxFlits = 19, kRxAcks = 20, kTxMemory = 28 };
  enum : size_t { kTxFlits = 35, kTxAcks = 36, kRetryRequests = 37, kRetryAcks = 38, kCrc = 39 };
  *out = {};
  const unsigned link = LinkOf(*this, where.port_id);
  const uint64_t tx = model().LinkTx(link, t_ns);
  const uint64_t rx = model().LinkRx(link, t_ns);
  const uint64_t retries = model().HccsRetries(link, t_ns);
  uint64_t* const count = out->pkt_num;
  count[kRxMemory] = PacketsOf(rx);
  count[kRxToNoc] = count[kRxMemory];
  count[kRxFlits] = rx / kUbFlitBytes;
  count[kRxAcks] = count[kRxFlits] / 16;
  count[kTxMemory] = PacketsOf(tx);
  count[kTxFlits] = tx / kUbFlitBytes;
  count[kTxAcks] = count[kTxFlits] / 16;
  count[kRetryRequests] = retries;
  count[kRetryAcks] = retries;
  count[kCrc] = retries / 4;
  return abi::kDcmiOk;
}

int DcmiView::UbLinkStatus(abi::DcmiUbPortLinkStatus* out) const {
  if (!IsA5()) return abi::kDcmiNotSupported;
  *out = {};
  out->ub_link_status = 1;
  for (int port = 0; port < kUbPorts; ++port) {
    const bool slow = model().LinkIsSlow(LinkOf(*this, port), t_ns);
    out->ub_port_status[port] = slow ? abi::kUbPortPartial : abi::kUbPortFull;
  }
  return abi::kDcmiOk;
}

int DcmiView::VdevInfo(unsigned sub_cmd, void* buf, unsigned* size) const {
  if (!Is910()) return abi::kDcmiNotSupported;
  if (sub_cmd == abi::kSubVdevTotal) {
    abi::DcmiSocTotalResource total{};
    for (const SimVnpu& vnpu : node.scenario().vnpus) {
      if (vnpu.device != static_cast<int>(device) || total.vdev_num == abi::kVdevMax) continue;
      total.vdev_id[total.vdev_num++] = vnpu.id;
    }
    total.computing.aic = static_cast<float>(chip().aic_cores);
    total.computing.memory_size = chip().hbm_mb;
    return Answer(total, buf, size);
  }
  if (sub_cmd != abi::kSubVdevActivity) return abi::kDcmiNotSupported;
  abi::DcmiVdevQuery query{};
  if (*size < sizeof query) return abi::kDcmiInvalidParameter;
  std::memcpy(&query, buf, sizeof query);
  for (const SimVnpu& vnpu : node.scenario().vnpus) {
    if (vnpu.id != query.vdev_id || vnpu.device != static_cast<int>(device)) continue;
    const double busy = model().BusyRatio(kCubeBusy, t_ns);
    const double used = 0.3 + 0.6 * model().ActivationRatio(t_ns);
    const uint64_t kb = vnpu.memory_bytes >> 10;
    query.computing.aic = static_cast<float>(vnpu.share * chip().aic_cores);
    query.computing.memory_size = vnpu.memory_bytes >> 20;
    query.computing.vdev_aicore_utilization = static_cast<uint32_t>(busy * 100);
    query.computing.vdev_memory_total = kb;
    query.computing.vdev_memory_free = kb - static_cast<uint64_t>(static_cast<double>(kb) * used);
    return Answer(query, buf, size);
  }
  return abi::kDcmiInvalidParameter;
}

}  // namespace profd::sim
