// What GetNode, the self metrics and the page are gathered from.
#include <fmt/format.h>

#include <string>
#include <utility>

#include "collectors/metric_table.h"
#include "daemon/app_impl.h"
#include "daemon/collect/sample_ages.h"
#include "daemon/node/node_view.h"
#include "daemon/node/rights.h"
#include "profd/v1/profd.pb.h"

namespace profd {
namespace {

std::string CompilerText() {
#if defined(__clang__)
  return fmt::format("clang {}.{}.{}", __clang_major__, __clang_minor__, __clang_patchlevel__);
#else
  return fmt::format("g++ {}", __VERSION__);
#endif
}

// Why there are none, where there are none.
std::string NoDevices(const v1::DriverInfo& report) {
  return report.hal_error().empty() ? "no devices" : report.hal_error();
}

}  // namespace

std::string BuildText() { return fmt::format("{} {}", CompilerText(), PROFD_ARCH); }

void App::Impl::DescribeNode(const Peer& peer, v1::Node* out) {
  DCHECK_ON(*control);
  const DaemonConfig& config = options.config;
  out->set_hostname(node->facts().hostname);
  out->set_version(PROFD_VERSION);
  out->set_build(BuildText());
  out->set_uptime_ns(static_cast<uint64_t>(clock.SteadyNs() - started_ns));
  *out->mutable_driver() = node->report();
  DescribeDevices(*node, *arbiter, *health, out);
  DescribeCollectors(*node, stats, config.metrics_disable, out);
  out->set_dump_root(config.dump_root);
  out->set_dump_free_bytes(writer->free_bytes());
  out->set_simulated(options.simulated);
  out->set_metrics_address(web->address());
  out->set_metrics_tls(web->tls());
  for (const RightLoss& right : Rights::OfThisProcess().Losses()) {
    out->add_missing_rights(fmt::format("{}: {}", right.capability, right.loss));
  }
  out->set_active_sessions(static_cast<uint32_t>(records->active()));
  out->set_max_sessions(static_cast<uint32_t>(config.max_sessions));
  out->mutable_caller()->set_pid(peer.pid);
  out->mutable_caller()->set_uid(peer.uid);
  out->mutable_caller()->set_admin(peer.admin);
  out->mutable_caller()->set_viewer(peer.viewer);
  out->mutable_caller()->set_certificate(peer.certificate);
  out->set_tls_address(rpc->tls_address());
  overhead->Describe(out->mutable_overhead());
  if (const int64_t permille = config.overhead_max_process_permille; permille > 0) {
    out->mutable_overhead()->set_max_process_cores(static_cast<double>(permille) / 1000);
  }
  out->set_attached_processes(static_cast<uint32_t>(jobs->table().attached()));
  out->set_attach_socket(jobs->attach_socket());
  if (recorder != nullptr) {
    recorder->Describe(out->mutable_recorder());
  } else {
    out->mutable_recorder()->set_limit_ms(static_cast<uint64_t>(config.recorder_seconds) * 1000);
    out->mutable_recorder()->set_limit_bytes(static_cast<uint64_t>(config.recorder_memory_mb) << 20);
  }
  health->Describe(NoDevices(node->report()), out);
  tuning->List(peer, out->mutable_tuning_leases());
  if (archive->on()) archive->Describe(out->mutable_archive());
}

void App::Impl::UpdateSelfMetrics() {
  self->SetCollectors(stats);
  self->SetProcess();
  UpdateNodeMetrics(*node, self.get());
  UpdateSampleAges(node->host(), stats, *router, self.get());
  self->Set(MetricByName("profd_recorder_enabled"), recorder != nullptr ? 1 : 0);
  if (recorder != nullptr) recorder->UpdateMetrics(self.get());
  if (advisor != nullptr) advisor->UpdateMetrics(self.get());
  sessions->UpdateMetrics(self.get());
  records->UpdateMetrics(self.get());
  writer->UpdateMetrics(self.get());
  self->Set(MetricByName("profd_released_channels"), releases->size());
  self->Set(MetricByName("profd_stream_subscribers"), hub.subscribers());
  self->Set(MetricByName("profd_stream_dropped_samples_total"), hub.dropped());
  self->Set(MetricByName("profd_series"), store.size());
  self->Set(MetricByName("profd_series_refused_total"), store.refused());
  rpc->UpdateMetrics(self.get());
  web->UpdateMetrics(self.get());
  push->UpdateMetrics(self.get());
  jobs->UpdateMetrics(self.get());
  sampling->UpdateMetrics(self.get());
  retention->UpdateMetrics(self.get());
  tuning->UpdateMetrics(self.get());
  overhead->UpdateMetrics(self.get());
  archive->UpdateMetrics(self.get());
  self->Set(MetricByName("profd_simulated"), options.simulated ? 1 : 0);
  self->Set(MetricByName("profd_build_info"), 1, PROFD_VERSION, PROFD_REVISION, CompilerText(), PROFD_ARCH);
  self->Commit();
}

void App::Impl::ShowPage() {
  if (!web->WantsView()) return;
  NodeView view{.version = PROFD_VERSION, .hostname = node->facts().hostname, .simulated = options.simulated,
                .driver_problem = NoDevices(node->report())};
  for (const DeviceInfo& device : node->host().devices) {
    const DeviceRecord* record = health->Of(device.id);
    const DeviceHealth state = record == nullptr ? DeviceHealth() : record->health;
    view.devices.push_back({device.id, std::to_string(device.physical_id), device.chip_name,
                            std::string(VerdictName(state.verdict)), state.reasons});
  }
  for (const AlwaysOn::Running& running : always_on->running()) {
    const CollectorStats& one = stats[running.collector];
    bool ok = one.last_ok.load(std::memory_order_relaxed);
    view.collectors.push_back({std::string(Collectors()[running.collector].spec->name),
                               one.readings.load(std::memory_order_relaxed) > 0,
                               ok ? std::string() : one.LastError()});
  }
  view.sessions = records->active();
  if (advisor != nullptr) {
    for (const LiveAdvice* advice : advisor->board().Raised()) {
      view.advice.push_back({std::string(advice->check), WhereOf(*advice), advice->what,
                             advice->advice.empty() ? std::string() : advice->advice.front()});
    }
  }
  view.flight_recorder = recorder != nullptr ? "on" : "off";
  web->Show(std::move(view));
}

}  // namespace profd
