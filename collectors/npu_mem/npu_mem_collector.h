// Device memory in use: application, device, software modules (channels 130, 131, 142).
#pragma once

#include "collectors/collector.h"

namespace profd {

extern const CollectorEntry kNpuMemCollector;

}  // namespace profd
