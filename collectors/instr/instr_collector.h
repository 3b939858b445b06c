// Instruction profiling of the AI Cores (910B, one channel for each core of a core group): kept as the
// driver delivers it. What its fields mean is decoded by the vendor's analyser; there are no live metrics.
#pragma once

#include "collectors/collector.h"

namespace profd {

extern const CollectorEntry kInstrCollector;

}  // namespace profd
