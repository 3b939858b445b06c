#include "driver/dcmi_service.h"

#include <fmt/format.h>

#include <utility>

#include "driver/dcmi_service_impl.h"

namespace profd {
namespace {

DcmiStuckCall Describe(int physical_id, DcmiCall call, int64_t for_ns) {
  std::string where = physical_id < 0 ? "" : fmt::format(" for NPU {}", physical_id);
  return {
      physical_id, call, for_ns,
      fmt::format("{}{} has not returned for {} s", NameOf(call), where, for_ns / kNsPerSecond)};
}

// Initialising and enumerating are tried again after driver resets, and one slot serves all cards
// there, so no answer to them is final.
bool IsFinal(DcmiCall call, int code) {
  if (call <= DcmiCall::kDeviceList && call != DcmiCall::kDriverHealth) return false;
  const DcmiErrorClass what = ClassifyDcmi(code);
  // One macro, port, virtual NPU or peer may be unsupported beside others that are not.
  const bool is_of_one = call == DcmiCall::kSerdesQuality || call == DcmiCall::kUbPortStatistics || call == DcmiCall::kVdevActivity ||
                         call == DcmiCall::kTopology;
  if (is_of_one && code == abi::kDcmiNotSupported) return false;
  return what == DcmiErrorClass::kUnsupported || what == DcmiErrorClass::kDenied;
}

}  // namespace

DcmiService::DcmiService(DcmiLibrary library, const Clock& clock, Options options)
    : options_(options), state_(std::make_shared<State>(std::move(library), clock)) {
  devices_.reserve(kMaxDcmiDevices);
}

DcmiService::~DcmiService() = default;

DcmiApi DcmiService::api() const { return state_->api; }

std::string_view DcmiService::api_name() const {
  switch (api()) {
    case DcmiApi::kV1:
      return "v1";
    case DcmiApi::kV2:
      return "v2";
    case DcmiApi::kNone:
      break;
  }
  return "";
}

const DcmiFunctions& DcmiService::functions() const { return state_->library.functions; }

const DcmiDevice* DcmiService::FindByLogicalId(int logical_id) const {
  for (const DcmiDevice& device : devices()) {
    if (device.logical_id == logical_id) return &device;
  }
  return nullptr;
}

int DcmiService::State::Run(Slot& slot, DcmiCall call, void* closure, ErasedFn fn) {
  const size_t which = static_cast<size_t>(call);
  {
    MutexLock lock(mutex);
    if (slot.refused[which] != 0) return slot.refused[which];
    if (slot.in_flight) return kDcmiStuck;
    slot.in_flight = true;
    slot.call = call;
    slot.since_ns = clock.SteadyNs();
  }
  int code = fn(closure);

  MutexLock lock(mutex);
  DcmiCallStatistics& counts = statistics[which];
  ++counts.calls;
  if (code != kDcmiSymbolMissing) counts.durations.Observe(clock.SteadyNs() - slot.since_ns);
  if (code == abi::kDcmiOk) slot.answered_ns = clock.MonotonicRawNs();
  if (call == DcmiCall::kHealth) {
    slot.SetDown(ClassifyDcmi(code) == DcmiErrorClass::kDeviceDown ? code : 0);
  }
  if (code != abi::kDcmiOk) {
    ++counts.errors[DcmiErrorIndex(code)];
    if (IsFinal(call, code)) slot.refused[which] = code;
    if (IsFinal(call, code) && ClassifyDcmi(code) == DcmiErrorClass::kDenied && !std::exchange(denied[which], true)) {
      denials.push_back({call, slot.physical_id});
    }
  }
  if (slot.stuck) {
    code = kDcmiAbandoned;
    ++counts.errors[DcmiErrorIndex(code)];
  }
  slot.stuck = false;
  slot.in_flight = false;
  return code;
}

bool DcmiService::CheckStuck(int64_t now_steady_ns, int64_t limit_ns) {
  bool found = false;
  MutexLock lock(state_->mutex);
  for (State::Slot& slot : state_->slots) {
    if (!slot.in_flight || slot.stuck || now_steady_ns - slot.since_ns < limit_ns) continue;
    slot.stuck = true;
    slot.sio_known = false;  // it needs a reset, as one that is lost
    found = true;
  }
  return found;
}

std::vector<DcmiStuckCall> DcmiService::StuckCalls(int64_t now_steady_ns) const {
  std::vector<DcmiStuckCall> found;
  MutexLock lock(state_->mutex);
  for (const State::Slot& slot : state_->slots) {
    if (slot.stuck) {
      found.push_back(Describe(slot.physical_id, slot.call, now_steady_ns - slot.since_ns));
    }
  }
  return found;
}

bool DcmiService::HasCallInFlight() const {
  MutexLock lock(state_->mutex);
  return std::ranges::any_of(state_->slots, [](const State::Slot& slot) { return slot.in_flight; }) ||
         std::ranges::any_of(state_->cards, [](const State::Card& card) { return !card.searches.empty(); }) ||
         (state_->attempt != nullptr && !state_->attempt->done);
}

std::string DcmiService::ProblemOf(const DcmiDevice& d, int64_t now_steady_ns) const {
  MutexLock lock(state_->mutex);
  const State::Slot& slot = state_->SlotOf(d);
  if (slot.stuck) {
    return Describe(slot.physical_id, slot.call, now_steady_ns - slot.since_ns).text +
           ": the card hangs; see dmesg and `npu-smi info`; it needs a reset or a restart of the "
           "node";
  }
  if (slot.down_code == 0) return {};
  return fmt::format(
      "NPU {} does not answer ({}): the card has dropped off the bus or is being reset; see dmesg "
      "and `npu-smi info`; if it does not come back, the node needs a cold restart",
      slot.physical_id, DcmiStatus(slot.down_code, NameOf(DcmiCall::kHealth)).message());
}

int64_t DcmiService::LastAnswerNs(const DcmiDevice& d) const {
  MutexLock lock(state_->mutex);
  return state_->SlotOf(d).answered_ns;
}

std::vector<DcmiCallStatistics> DcmiService::Statistics() const {
  MutexLock lock(state_->mutex);
  return {state_->statistics.begin(), state_->statistics.end()};
}

void DcmiService::VisitRefused(
    const std::function<void(const DcmiDevice&, DcmiCall, int code)>& visit) const {
  for (const DcmiDevice& device : devices()) {
    std::array<int, kDcmiCallCount> refused;
    {
      MutexLock lock(state_->mutex);
      refused = state_->SlotOf(device).refused;
    }
    for (size_t i = 0; i < refused.size(); ++i) {
      if (refused[i] != 0) visit(device, static_cast<DcmiCall>(i), refused[i]);
    }
  }
}

std::vector<DcmiDenial> DcmiService::TakeDenials() {
  MutexLock lock(state_->mutex);
  return std::exchange(state_->denials, {});
}

DcmiFaultEventCounts DcmiService::FaultEvents(const DcmiDevice& d) const {
  MutexLock lock(state_->mutex);
  return state_->SlotOf(d).fault_events.counts();
}

double DcmiService::EnergyJoules(const DcmiDevice& d) const {
  MutexLock lock(state_->mutex);
  return state_->SlotOf(d).joules;
}

}  // namespace profd
