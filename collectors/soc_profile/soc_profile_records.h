// Records of channel 52: 64 bytes, one layout per function type (dump-format 2.9, driver-abi 3.6).
#pragma once

#include <cstdint>
#include <memory>

#include "collectors/collector.h"

namespace profd {

// CollectorEntry::make_decoder. Chips 15 and 16 lay out SIO and chip transfer differently.
std::unique_ptr<ChannelDecoder> MakeSocProfileDecoder(const DeviceInfo& device, uint32_t channel,
                                                      SeriesRegistry& registry);

}  // namespace profd
