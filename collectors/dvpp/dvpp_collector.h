// Utilisation of the image and video engines (channels 6 and 135-141).
#pragma once

#include "collectors/collector.h"

namespace profd {

extern const CollectorEntry kDvppCollector;

}  // namespace profd
