// Memory of the host, of its NUMA nodes, and of the processes of a session.
#pragma once

#include "collectors/collector.h"

namespace profd {

extern const CollectorEntry kHostMemCollector;

}  // namespace profd
