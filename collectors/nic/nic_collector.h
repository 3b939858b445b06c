// Network port counters and rates (channel 4).
#pragma once

#include "collectors/collector.h"

namespace profd {

extern const CollectorEntry kNicCollector;

}  // namespace profd
