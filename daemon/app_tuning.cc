// Devices that are kept for tuning: wiring of the leases to sessions, processes, RPC, the state folder and metrics.
#include <algorithm>

#include "base/log.h"
#include "collectors/metric_table.h"
#include "daemon/app_impl.h"
#include "daemon/session/session_plan.h"

namespace profd {

void App::Impl::BuildTuning() {
  TuningLeases::Deps deps{clock, [this](pid_t pid) { return node->OwnerOf(pid); },
                          [this](pid_t pid) { return node->StartTimeOf(pid); },
                          nullptr, nullptr, nullptr, BootId(*node)};
  deps.may_use = [this](const Peer& peer, uint32_t device) -> Status {
    const auto& all = node->host().devices;
    const auto found = std::find_if(all.begin(), all.end(), [device](const DeviceInfo& each) {
      return static_cast<uint32_t>(each.id) == device;
    });
    if (found == all.end()) return {StatusCode::kNotFound, NoSuchDevice(device, all)};
    return Node::MayUse(peer, *found);
  };
  deps.profiled_by = [this](const Peer& peer, std::span<const uint32_t> devices) {
    std::string session = sessions->ProfilingOn(peer, devices);
    return session.empty() ? jobs->table().CollectingOn(devices) : session;
  };
  deps.save = [this](std::string text, std::function<void()> done) {
    writer->Post([this, text = std::move(text), done = std::move(done)] {
      if (Status saved = state_store->SaveTuning(text); !saved.ok()) {
        log::Warning("tuning leases would not survive a crash of profd", {{"why", saved.ToString()}});
      }
      control->Post(done);
    });
  };
  tuning = std::make_unique<TuningLeases>(std::move(deps));
  const Result<std::string> saved = state_store->LoadTuning();
  if (saved.ok()) {
    tuning->Load(*saved);
  } else {
    log::Warning("saved tuning leases cannot be read", {{"why", saved.status().ToString()}});
  }
}

void App::Impl::AnswerTuning(RpcDeps* deps) {
  using Done = std::function<void(const Status&)>;
  deps->acquire_tuning = [this](const Peer& peer, const v1::AcquireTuningLeaseRequest& request, v1::TuningLease* out,
                                const Done& finish) { tuning->Acquire(peer, request, out, finish); };
  deps->release_tuning = [this](const Peer& peer, const v1::ReleaseTuningLeaseRequest& request,
                                v1::ReleaseTuningLeaseResponse*, const Done& finish) {
    finish(tuning->Release(peer, request.lease_id()));
  };
  deps->list_tuning = [this](const Peer& peer, const v1::ListTuningLeasesRequest&, v1::ListTuningLeasesResponse* out,
                             const Done& finish) {
    tuning->List(peer, out->mutable_leases());
    finish(Status::Ok());
  };
}

void App::Impl::UpdateTuningMetrics() {
  self->Set(MetricByName("profd_tuning_leases"), static_cast<double>(tuning->active()));
  self->Set(MetricByName("profd_tuning_leases_acquired_total"), static_cast<double>(tuning->acquired_total()));
  self->Set(MetricByName("profd_tuning_leases_refused_total"), static_cast<double>(tuning->refused_total()));
}

}  // namespace profd
