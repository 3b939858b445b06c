// Last level cache hit ratio and throughput (channel 8).
#pragma once

#include "collectors/collector.h"

namespace profd {

extern const CollectorEntry kLlcCollector;

}  // namespace profd
