// THE list of collectors, sorted by name: each is an entry in a file of its own. Nothing else in C++ names them all.
#pragma once

#include "collectors/collector.h"

#define PROFD_COLLECTORS(X) \
  X(kAicoreFreqCollector)   \
  X(kDdrCollector)          \
  X(kDvppCollector)         \
  X(kHbmCollector)          \
  X(kHccsCollector)         \
  X(kHostCpuCollector)      \
  X(kHostDiskCollector)     \
  X(kHostMemCollector)      \
  X(kHostNetCollector)      \
  X(kHostPressureCollector) \
  X(kInstrCollector)        \
  X(kLlcCollector)          \
  X(kNicCollector)          \
  X(kNpuMemCollector)       \
  X(kNpuOpticsCollector)    \
  X(kNpuStateCollector)     \
  X(kPcieCollector)         \
  X(kQosCollector)          \
  X(kRdmaCollector)         \
  X(kRoceCollector)         \
  X(kSocProfileCollector)

namespace profd {

#define PROFD_DECLARE(entry) extern const CollectorEntry entry;
PROFD_COLLECTORS(PROFD_DECLARE)
#undef PROFD_DECLARE

}  // namespace profd
