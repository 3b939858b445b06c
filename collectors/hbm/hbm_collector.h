// HBM traffic by stack and direction (channel 1).
#pragma once

#include "collectors/collector.h"

namespace profd {

extern const CollectorEntry kHbmCollector;

}  // namespace profd
