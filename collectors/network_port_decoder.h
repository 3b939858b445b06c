// The text records that the NIC and RoCE channels share (dump-format 2.3).
#pragma once

#include <cstdint>
#include <memory>

#include "collectors/collector.h"

namespace profd {

std::unique_ptr<ChannelDecoder> MakeNetworkPortDecoder(const DeviceInfo& device, uint32_t channel,
                                                       SeriesRegistry& registry);

}  // namespace profd
