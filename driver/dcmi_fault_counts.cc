#include "driver/dcmi_fault_counts.h"

#include <algorithm>

namespace profd {
namespace {

constexpr uint8_t kAssertionRecovered = 0;
constexpr uint8_t kAssertionOneOff = 2;

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
  auto count = [this](const Fault& fault, DcmiFaultChange change) {
    const size_t severity = std::min<size_t>(fault.severity, kDcmiSeverities - 1);
    ++counts_[severity][static_cast<size_t>(change)];
  };
  auto is_in = [](const std::vector<Fault>& faults, const Fault& fault) {
    return std::ranges::find(faults, fault) != faults.end();
  };
  for (const Fault& fault : now) {
    if (!known_ || is_in(current_, fault)) continue;
    count(fault, fault.one_off ? DcmiFaultChange::kOneOff : DcmiFaultChange::kRaised);
  }
  for (const Fault& fault : current_) {
    if (!fault.one_off && !is_in(now, fault)) count(fault, DcmiFaultChange::kRecovered);
  }
  known_ = true;
  current_ = std::move(now);
}

}  // namespace profd
