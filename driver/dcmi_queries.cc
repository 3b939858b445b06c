// The questions of DcmiService, one function each. Selectors are dcmi-and-metrics 1.5.
#include <algorithm>
#include <utility>

#include "driver/dcmi_service_impl.h"

namespace profd {
namespace {

int FrequencyType(DcmiCall call) {
  switch (call) {
    case DcmiCall::kFrequencyDdr:
      return abi::kFreqDdr;
    case DcmiCall::kFrequencyCtrlCpu:
      return abi::kFreqCtrlCpu;
    case DcmiCall::kFrequencyHbm:
      return abi::kFreqHbm;
    case DcmiCall::kFrequencyAicoreRated:
      return abi::kFreqAicoreRated;
    case DcmiCall::kFrequencyVector:
      return abi::kFreqVectorCurrent;
    default:
      return abi::kFreqAicoreCurrent;
  }
}

int UtilizationType(DcmiCall call) {
  switch (call) {
    case DcmiCall::kUtilAicpu:
      return abi::kUtilAicpu;
    case DcmiCall::kUtilCtrlCpu:
      return abi::kUtilCtrlCpu;
    case DcmiCall::kUtilHbm:
      return abi::kUtilHbm;
    case DcmiCall::kUtilHbmBandwidth:
      return abi::kUtilHbmBandwidth;
    case DcmiCall::kUtilVector:
      return abi::kUtilVector;
    case DcmiCall::kUtilNpu:
      return abi::kUtilNpu;
    case DcmiCall::kUtilCube:
      return abi::kUtilCube;
    default:
      return abi::kUtilAicore;
  }
}

int SensorId(DcmiCall call) {
  switch (call) {
    case DcmiCall::kSensorThreshold:
      return abi::kSensorThermalThreshold;
    case DcmiCall::kSensorNtc:
      return abi::kSensorNtc;
    case DcmiCall::kSensorSoc:
      return abi::kSensorSocTemp;
    case DcmiCall::kSensorOpticalCage:
      return abi::kSensorFpTemp;
    case DcmiCall::kSensorNdie:
      return abi::kSensorNDieTemp;
    default:
      return abi::kSensorClusterTemp;
  }
}

abi::DcmiSubCmd DvppCommand(DcmiCall call) {
  switch (call) {
    case DcmiCall::kDvppVpc:
      return abi::kSubDvppVpc;
    case DcmiCall::kDvppJpege:
      return abi::kSubDvppJpege;
    case DcmiCall::kDvppJpegd:
      return abi::kSubDvppJpegd;
    default:
      return abi::kSubDvppVdec;
  }
}

}  // namespace

// ---- identity and state ----

DcmiAnswer<unsigned> DcmiService::DriverHealth() {
  const DcmiFunctions& f = functions();
  const abi::DcmiGetDriverHealthFn fn =
      api() == DcmiApi::kV2 ? f.v2_driver_health : f.driver_health;
  DcmiAnswer<unsigned> answer;
  unsigned health = 0;
  answer.code = RunNode(DcmiCall::kDriverHealth,
                    [&] { return fn != nullptr ? fn(&health) : kDcmiSymbolMissing; });
  answer.value = health;
  return answer;
}

DcmiAnswer<int> DcmiService::Compatibility(const DcmiDevice& d) {
  return Query<int>(d, DcmiCall::kCompatibility, 0, [&f = functions()](auto& at, auto* out) {
    return at.Invoke(f.compatibility, out);
  });
}

DcmiAnswer<int> DcmiService::BootStatus(const DcmiDevice& d) {
  return Query<int>(d, DcmiCall::kBootStatus, 0, [&f = functions()](auto& at, auto* out) {
    return at.Invoke(f.boot_status, out);
  });
}

DcmiAnswer<int> DcmiService::Topology(const DcmiDevice& d, const DcmiDevice& peer) {
  const int peer_card = peer.card;
  const int peer_chip = peer.chip;
  return Query<int>(d, DcmiCall::kTopology, 0, [&, &f = functions()](auto& at, int* out) {
    return at.InvokeV1(f.topology, peer_card, peer_chip, out);
  });
}

DcmiAnswer<unsigned> DcmiService::Health(const DcmiDevice& d) {
  const std::shared_ptr<State> state = state_;
  auto answer = Query<unsigned>(d, DcmiCall::kHealth, 0, [&f = functions()](auto& at, auto* out) {
    return at.Invoke(f.health, out);
  });
  if (answer.ok() && answer.value == abi::kDcmiHealthAbsent) {
    answer.code = abi::kDcmiDeviceMissing;
    MutexLock lock(state->mutex);
    state->SlotOf(d).down_code = answer.code;
  }
  return answer;
}

DcmiAnswer<DcmiErrorCodes> DcmiService::ErrorCodes(const DcmiDevice& d) {
  int count = 0;
  auto list = Query<std::array<unsigned, abi::kDcmiMaxErrorCodes>>(
      d, DcmiCall::kErrorCodes, {}, [&, &f = functions()](auto& at, auto* out) {
        return at.Invoke(f.error_codes, &count, out->data(), abi::kDcmiMaxErrorCodes);
      });
  DcmiAnswer<DcmiErrorCodes> answer;
  answer.code = list.code;
  answer.value.codes = list.value;
  answer.value.count =
      static_cast<uint32_t>(std::clamp(count, 0, static_cast<int>(abi::kDcmiMaxErrorCodes)));
  return answer;
}

DcmiAnswer<DcmiFaults> DcmiService::CurrentFaults(const DcmiDevice& d) {
  const std::shared_ptr<State> state = state_;
  constexpr int kMax = static_cast<int>(std::tuple_size_v<decltype(DcmiFaults::faults)>);
  int count = 0;
  auto list = Query<std::array<abi::DcmiEvent, kMax>>(
      d, DcmiCall::kCurrentFaults, {}, [&, &f = functions()](auto& at, auto* out) {
        return at.Invoke(f.current_faults, out->data(), kMax, &count);
      });
  DcmiAnswer<DcmiFaults> answer;
  answer.code = list.code;
  answer.value.count = static_cast<uint32_t>(std::clamp(count, 0, kMax));
  // A list that did not fit would make faults come and go that did not.
  if (answer.ok() && count >= 0 && count <= kMax) {
    MutexLock lock(state->mutex);
    state->SlotOf(d).fault_events.Update(
        std::span(list.value.data(), answer.value.count));
  }
  for (size_t i = 0; i < answer.value.count; ++i) {
    const abi::DcmiFaultEvent& event = list.value[i].event;
    DcmiFault& fault = answer.value.faults[i];
    fault = {event.event_id, event.severity, event.assertion};
    const size_t room = std::min(fault.name.size() - 1, sizeof event.event_name);
    for (size_t c = 0; c < room && event.event_name[c] != '\0'; ++c) {
      const char letter = event.event_name[c];
      fault.name[c] = letter >= ' ' && letter <= '~' ? letter : '?';
    }
  }
  return answer;
}

DcmiAnswer<int> DcmiService::NetworkHealth(const DcmiDevice& d) {
  return Query<int>(d, DcmiCall::kNetworkHealth, 0, [&f = functions()](auto& at, auto* out) {
    return at.Invoke(f.network_health, out);
  });
}

// ---- power, temperature, clocks, utilization ----

DcmiAnswer<int> DcmiService::Temperature(const DcmiDevice& d) {
  return Query<int>(d, DcmiCall::kTemperature, 0, [&f = functions()](auto& at, auto* out) {
    return at.Invoke(f.temperature, out);
  });
}

DcmiAnswer<int> DcmiService::Power(const DcmiDevice& d) {
  const std::shared_ptr<State> state = state_;
  auto answer = Query<int>(d, DcmiCall::kPower, 0, [&f = functions()](auto& at, auto* out) {
    return at.Invoke(f.power, out);
  });
  if (!answer.ok() || answer.value < 0) return answer;
  const int64_t now = state->clock.MonotonicRawNs();
  const double watts = answer.value / 10.0;
  MutexLock lock(state->mutex);
  State::Slot& slot = state->SlotOf(d);
  const int64_t gap = now - slot.power_ns;
  if (slot.power_ns >= 0 && gap > 0 && gap <= kMaxEnergyGapNs) {
    slot.joules += (slot.watts + watts) / 2 * static_cast<double>(gap) / 1e9;
  }
  slot.power_ns = now;
  slot.watts = watts;
  return answer;
}

DcmiAnswer<int> DcmiService::BoardPower(const DcmiDevice& d) {
  return Query<int>(d, DcmiCall::kBoardPower, 0, [&f = functions()](auto& at, int* out) {
    if (f.board_power == nullptr || at.api != DcmiApi::kV1) return kDcmiSymbolMissing;
    return f.board_power(at.card, out);
  });
}

DcmiAnswer<unsigned> DcmiService::Voltage(const DcmiDevice& d) {
  return Query<unsigned>(d, DcmiCall::kVoltage, 0, [&f = functions()](auto& at, auto* out) {
    return at.Invoke(f.voltage, out);
  });
}

DcmiAnswer<unsigned> DcmiService::Frequency(const DcmiDevice& d, DcmiCall call) {
  return Query<unsigned>(d, call, 0, [call, &f = functions()](auto& at, auto* out) {
    return at.Invoke(f.frequency, FrequencyType(call), out);
  });
}

DcmiAnswer<abi::DcmiAicoreInfo> DcmiService::AicoreInfo(const DcmiDevice& d) {
  return Query<abi::DcmiAicoreInfo>(
      d, DcmiCall::kAicoreInfo, {},
      [&f = functions()](auto& at, auto* out) { return at.Invoke(f.aicore_info, out); });
}

DcmiAnswer<abi::DcmiAicpuInfo> DcmiService::AicpuInfo(const DcmiDevice& d) {
  return Query<abi::DcmiAicpuInfo>(
      d, DcmiCall::kAicpuInfo, {},
      [&f = functions()](auto& at, auto* out) { return at.Invoke(f.aicpu_info, out); });
}

DcmiAnswer<unsigned> DcmiService::Utilization(const DcmiDevice& d, DcmiCall call) {
  return Query<unsigned>(d, call, 0, [call, &f = functions()](auto& at, auto* out) {
    return at.Invoke(f.utilization, UtilizationType(call), out);
  });
}

DcmiAnswer<abi::DcmiMultiUtilizationInfo> DcmiService::MultiUtilization(const DcmiDevice& d) {
  return Query<abi::DcmiMultiUtilizationInfo>(
      d, DcmiCall::kMultiUtilization, {},
      [&f = functions()](auto& at, auto* out) { return at.Invoke(f.multi_utilization, out); });
}

DcmiAnswer<DcmiCoreUtilization> DcmiService::CoreUtilization(const DcmiDevice& d, DcmiCall call) {
  const bool vector = call == DcmiCall::kCoreUtilVector;
  const unsigned want = vector ? abi::kTsVectorUtilBytes : abi::kTsAicoreUtilBytes;
  unsigned size = want;
  auto bytes = Query<std::array<uint8_t, abi::kTsVectorUtilBytes>>(
      d, call, {}, [&, &f = functions()](auto& at, auto* out) {
        const unsigned sub_command = vector ? abi::kSubTsVectorUtil : abi::kSubTsAicoreUtil;
        return at.Invoke(f.device_info, static_cast<int>(abi::kCmdTs), sub_command,
                         static_cast<void*>(out->data()), &size);
      });
  return {bytes.code, {std::min(size, want), bytes.value}};
}

DcmiAnswer<unsigned> DcmiService::ThrottleReason(const DcmiDevice& d) {
  return Info<unsigned>(d, DcmiCall::kThrottleReason, abi::kCmdLp, abi::kSubLpFreqReductionCause);
}

DcmiAnswer<unsigned> DcmiService::RatedPower(const DcmiDevice& d) {
  auto info =
      Info<abi::DcmiLpPowerInfo>(d, DcmiCall::kRatedPower, abi::kCmdLp, abi::kSubLpPowerInfo);
  return {info.code, info.value.soc_rated_power};
}

DcmiAnswer<abi::DcmiSensorInfo> DcmiService::Sensor(const DcmiDevice& d, DcmiCall call) {
  return Query<abi::DcmiSensorInfo>(d, call, {}, [call, &f = functions()](auto& at, auto* out) {
    return at.Invoke(f.sensor_info, SensorId(call), out);
  });
}

// ---- memory ----

DcmiAnswer<abi::DcmiHbmInfo> DcmiService::HbmInfo(const DcmiDevice& d) {
  return Query<abi::DcmiHbmInfo>(
      d, DcmiCall::kHbmInfo, {},
      [&f = functions()](auto& at, auto* out) { return at.Invoke(f.hbm_info, out); });
}

DcmiAnswer<abi::DcmiMemoryInfoV3> DcmiService::MemoryInfoV3(const DcmiDevice& d) {
  return Query<abi::DcmiMemoryInfoV3>(
      d, DcmiCall::kMemoryInfoV3, {},
      [&f = functions()](auto& at, auto* out) { return at.InvokeV1(f.memory_info_v3, out); });
}

DcmiAnswer<abi::DcmiMemoryInfo> DcmiService::MemoryInfo(const DcmiDevice& d) {
  return Query<abi::DcmiMemoryInfo>(
      d, DcmiCall::kMemoryInfo, {},
      [&f = functions()](auto& at, auto* out) { return at.InvokeV1(f.memory_info, out); });
}

DcmiAnswer<abi::DcmiCgroupInfo> DcmiService::CgroupInfo(const DcmiDevice& d) {
  return Query<abi::DcmiCgroupInfo>(
      d, DcmiCall::kCgroupInfo, {},
      [&f = functions()](auto& at, auto* out) { return at.Invoke(f.cgroup_info, out); });
}

DcmiAnswer<DcmiEcc> DcmiService::Ecc(const DcmiDevice& d, DcmiCall call) {
  // Older drivers know 28 of the 36 bytes: what they leave alone keeps this mark.
  constexpr uint32_t kUntouched = UINT32_MAX;
  abi::DcmiEccInfo initial{};
  initial.single_bit_next_isolated_pages_cnt = kUntouched;
  initial.double_bit_next_isolated_pages_cnt = kUntouched;
  const int memory = call == DcmiCall::kEccDdr ? abi::kEccDdr : abi::kEccHbm;
  auto info =
      Query<abi::DcmiEccInfo>(d, call, initial, [memory, &f = functions()](auto& at, auto* out) {
        return at.Invoke(f.ecc_info, memory, out);
      });
  const bool has_next = info.value.single_bit_next_isolated_pages_cnt != kUntouched &&
                        info.value.double_bit_next_isolated_pages_cnt != kUntouched;
  return {info.code, {info.value, has_next}};
}

DcmiAnswer<abi::DcmiLlcPerf> DcmiService::LlcPerf(const DcmiDevice& d) {
  return Query<abi::DcmiLlcPerf>(
      d, DcmiCall::kLlcPerf, {},
      [&f = functions()](auto& at, auto* out) { return at.Invoke(f.llc_perf, out); });
}

DcmiAnswer<DcmiProcesses> DcmiService::Processes(const DcmiDevice& d) {
  int count = abi::kDcmiMaxProcesses;
  auto list = Query<std::array<abi::DcmiProcMemInfo, abi::kDcmiMaxProcesses>>(
      d, DcmiCall::kProcesses, {}, [&, &f = functions()](auto& at, auto* out) {
        return at.Invoke(f.processes, out->data(), &count);
      });
  count = std::clamp(count, 0, abi::kDcmiMaxProcesses);
  return {list.code, {static_cast<uint32_t>(count), list.value}};
}

// ---- engines ----

DcmiAnswer<abi::DcmiDvppRatio> DcmiService::DvppRatio(const DcmiDevice& d) {
  return Query<abi::DcmiDvppRatio>(
      d, DcmiCall::kDvppRatio, {},
      [&f = functions()](auto& at, auto* out) { return at.InvokeV1(f.dvpp_ratio, out); });
}

DcmiAnswer<unsigned> DcmiService::DvppEngine(const DcmiDevice& d, DcmiCall call) {
  return Info<unsigned>(d, call, abi::kCmdDvpp, DvppCommand(call));
}

}  // namespace profd
