// How a row of the table is queried, and the queries that need more than a row.
#include <algorithm>

#include "driver/dcmi_service_impl.h"

namespace profd {

int DcmiService::Ask(const DcmiDevice& d, const DcmiQueryRow& query, void* out) {
  const std::shared_ptr<State> state = state_;  // *this may be gone when a hung call returns
  const DcmiAddress address{state->api, d.card, d.chip, d.logical_id};
  alignas(std::max_align_t) std::byte buffer[kMaxDcmiAnswer + kDcmiSlack] = {};
  auto ask = [&] { return query.ask(state->library.functions, address, buffer); };
  const int code = state->Run(state->SlotOf(d), query.call, ask);
  if (code != abi::kDcmiOk) return code;
  std::memcpy(out, buffer, query.size);
  if (query.call == DcmiCall::kPower) state->CountEnergy(d, *static_cast<const int*>(out));
  return code;
}

void DcmiService::State::CountEnergy(const DcmiDevice& d, int deciwatts) {
  if (!abi::IsDcmiPower(deciwatts)) return;
  const int64_t now = clock.MonotonicRawNs();
  const double watts = deciwatts / 10.0;
  MutexLock lock(mutex);
  Slot& slot = SlotOf(d);
  const int64_t gap = now - slot.power_ns;
  if (slot.power_ns >= 0 && gap > 0 && gap <= kMaxEnergyGapNs) {
    slot.joules += (slot.watts + watts) / 2 * static_cast<double>(gap) / 1e9;
  }
  slot.power_ns = now;
  slot.watts = watts;
}

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

DcmiAnswer<int> DcmiService::Topology(const DcmiDevice& d, const DcmiDevice& peer) {
  const int peer_card = peer.card;
  const int peer_chip = peer.chip;
  return Query<int>(d, DcmiCall::kTopology, 0, [&, &f = functions()](auto& at, int* out) {
    return at.InvokeV1(f.topology, peer_card, peer_chip, out);
  });
}

DcmiAnswer<unsigned> DcmiService::Health(const DcmiDevice& d) {
  const std::shared_ptr<State> state = state_;
  auto answer = Ask(d, dcmi::kHealth);
  if (answer.ok() && answer.value == abi::kDcmiHealthAbsent) {
    answer.code = abi::kDcmiDeviceMissing;
    MutexLock lock(state->mutex);
    state->SlotOf(d).SetDown(answer.code);
  }
  return answer;
}

DcmiAnswer<DcmiErrorCodes> DcmiService::ErrorCodes(const DcmiDevice& d) {
  const std::shared_ptr<State> state = state_;
  int count = 0;
  auto list = Query<std::array<unsigned, abi::kDcmiMaxErrorCodes>>(
      d, DcmiCall::kErrorCodes, {}, [&, &f = functions()](auto& at, auto* out) {
        return at.Invoke(f.error_codes, &count, out->data(), abi::kDcmiMaxErrorCodes);
      });
  constexpr int kMax = static_cast<int>(abi::kDcmiMaxErrorCodes);
  DcmiAnswer<DcmiErrorCodes> answer;
  answer.code = list.code;
  answer.value.codes = list.value;
  answer.value.count = static_cast<uint32_t>(std::clamp(count, 0, kMax));
  if (answer.ok() && count >= 0 && count <= kMax) {
    MutexLock lock(state->mutex);
    state->SlotOf(d).fault_events.SetCodes(std::span(list.value.data(), answer.value.count));
  }
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
  {
    MutexLock lock(state->mutex);
    DcmiFaultCounter& events = state->SlotOf(d).fault_events;
    // A list that did not fit would make faults come and go that did not.
    const bool complete = count >= 0 && count <= kMax;
    if (!answer.ok()) {
      events.UpdateWithoutList();
    } else if (complete) {
      events.Update(std::span(list.value.data(), answer.value.count));
    }
  }
  for (size_t i = 0; i < answer.value.count; ++i) {
    const abi::DcmiFaultEvent& event = list.value[i].event;
    DcmiFault& fault = answer.value.faults[i];
    fault = {event.event_id, event.severity, event.assertion};
    const size_t length = std::min(fault.name.size() - 1, sizeof event.event_name);
    for (size_t c = 0; c < length && event.event_name[c] != '\0'; ++c) {
      const char letter = event.event_name[c];
      fault.name[c] = letter >= ' ' && letter <= '~' ? letter : '?';
    }
  }
  return answer;
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

DcmiAnswer<DcmiProcesses> DcmiService::Processes(const DcmiDevice& d) {
  int count = abi::kDcmiMaxProcesses;
  auto list = Query<std::array<abi::DcmiProcMemInfo, abi::kDcmiMaxProcesses>>(
      d, DcmiCall::kProcesses, {}, [&, &f = functions()](auto& at, auto* out) {
        return at.Invoke(f.processes, out->data(), &count);
      });
  count = std::clamp(count, 0, abi::kDcmiMaxProcesses);
  return {list.code, {static_cast<uint32_t>(count), list.value}};
}

}  // namespace profd
