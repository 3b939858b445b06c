// What libdcmi says about the NPUs: health, faults, utilization, clocks, power, memory, links,
// network, processes. Values nobody knows are absent, never -1.
#pragma once

#include "collectors/collector.h"

namespace profd {

extern const CollectorEntry kNpuStateCollector;

}  // namespace profd
