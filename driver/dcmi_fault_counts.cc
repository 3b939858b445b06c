#include "driver/dcmi_fault_counts.h"

#include <algorithm>
#include <utility>

namespace profd {
namespace {

constexpr uint8_t kAssertionRecovered = 0;
constexpr uint8_t kAssertionOneOff = 2;
constexpr uint8_t kNoSeverity = UINT8_MAX;  // of a code that no list of faults had

bool IsCodeAlone(const auto& fault) { return fault.severity == kNoSeverity && fault.place == 0; }

bool HasCode(const auto& faults, uint32_t code) {
  return std::ranges::any_of(faults, [code](const auto& fault) { return fault.code == code; });
}

}  // namespace

void DcmiFaultCounter::Update(std::span<const abi::DcmiEvent> list) {
  std::vector<Fault> now;
  for (const abi::DcmiEvent& entry : list) {
    const abi::DcmiFaultEvent& event = entry.event;
    if (event.assertion == kAssertionRecovered) continue;
    const uint32_t place = uint32_t{event.node_type} << 24 | uint32_t{event.node_id} << 16 |
                           uint32_t{event.sub_node_type} << 8 | event.sub_node_id;
    const Fault fault{event.event_id, place, event.severity, event.assertion == kAssertionOneOff};
    if (std::ranges::find(now, fault) == now.end()) now.push_back(fault);
  }
  Compare(std::move(now));
  list_known_ = true;
}

void DcmiFaultCounter::UpdateWithoutList() {
  std::vector<Fault> now;
  for (const Fault& fault : current_) {
    if (!IsCodeAlone(fault)) now.push_back(fault);
  }
  Compare(std::move(now));
}

// A fault is over when neither list has it any more, and has the severity that was known of it.
void DcmiFaultCounter::AddCodes(std::vector<Fault>* now) const {
  if (!codes_.has_value()) {
    for (const Fault& fault : current_) {
      if (IsCodeAlone(fault) && !HasCode(*now, fault.code)) now->push_back(fault);
    }
    return;
  }
  for (const uint32_t code : *codes_) {
    if (HasCode(*now, code)) continue;
    for (const Fault& fault : current_) {
      if (fault.code == code) now->push_back(fault);
    }
    if (!HasCode(*now, code)) now->push_back({code, 0, kNoSeverity, false});
  }
}

void DcmiFaultCounter::Compare(std::vector<Fault> now) {
  AddCodes(&now);
  auto count = [this](const Fault& fault, DcmiFaultChange change) {
    const size_t severity = std::min<size_t>(fault.severity, kDcmiSeverities - 1);
    ++counts_[severity][static_cast<size_t>(change)];
  };
  auto is_in = [](const std::vector<Fault>& faults, const Fault& fault) {
    return std::ranges::find(faults, fault) != faults.end();
  };
  for (const Fault& fault : now) {
    const bool known = IsCodeAlone(fault) ? codes_known_ : list_known_;
    if (!known || is_in(current_, fault)) continue;
    if (is_in(current_, {fault.code, 0, kNoSeverity, false})) continue;  // it got a severity: not new
    count(fault, fault.one_off ? DcmiFaultChange::kOneOff : DcmiFaultChange::kRaised);
  }
  for (const Fault& fault : current_) {
    if (fault.one_off || is_in(now, fault)) continue;
    if (IsCodeAlone(fault) && HasCode(now, fault.code)) continue;
    count(fault, DcmiFaultChange::kRecovered);
  }
  codes_known_ = codes_known_ || codes_.has_value();
  codes_.reset();
  current_ = std::move(now);
}

}  // namespace profd
