// Pressure stall information of the kernel: how long tasks waited for CPU, memory and I/O.
#pragma once

#include "collectors/collector.h"

namespace profd {

extern const CollectorEntry kHostPressureCollector;

}  // namespace profd
