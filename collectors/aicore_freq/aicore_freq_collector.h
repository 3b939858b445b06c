// AI Core frequency and, where the chip reports them, voltages (channel 132).
#pragma once

#include "collectors/collector.h"

namespace profd {

extern const CollectorEntry kAicoreFreqCollector;

}  // namespace profd
