// Input: a SessionSpec as received over the wire.
#include <algorithm>

#include "collectors/channel_options.h"
#include "daemon/jobs/process_facts.h"
#include "daemon/session/session_plan.h"
#include "daemon/session/session_schedule.h"
#include "daemon/session/session_targets.h"
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

Status Probe(const CollectorEntry& entry, const DeviceInfo* device) {
  ChannelOptions everything;
  SetEverything(*entry.spec, 1, &everything);
  if (device == nullptr || !entry.plan(*device, everything).empty()) return {};
  return Unimplemented("no channel");
}

void CheckPlan(const SessionPlan& plan, const PlanContext& context) {
  FUZZ_EXPECT(std::is_sorted(plan.devices.begin(), plan.devices.end()));
  FUZZ_EXPECT(std::adjacent_find(plan.devices.begin(), plan.devices.end()) == plan.devices.end());
  FUZZ_EXPECT(plan.devices.size() <= context.devices.size());
  FUZZ_EXPECT(plan.max_bytes > 0);
  FUZZ_EXPECT(plan.collectors.empty() == plan.application_only);
  FUZZ_EXPECT(plan.options.size() >= options::Table().size());
  for (size_t i = 0; i < options::Table().size(); ++i) {
    FUZZ_EXPECT(plan.options[i].key == options::Table()[i].key);
  }
  for (const std::string& key : plan.awaited_options) {
    FUZZ_EXPECT(plan.application_options.contains(key));
  }
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

struct Processes final : NodeProcesses {
  Result<uint32_t> OwnerOf(pid_t pid) const override {
    if (pid <= 0 || pid % 3 == 0) return NotFound("gone");
    return pid % 3 == 1 ? 1000U : 2000U;
  }
  std::optional<uint64_t> StartTimeOf(pid_t pid) const override { return pid % 2 == 0 ? std::nullopt : std::optional<uint64_t>(7); }
};

struct Devices final : NodeDevices {
  Status MayUse(const Peer&, const DeviceInfo& device) const override {
    return device.id == 5 ? PermissionDenied("closed") : Status::Ok();
  }
  DeviceFacts FactsOf(int) const override { return {}; }
  DeviceControl* ControlOf(int) const override { return nullptr; }
};

// What the request has about time and about processes.
void CheckSpec(const v1::SessionSpec& request, const PlanContext& context) {
  constexpr int64_t kWall = 1'767'225'600'000'000'000;
  v1::SessionSpec spec = request;
  Result<ProcessId> starter =
      AdmitTerms({context.config, context.peer, kWall, context.processes}, &spec);
  if (starter.ok()) {
    FUZZ_EXPECT(PriorityOf(spec) <= kDefaultPriority);
    FUZZ_EXPECT(!spec.preempt());
    FUZZ_EXPECT(!spec.schedule().has_start_in_ms());
    FUZZ_EXPECT(spec.schedule().start_at_ns() <= kWall + context.config.max_start_delay_s * kNsPerSecond);
    FUZZ_EXPECT(spec.metadata_size() <= 64);
  } else {
    FUZZ_EXPECT(starter.status().message().size() <= 6000);
  }
  std::vector<TrainingProcess> known(3);
  known[0].pid = 1;
  known[0].uid = context.peer.uid;
  known[0].job_id = request.target().job_id();
  known[0].devices = {1};
  known[1].pid = 2;
  known[1].uid = context.peer.uid + 1;
  known[1].job_id = request.target().job_id();
  known[2].pid = 4;
  known[2].uid = context.peer.uid;
  Result<SessionTargets> targets = ResolveTargets(request.target(), context.peer, known);
  if (!targets.ok()) {
    FUZZ_EXPECT(targets.status().message().size() <= 6000);
    return;
  }
  for (const TrainingProcess& process : targets->processes) {
    FUZZ_EXPECT(process.uid == context.peer.uid);
  }
  FUZZ_EXPECT(!targets->bound || !targets->processes.empty());
}

}  // namespace

void fuzz::Run(Input input) {
  static const DaemonConfig config;
  static const std::vector<DeviceInfo> devices = SomeDevices();
  static const Processes processes;
  static const Devices node_devices;
  Peer peer;
  peer.uid = 1000;
  v1::SessionSpec request;
  if (!request.ParseFromArray(input.rest().data(), static_cast<int>(input.rest().size()))) return;
  const PlanContext context{config, devices, Collectors(), peer, processes, node_devices, Probe,
                            uint64_t{1} << 34, kNoDevices,
                            request.target().rank() % 3 == 0, request.target().rank() % 2 != 0};
  CheckSpec(request, context);
  Result<SessionPlan> plan = PlanSession(request, context);
  if (plan.ok()) {
    const v1::SessionSpec::Schedule& schedule = request.schedule();
    FUZZ_EXPECT(request.target().job_id().empty() || IsJobId(request.target().job_id()));
    FUZZ_EXPECT(schedule.has_duration_ms() == (schedule.duration_ms() > 0));
    FUZZ_EXPECT(schedule.duration_ms() <= static_cast<uint64_t>(config.max_duration_s) * 1000);
    CheckPlan(*plan, context);
  } else {
    FUZZ_EXPECT(plan.status().code() == StatusCode::kInvalidArgument ||
                plan.status().code() == StatusCode::kPermissionDenied ||
                plan.status().code() == StatusCode::kUnimplemented ||
                plan.status().code() == StatusCode::kFailedPrecondition);
    // However long the request: it must fit into a gRPC trailer.
    FUZZ_EXPECT(!plan.status().message().empty() && plan.status().message().size() <= 6000);
  }
}

}  // namespace profd
