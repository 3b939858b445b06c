// HCCS bytes and bandwidth of the device (channel 9).
#pragma once

#include "collectors/collector.h"

namespace profd {

extern const CollectorEntry kHccsCollector;

}  // namespace profd
