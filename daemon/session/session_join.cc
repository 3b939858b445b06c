// Devices of the job's processes that come while the session runs: the request is planned again for them
// alone, and they join the dump as if their part of it began there.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <utility>

#include "daemon/session/session.h"

namespace profd {

void Session::JoinDevices() {
  if (state_ != v1::Session::STATE_RUNNING || stop_requested_ || joining_ > 0) return;
  const SessionJob* const of_processes = job();
  if (of_processes == nullptr || !of_processes->targets().bound || plan_for_ == nullptr) return;
  SessionTargets targets = of_processes->targets();
  targets.processes = of_processes->Processes();
  targets.devices.clear();
  for (const TrainingProcess& process : targets.processes) {
    for (int device : process.devices) {
      const bool has = std::ranges::find(plan_.devices, device) != plan_.devices.end();
      if (!has && joined_.insert(device).second) targets.devices.push_back(device);
    }
  }
  if (targets.devices.empty()) return;
  Result<SessionPlan> plan = plan_for_(targets);
  if (!plan.ok()) {
    warnings_.push_back(fmt::format("devices {} of processes that attached later are not profiled: {}",
                                    fmt::join(targets.devices, ", "), plan.status().message()));
    on_change_(*this);
    return;
  }
  // A session that had no device before has no collector of one.
  for (const PlannedCollector& planned : plan->collectors) {
    const bool has = std::ranges::any_of(plan_.collectors, [&planned](const PlannedCollector& one) { return one.index == planned.index; });
    if (!has) plan_.collectors.push_back(planned);
  }
  joining_ = plan->devices.size();
  for (int device : plan->devices) {
    deps_.devices.ControlOf(device)->CorrelateClock(
        [self = shared_from_this(), device, plan = *plan](const Result<ClockPair>& clocks) {
          self->deps_.control.Post([self, device, plan, clocks] {
            self->Join(device, plan, clocks);
          });
        });
  }
}

void Session::Join(int device, const SessionPlan& plan, const Result<ClockPair>& clocks) {
  if (state_ != v1::Session::STATE_RUNNING || stop_requested_) return OnJoined();
  clocks_->Add(device, clocks);
  plan_.devices.insert(std::ranges::upper_bound(plan_.devices, device), device);
  const DeviceInfo& info = *deps_.host.FindDevice(device);
  if (output_.dump() != nullptr) {
    ManifestDevice described = Described(info);
    described.joined_raw_ns =
        clocks.ok() ? clocks->host_ns : deps_.host.clock.MonotonicRawNs();
    const std::optional<DumpClocks> for_dump = clocks.ok() ? std::optional(ForDump(*clocks)) : std::nullopt;
    output_.dump()->AddDevice({deps_.devices.FactsOf(device), for_dump}, std::move(described), SampleFacts());
  }
  if (clocks.ok()) processes_->AddDevice(MarksOf(info, *clocks));
  collectors_.Join(plan, device, [self = shared_from_this()] { self->OnJoined(); });
}

void Session::OnJoined() {
  if (--joining_ > 0 || state_ != v1::Session::STATE_RUNNING) return;
  NoteOutcomes();
  on_change_(*this);
  JoinDevices();
}

}  // namespace profd
