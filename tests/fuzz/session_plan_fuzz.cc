// Input: a StartSessionRequest as it comes over the wire.
#include <algorithm>

#include "daemon/session/session_plan.h"
#include "driver/abi/channels.h"
#include "profd/v1/profd.pb.h"
#include "tests/fuzz/fuzz_input.h"

namespace profd {
namespace {

std::vector<DeviceInfo> SomeDevices() {
  std::vector<DeviceInfo> devices;
  for (int id : {0, 1, 2, 5}) {
    DeviceInfo device;
    device.id = id;
    device.physical_id = id;
    device.chip_id = 5;
    for (const abi::ChannelFormat& format : abi::kChannelFormats) {
      device.channels.push_back(format.id);
    }
    devices.push_back(device);
  }
  return devices;
}

void CheckPlan(const SessionPlan& plan, const PlanContext& context) {
  FUZZ_EXPECT(plan.job_id.empty() || IsValidJobId(plan.job_id));
  FUZZ_EXPECT(std::is_sorted(plan.devices.begin(), plan.devices.end()));
  FUZZ_EXPECT(std::adjacent_find(plan.devices.begin(), plan.devices.end()) == plan.devices.end());
  FUZZ_EXPECT(plan.devices.size() <= context.devices.size());
  FUZZ_EXPECT(plan.duration_ms >= 0);
  FUZZ_EXPECT(plan.duration_ms <= context.config.max_duration_s * 1000);
  for (const PlannedCollector& planned : plan.collectors) {
    FUZZ_EXPECT(planned.index < context.collectors.size());
    const CollectorEntry& entry = context.collectors[planned.index];
    FUZZ_EXPECT(planned.hz == entry.spec->default_hz || planned.hz >= 0.001);
    FUZZ_EXPECT(planned.hz <= std::max(1000.0, entry.spec->max_hz));
    if (entry.plan == nullptr) continue;
    for (const ChannelRequest& request : entry.plan(context.devices[0], planned.channel)) {
      FUZZ_EXPECT(request.effective_hz >= 0 && request.effective_hz <= 1000);
    }
  }
}

void Run(fuzz::Input input) {
  static const DaemonConfig config;
  static const std::vector<DeviceInfo> devices = SomeDevices();
  Peer peer;
  peer.uid = 1000;
  v1::StartSessionRequest request;
  if (!request.ParseFromArray(input.rest().data(), static_cast<int>(input.rest().size()))) return;
  const PlanContext context{config,
                            devices,
                            Collectors(),
                            peer,
                            [](pid_t pid) -> Result<uint32_t> {
                              if (pid <= 0 || pid % 3 == 0) return NotFound("gone");
                              return pid % 3 == 1 ? 1000U : 2000U;
                            },
                            [](const DeviceInfo& device) {
                              return device.id == 5 ? PermissionDenied("closed") : Status::Ok();
                            }};
  Result<SessionPlan> plan = PlanSession(request, context);
  if (plan.ok()) {
    CheckPlan(*plan, context);
  } else {
    FUZZ_EXPECT(plan.status().code() == StatusCode::kInvalidArgument ||
                plan.status().code() == StatusCode::kPermissionDenied);
    // However long the order: it must fit into a gRPC trailer.
    FUZZ_EXPECT(!plan.status().message().empty() && plan.status().message().size() <= 6000);
  }
}

}  // namespace
}  // namespace profd

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  profd::Run({data, size});
  return 0;
}
