// Inter-die and inter-chip traffic, accelerator PMU, SoC levels, low power (channel 52).
#pragma once

#include "collectors/collector.h"

namespace profd {

extern const CollectorEntry kSocProfileCollector;

}  // namespace profd
