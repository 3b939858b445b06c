// RoCE port counters and rates (channel 129).
#pragma once

#include "collectors/collector.h"

namespace profd {

extern const CollectorEntry kRoceCollector;

}  // namespace profd
