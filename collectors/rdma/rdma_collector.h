// Counters and states of the host's own RDMA ports (/sys/class/infiniband), InfiniBand and RoCE.
#pragma once

#include "collectors/collector.h"

namespace profd {

extern const CollectorEntry kRdmaCollector;

}  // namespace profd
