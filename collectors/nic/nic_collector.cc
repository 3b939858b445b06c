// Network port counters and rates (channel 4).
#include "collectors/channel_plan.h"
#include "collectors/collector_list.h"
#include "collectors/network_port_decoder.h"
#include "driver/abi/hal_abi.h"

namespace profd {
namespace {

constexpr CollectorSpec kNicSpec = {
    .name = "nic",
    .source = CollectorSource::kChannel,
    .summary = "network port rates, counters, errors and drops of the NPU",
    .options = {{{.key = "sys_io_sampling_freq"}}},
    .default_hz = 100,
    .max_hz = 100,
    .overview = true,
};

}  // namespace

constinit const CollectorEntry kNicCollector = {
    .spec = &kNicSpec,
    .probe_device = ProbeChannel<abi::kChannelNic>,
    .plan = PlanPeriodic<abi::kChannelNic>,
    .make_decoder = MakeNetworkPortDecoder,
};

}  // namespace profd
