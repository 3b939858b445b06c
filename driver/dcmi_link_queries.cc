// The questions of DcmiService about links, the network and shared NPUs, one function each.
#include <algorithm>

#include "driver/dcmi_service_impl.h"

namespace profd {
namespace {

// Counter of 16 bits that went from `before` to `now`: forwards, at most once around.
uint16_t Step(uint16_t before, uint16_t now) { return static_cast<uint16_t>(now - before); }

}  // namespace

// ---- interconnect and network ----

DcmiAnswer<abi::DcmiChipPcieErrRate> DcmiService::PcieErrorCounts(const DcmiDevice& d) {
  return Query<abi::DcmiChipPcieErrRate>(
      d, DcmiCall::kPcieErrorCounts, {},
      [&f = functions()](auto& at, auto* out) { return at.Invoke(f.pcie_error_counts, out); });
}

DcmiAnswer<abi::DcmiPcieErrors> DcmiService::PcieErrors(const DcmiDevice& d) {
  return Info<abi::DcmiPcieErrors>(d, DcmiCall::kPcieErrors, abi::kCmdPcie, abi::kSubPcieErrors);
}

DcmiAnswer<abi::DcmiHccsStatisticInfo> DcmiService::HccsStatistic(const DcmiDevice& d) {
  return Info<abi::DcmiHccsStatisticInfo>(d, DcmiCall::kHccsStatistic, abi::kCmdHccs,
                                          abi::kSubHccsStatistic);
}

DcmiAnswer<abi::DcmiHccsStatisticInfoU64> DcmiService::HccsStatisticU64(const DcmiDevice& d) {
  return Info<abi::DcmiHccsStatisticInfoU64>(d, DcmiCall::kHccsStatisticU64, abi::kCmdHccs,
                                             abi::kSubHccsStatisticU64);
}

DcmiAnswer<abi::DcmiHccsStatus> DcmiService::HccsStatus(const DcmiDevice& d) {
  return Info<abi::DcmiHccsStatus>(d, DcmiCall::kHccsStatus, abi::kCmdHccs, abi::kSubHccsStatus);
}

DcmiAnswer<abi::DcmiHccsLanes> DcmiService::HccsLanes(const DcmiDevice& d) {
  return Info<abi::DcmiHccsLanes>(d, DcmiCall::kHccsLanes, abi::kCmdHccs, abi::kSubHccsLanes);
}

DcmiAnswer<DcmiSioErrors> DcmiService::SioErrors(const DcmiDevice& d) {
  const std::shared_ptr<State> state = state_;
  auto raw = Info<abi::DcmiSioCrcErrInfo>(d, DcmiCall::kSioCrc, abi::kCmdSio, abi::kSubSioCrc);
  if (raw.code == kDcmiAbandoned) return {raw.code, {}};
  MutexLock lock(state->mutex);
  State::Slot& slot = state->SlotOf(d);
  if (!raw.ok()) {
    // The device may come back reset; a restart from zero must not look like a wrap.
    if (ClassifyDcmi(raw.code) == DcmiErrorClass::kDeviceDown) slot.sio_known = false;
    return {raw.code, {}};
  }
  if (slot.sio_known) {
    slot.sio.tx += Step(slot.sio_tx, raw.value.tx_error_count);
    slot.sio.rx += Step(slot.sio_rx, raw.value.rx_error_count);
  }
  slot.sio_known = true;
  slot.sio_tx = raw.value.tx_error_count;
  slot.sio_rx = raw.value.rx_error_count;
  return {abi::kDcmiOk, slot.sio};
}

DcmiAnswer<abi::DcmiNetworkPktStats> DcmiService::PacketStatistics(const DcmiDevice& d) {
  return Query<abi::DcmiNetworkPktStats>(
      d, DcmiCall::kPacketStatistics, {},
      [&f = functions()](auto& at, auto* out) { return at.Invoke(f.packet_statistics, 0, out); });
}

DcmiAnswer<abi::DcmiPcieLinkBandwidthInfo> DcmiService::PcieBandwidth(const DcmiDevice& d, int ms) {
  abi::DcmiPcieLinkBandwidthInfo initial{};
  initial.profiling_time = std::clamp(ms, 0, abi::kPcieProfilingMaxMs);
  return Query<abi::DcmiPcieLinkBandwidthInfo>(
      d, DcmiCall::kPcieBandwidth, initial,
      [&f = functions()](auto& at, auto* out) { return at.Invoke(f.pcie_bandwidth, out); });
}

DcmiAnswer<abi::DcmiHccsBandwidthInfo> DcmiService::HccsBandwidth(const DcmiDevice& d, int ms) {
  abi::DcmiHccsBandwidthInfo initial{};  // zeroed each time: the driver adds to the totals
  initial.profiling_time = std::clamp(ms, 1, abi::kHccsProfilingMaxMs);
  return Query<abi::DcmiHccsBandwidthInfo>(
      d, DcmiCall::kHccsBandwidth, initial,
      [&f = functions()](auto& at, auto* out) { return at.InvokeV1(f.hccs_bandwidth, out); });
}

DcmiAnswer<abi::DcmiRdmaBandwidthInfo> DcmiService::RdmaBandwidth(const DcmiDevice& d, int ms) {
  const unsigned time = std::clamp(static_cast<unsigned>(std::max(ms, 0)), abi::kRdmaProfilingMinMs,
                                   abi::kRdmaProfilingMaxMs);
  return Query<abi::DcmiRdmaBandwidthInfo>(d, DcmiCall::kRdmaBandwidth, {},
                                           [time, &f = functions()](auto& at, auto* out) {
                                             return at.Invoke(f.rdma_bandwidth, 0, time, out);
                                           });
}

DcmiAnswer<abi::DcmiHccsCreditInfo> DcmiService::HccsCredits(const DcmiDevice& d) {
  return Query<abi::DcmiHccsCreditInfo>(
      d, DcmiCall::kHccsCredits, {},
      [&f = functions()](auto& at, auto* out) { return at.InvokeV1(f.hccs_credits, out); });
}

DcmiAnswer<abi::DcmiTcStatData> DcmiService::TrafficClasses(const DcmiDevice& d) {
  return Query<abi::DcmiTcStatData>(
      d, DcmiCall::kTrafficClasses, {},
      [&f = functions()](auto& at, auto* out) { return at.InvokeV1(f.traffic_classes, out); });
}

DcmiAnswer<abi::DcmiPfcDurationInfo> DcmiService::PfcDuration(const DcmiDevice& d) {
  return Query<abi::DcmiPfcDurationInfo>(
      d, DcmiCall::kPfcDuration, {},
      [&f = functions()](auto& at, auto* out) { return at.InvokeV1(f.pfc_duration, out); });
}

DcmiAnswer<abi::DcmiExtraStatistics> DcmiService::ExtraStatistics(const DcmiDevice& d) {
  return Query<abi::DcmiExtraStatistics>(
      d, DcmiCall::kExtraStatistics, {},
      [&f = functions()](auto& at, auto* out) { return at.InvokeV1(f.extra_statistics, 0, out); });
}

DcmiAnswer<abi::DcmiSerdesQuality> DcmiService::SerdesQuality(const DcmiDevice& d, unsigned macro) {
  return Query<abi::DcmiSerdesQuality>(d, DcmiCall::kSerdesQuality, {},
                                       [macro, &f = functions()](auto& at, auto* out) {
                                         return at.Invoke(f.serdes_quality, macro, out);
                                       });
}

// ---- virtual NPUs ----

DcmiAnswer<DcmiVdevs> DcmiService::Vdevs(const DcmiDevice& d) {
  auto total = Info<abi::DcmiSocTotalResource>(d, DcmiCall::kVdevTotal, abi::kCmdVdevMng,
                                               abi::kSubVdevTotal);
  DcmiAnswer<DcmiVdevs> answer{total.code, {}};
  answer.value.count = std::min<uint32_t>(total.value.vdev_num, abi::kVdevMax);
  std::copy_n(total.value.vdev_id, answer.value.count, answer.value.ids.begin());
  return answer;
}

DcmiAnswer<DcmiVdevActivity> DcmiService::VdevActivity(const DcmiDevice& d, uint32_t vdev) {
  abi::DcmiVdevQuery question{};
  question.vdev_id = vdev;
  auto info = Info<abi::DcmiVdevQuery>(d, DcmiCall::kVdevActivity, abi::kCmdVdevMng,
                                       abi::kSubVdevActivity, question);
  const abi::DcmiComputingResource& computing = info.value.computing;
  return {
      info.code,
      {computing.vdev_aicore_utilization, computing.vdev_memory_total, computing.vdev_memory_free}};
}

// ---- Unified Bus: the second generation of the interface only ----

DcmiAnswer<DcmiUbPorts> DcmiService::UbPorts(const DcmiDevice& d) {
  auto list = Query<abi::DcmiUbPortList>(
      d, DcmiCall::kUbPortList, {},
      [&f = functions()](auto& at, auto* out) { return at.InvokeV2(f.v2_ub_port_list, out); });
  DcmiAnswer<DcmiUbPorts> answer{list.code, {}};
  const int dies = std::clamp(list.value.die_nums, 0, abi::kUbMaxDies);
  for (int i = 0; i < dies; ++i) {
    const abi::DcmiUbDiePorts& die = list.value.die[i];
    const int ports = std::clamp(die.port_nums, 0, abi::kUbMaxPorts);
    for (int k = 0; k < ports; ++k) {
      const int port = die.port[k].port_index;
      // Indices without a name are not queried.
      if (die.die_index < 0 || die.die_index >= abi::kUbMaxDies || port < 0 ||
          port >= abi::kUbMaxPorts) {
        continue;
      }
      answer.value.ports[answer.value.count++] = {die.die_index, port,
                                                  die.port[k].mode == abi::kUbModeUboe};
    }
  }
  return answer;
}

DcmiAnswer<abi::DcmiPortPktStats> DcmiService::UbPortStatistics(const DcmiDevice& d, int udie,
                                                                int port) {
  abi::DcmiUbPortInfo where{udie, port};
  return Query<abi::DcmiPortPktStats>(d, DcmiCall::kUbPortStatistics, {},
                                      [&where, &f = functions()](auto& at, auto* out) {
                                        return at.InvokeV2(f.v2_ub_port_statistics, &where, out);
                                      });
}

DcmiAnswer<abi::DcmiUbPortLinkStatus> DcmiService::UbLinkStatus(const DcmiDevice& d) {
  return Query<abi::DcmiUbPortLinkStatus>(
      d, DcmiCall::kUbLinkStatus, {},
      [&f = functions()](auto& at, auto* out) { return at.InvokeV2(f.v2_ub_link_status, out); });
}

}  // namespace profd
