// metrics.npu_extra: which readings of libdcmi that are off by default are wanted.
#pragma once

#include <string>
#include <vector>

#include "collectors/collector.h"

namespace profd {

// Items are names, bandwidths with the milliseconds a measurement may take: "serdes",
// "hccs_bandwidth=100". What makes no sense is left out and appended to `*problems_or_null`.
NpuExtras ParseNpuExtras(const std::vector<std::string>& items,
                         std::vector<std::string>* problems_or_null);

}  // namespace profd
