// PCIe bandwidth by transaction type and read latency (channel 3).
#pragma once

#include "collectors/collector.h"

namespace profd {

extern const CollectorEntry kPcieCollector;

}  // namespace profd
