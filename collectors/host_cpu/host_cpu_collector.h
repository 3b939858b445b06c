// CPU time of the host, and of the processes of a session.
#pragma once

#include "collectors/collector.h"

namespace profd {

extern const CollectorEntry kHostCpuCollector;

}  // namespace profd
