// Memory bandwidth by QoS stream (channel 133).
#pragma once

#include "collectors/collector.h"

namespace profd {

extern const CollectorEntry kQosCollector;

}  // namespace profd
