// From what prof_drv_start was given to a stream of records: validates user_data per channel
// (driver-abi 3.2-3.4).
#pragma once

#include <memory>

#include "driver/abi/hal_abi.h"
#include "sim/record_stream.h"

namespace profd::sim {

// nullptr when the parameters are wrong for this channel. Channels the simulator has no data for
// yield a stream that never delivers.
std::unique_ptr<RecordStream> MakeStream(const Node& node, unsigned device, unsigned channel,
                                         const abi::ProfStartPara& para);

}  // namespace profd::sim
