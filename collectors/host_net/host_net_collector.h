// Counters, speed and carrier of the host's network devices.
#pragma once

#include "collectors/collector.h"

namespace profd {

extern const CollectorEntry kHostNetCollector;

}  // namespace profd
