// RoCE port counters and rates (channel 129).
#include "collectors/channel_plan.h"
#include "collectors/collector_list.h"
#include "collectors/network_port_decoder.h"
#include "driver/abi/hal_abi.h"

namespace profd {
namespace {

constexpr CollectorSpec kRoceSpec = {
    .name = "roce",
    .source = CollectorSource::kChannel,
    .summary = "RoCE port rates, counters, errors and drops of the NPU",
    .options = {{{.key = "sys_io_sampling_freq"}}},
    .default_hz = 100,
    .max_hz = 100,
    .overview = true,
};

}  // namespace

constinit const CollectorEntry kRoceCollector = {
    .spec = &kRoceSpec,
    .probe_device = ProbeChannel<abi::kChannelRoce>,
    .plan = PlanPeriodic<abi::kChannelRoce>,
    .make_decoder = MakeNetworkPortDecoder,
};

}  // namespace profd
