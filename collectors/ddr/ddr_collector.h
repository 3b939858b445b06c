// DDR traffic by controller and direction (channel 7).
#pragma once

#include "collectors/collector.h"

namespace profd {

extern const CollectorEntry kDdrCollector;

}  // namespace profd
