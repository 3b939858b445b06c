// Link, speed and optics of the NPUs' network ports, which only the vendor's hccn_tool tells. The
// tool runs on a thread of the reader's own once a minute; a poll takes over what has come in
// since.
#pragma once

#include "collectors/collector.h"

namespace profd {

extern const CollectorEntry kNpuOpticsCollector;

}  // namespace profd
