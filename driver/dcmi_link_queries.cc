// The questions of DcmiService about links and shared NPUs that need more than a row of the table.
#include <algorithm>

#include "driver/dcmi_service_impl.h"

namespace profd {
namespace {

// Counter of 16 bits that went from `before` to `now`: forwards, at most once around.
uint16_t Step(uint16_t before, uint16_t now) { return static_cast<uint16_t>(now - before); }

}  // namespace

// ---- interconnect and network ----

DcmiAnswer<DcmiSioErrors> DcmiService::SioErrors(const DcmiDevice& d) {
  const std::shared_ptr<State> state = state_;
  auto raw = Ask(d, dcmi::kSioCrc);
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

DcmiAnswer<abi::DcmiSerdesQuality> DcmiService::SerdesQuality(const DcmiDevice& d, unsigned macro) {
  return Query<abi::DcmiSerdesQuality>(d, DcmiCall::kSerdesQuality, {},
                                       [macro, &f = functions()](auto& at, auto* out) {
                                         return at.Invoke(f.serdes_quality, macro, out);
                                       });
}

// ---- virtual NPUs ----

DcmiAnswer<DcmiVdevs> DcmiService::Vdevs(const DcmiDevice& d) {
  auto total = Ask(d, dcmi::kVdevTotal);
  DcmiAnswer<DcmiVdevs> answer{total.code, {}};
  answer.value.count = std::min<uint32_t>(total.value.vdev_num, abi::kVdevMax);
  std::copy_n(total.value.vdev_id, answer.value.count, answer.value.ids.begin());
  return answer;
}

DcmiAnswer<DcmiVdevActivity> DcmiService::VdevActivity(const DcmiDevice& d, uint32_t vdev) {
  abi::DcmiVdevQuery question{};
  question.vdev_id = vdev;
  auto info = Query<abi::DcmiVdevQuery>(
      d, DcmiCall::kVdevActivity, question, [&f = functions()](auto& at, auto* out) {
        return at.Info(f, abi::kCmdVdevMng, abi::kSubVdevActivity, out);
      });
  const abi::DcmiComputingResource& computing = info.value.computing;
  return {
      info.code,
      {computing.vdev_aicore_utilization, computing.vdev_memory_total, computing.vdev_memory_free}};
}

// ---- Unified Bus: the second generation of the interface only ----

DcmiAnswer<DcmiUbPorts> DcmiService::UbPorts(const DcmiDevice& d) {
  auto list = Ask(d, dcmi::kUbPortList);
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

}  // namespace profd
