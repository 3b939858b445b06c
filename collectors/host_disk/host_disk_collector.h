// Bytes, requests and busy time of the host's whole disks.
#pragma once

#include "collectors/collector.h"

namespace profd {

extern const CollectorEntry kHostDiskCollector;

}  // namespace profd
