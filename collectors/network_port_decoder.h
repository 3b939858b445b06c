// The text records that the NIC and RoCE channels share (dump-format 2.3).
#pragma once

#include <memory>
#include <string_view>

#include "collectors/collector.h"

namespace profd {

// `layer` is the label of everything it feeds ("nic", "roce"); a constant of the collector.
std::unique_ptr<ChannelDecoder> MakeNetworkPortDecoder(std::string_view layer, int device,
                                                       SeriesRegistry& registry);

}  // namespace profd
