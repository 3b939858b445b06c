#include "sim/fault_table.h"

#include <algorithm>

namespace profd::sim {

const Fault* FaultTable::Find(FaultKind kind, int64_t t_ns, int device, unsigned channel) const {
  for (const Fault& fault : faults_) {
    if (fault.kind != kind || !fault.Covers(t_ns)) continue;
    if (device != kAllDevices && !fault.Concerns(device)) continue;
    if (fault.channel != kAllChannels && channel != kAllChannels && fault.channel != channel) {
      continue;
    }
    return &fault;
  }
  return nullptr;
}

const Fault* FaultTable::Drop(DropMode mode, int64_t t_ns, int device) const {
  for (const Fault& fault : faults_) {
    if (fault.kind == FaultKind::kCardDrop && fault.drop == mode && fault.Covers(t_ns) &&
        fault.Concerns(device)) {
      return &fault;
    }
  }
  return nullptr;
}

int64_t FaultTable::NextEdge(int64_t t_ns) const {
  int64_t next = kForever;
  for (const Fault& fault : faults_) {
    if (fault.begin_ns > t_ns) next = std::min(next, fault.begin_ns);
    if (fault.end_ns > t_ns) next = std::min(next, fault.end_ns);
  }
  return next;
}

}  // namespace profd::sim
