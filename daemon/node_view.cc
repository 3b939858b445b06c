// The node as clients and Prometheus see it.
#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <cmath>

#include "collectors/channel_options.h"
#include "collectors/metric_table.h"
#include "daemon/app_impl.h"
#include "daemon/node/rights.h"
#include "daemon/session/option_calls.h"
#include "daemon/rpc/tls_server.h"
#include "driver/dcmi_errors.h"
#include "dump/loss_reason.h"
#include "profd/v1/profd.pb.h"

namespace profd {
namespace {

v1::Channel::State WireState(const std::string& state) {
  if (state == "running") return v1::Channel::STATE_RUNNING;
  if (state == "busy") return v1::Channel::STATE_BUSY;
  if (state == "released") return v1::Channel::STATE_RELEASED;
  if (state == "failed") return v1::Channel::STATE_FAILED;
  return v1::Channel::STATE_IDLE;
}

v1::CollectorInfo::Source WireSource(CollectorSource source) {
  switch (source) {
    case CollectorSource::kChannel:
      return v1::CollectorInfo::SOURCE_DRIVER_CHANNEL;
    case CollectorSource::kDcmi:
      return v1::CollectorInfo::SOURCE_DCMI;
    case CollectorSource::kHost:
      return v1::CollectorInfo::SOURCE_HOST;
  }
  return v1::CollectorInfo::SOURCE_UNSPECIFIED;
}

// What libdcmi does not let us ask, in words: such queries are not made again, so nothing else reports it.
std::string DcmiDenials(const DcmiService* dcmi_or_null) {
  size_t denied = 0;
  if (dcmi_or_null == nullptr) return {};
  dcmi_or_null->VisitRefused([&denied](const DcmiDevice&, DcmiCall, int code) {
    if (ClassifyDcmi(code) == DcmiErrorClass::kDenied) ++denied;
  });
  if (denied == 0) return {};
  return PermissionDenied(fmt::format("libdcmi permits {} queries not to uid {} here", denied,
                                      ::geteuid()))
      .ToString();
}

std::string CompilerText() {
#if defined(__clang__)
  return fmt::format("clang {}.{}.{}", __clang_major__, __clang_minor__, __clang_patchlevel__);
#else
  return fmt::format("g++ {}", __VERSION__);
#endif
}

}  // namespace

std::string BuildText() { return fmt::format("{} {}", CompilerText(), PROFD_ARCH); }

void App::Impl::DescribeDevice(const DeviceInfo& device, v1::Node* out) {
  v1::Device& wire = *out->add_devices();
  auto id = static_cast<uint32_t>(device.id);
  wire.set_id(id);
  wire.set_physical_id(static_cast<uint32_t>(device.physical_id));
  wire.set_chip(device.chip_name);
  wire.set_chip_id(static_cast<uint32_t>(device.chip_id));
  wire.set_uuid(node->UuidOf(device));
  if (device.counter_hz > 0) wire.set_counter_hz(device.counter_hz);
  DescribeHealth(device.id, &wire);
  if (const ClockPair* clock_pair = arbiter->ClockOf(device.id); clock_pair != nullptr) {
    v1::ClockPair& pair = *wire.mutable_clock();
    pair.set_host_ns(clock_pair->host_ns);
    pair.set_device_ns(clock_pair->device_ns);
    pair.set_device_count(clock_pair->device_count);
    pair.set_host_count(clock_pair->host_count);
    pair.set_uncertainty_ns(clock_pair->uncertainty_ns);
  }
  std::vector<ChannelArbiter::ChannelStatus> running = arbiter->Channels(device.id);
  for (uint32_t channel : device.channels) {
    v1::Channel& entry = *wire.add_channels();
    entry.set_id(channel);
    entry.set_state(v1::Channel::STATE_IDLE);
    const abi::ChannelFormat* format = abi::FindChannelFormat(channel);
    if (format != nullptr) entry.set_name(std::string(format->name));
    auto status = std::find_if(running.begin(), running.end(),
                               [channel](const auto& s) { return s.channel == channel; });
    if (status != running.end()) {
      entry.set_state(WireState(status->state));
      entry.set_detail(status->detail);
      if (status->hz > 0) entry.set_hz(status->hz);
      entry.set_users(status->users);
    }
    ChannelCounters counters = node->pump_or_null()->Counters(id, channel);
    entry.set_bytes(counters.bytes);
    entry.set_records(counters.records);
    entry.set_garbage_bytes(counters.garbage_bytes);
  }
}

void App::Impl::DescribeCollectors(v1::Node* out) {
  std::span<const CollectorEntry> collectors = Collectors();
  for (size_t i = 0; i < collectors.size(); ++i) {
    const CollectorEntry& entry = collectors[i];
    const CollectorSpec& spec = *entry.spec;
    v1::CollectorInfo& wire = *out->add_collectors();
    wire.set_name(std::string(spec.name));
    wire.set_summary(std::string(spec.summary));
    wire.set_source(WireSource(spec.source));
    wire.set_option(OptionKeys(spec));
    wire.set_default_hz(spec.default_hz);
    wire.set_max_hz(spec.max_hz);
    const auto& off = options.config.metrics_disable;
    bool disabled = std::find(off.begin(), off.end(), spec.name) != off.end();
    if (!disabled && spec.always_on_hz > 0) wire.set_always_on_hz(spec.always_on_hz);
    Status why;
    if (entry.probe_device == nullptr) {
      why = entry.probe_host(node->host());
      wire.set_available(why.ok());
    } else {
      why = Unimplemented(node->report().hal_error.empty() ? "no devices on this node"
                                                           : node->report().hal_error);
      for (const DeviceInfo& device : node->host().devices) {
        Status one = entry.probe_device(node->host(), device);
        if (one.ok()) {
          wire.add_devices(static_cast<uint32_t>(device.id));
        } else {
          why = one;
        }
      }
      wire.set_available(!wire.devices().empty());
    }
    if (!wire.available()) wire.set_reason(why.message());
    const CollectorStats& one = stats[i];
    wire.set_samples(one.records.load(std::memory_order_relaxed));
    wire.set_errors(one.errors.load(std::memory_order_relaxed));
    wire.set_late_ticks(one.missed_ticks.load(std::memory_order_relaxed));
    wire.set_left_out_ticks(one.left_out_ticks.load(std::memory_order_relaxed));
    wire.set_last_error(one.LastError());
    if (wire.last_error().empty() && spec.source == CollectorSource::kDcmi) {
      wire.set_last_error(DcmiDenials(node->dcmi_or_null()));
    }
    if (spec.source != CollectorSource::kChannel) {
      wire.set_last_duration_ns(static_cast<uint64_t>(one.last_duration_ns.load(std::memory_order_relaxed)));
    }
  }
}

void App::Impl::AnswerOptions(RpcDeps* deps) {
  using Finish = std::function<void(const Status&)>;
  deps->list_options = [this](const Peer&, const v1::ListOptionsRequest&,
                              v1::ListOptionsResponse* out, const Finish& finish) {
    ListOptions(node->host(), out);
    finish(Status::Ok());
  };
  deps->check_options = [this](const Peer& peer, const v1::CheckOptionsRequest& request,
                               v1::CheckOptionsResponse* out, const Finish& finish) {
    double max_hz = peer.admin ? 0 : static_cast<double>(options.config.max_user_hz);
    CheckOptions(node->host(), max_hz, request, out);
    finish(Status::Ok());
  };
}

void App::Impl::DescribeNode(const Peer& peer, v1::Node* out) {
  const DriverReport& report = node->report();
  out->set_hostname(node->facts().hostname);
  out->set_version(PROFD_VERSION);
  out->set_build(BuildText());
  out->set_uptime_ns(static_cast<uint64_t>(clock.SteadyNs() - started_ns));
  v1::DriverInfo& driver = *out->mutable_driver();
  driver.set_hal_path(report.hal_path);
  driver.set_dcmi_path(report.dcmi_path);
  driver.set_hal_error(report.hal_error);
  driver.set_dcmi_error(report.dcmi_error);
  if (report.hal_api_version != 0) driver.set_hal_api_version(static_cast<uint32_t>(report.hal_api_version));
  driver.set_dcmi_version(report.dcmi_version);
  driver.set_driver_version(report.driver_version);
  for (const std::string& symbol : report.missing_symbols) driver.add_missing_symbols(symbol);
  for (const DeviceInfo& device : node->host().devices) DescribeDevice(device, out);
  DescribeCollectors(out);
  out->set_dump_root(options.config.dump_root);
  out->set_dump_free_bytes(writer->free_bytes());
  out->set_simulated(options.simulated);
  out->set_metrics_address(metrics_address);
  out->set_metrics_tls(metrics_tls);
  for (const RightLoss& right : Rights::OfThisProcess().Losses()) {
    out->add_missing_rights(fmt::format("{}: {}", right.capability, right.loss));
  }
  out->set_active_sessions(static_cast<uint32_t>(sessions->active()));
  out->set_max_sessions(static_cast<uint32_t>(options.config.max_sessions));
  out->mutable_caller()->set_pid(peer.pid);
  out->mutable_caller()->set_uid(peer.uid);
  out->mutable_caller()->set_admin(peer.admin);
  out->mutable_caller()->set_viewer(peer.viewer);
  out->mutable_caller()->set_certificate(peer.certificate);
  out->set_tls_address(TlsAddress());
  DescribeOverhead(out);
  out->set_attached_processes(static_cast<uint32_t>(jobs->table().attached()));
  out->set_attach_socket(attach_socket);
  DescribeRecorder(out);
  DescribeNodeHealth(out);
  tuning->List(peer, out->mutable_tuning_leases());
  DescribeArchive(out);
}

void App::Impl::UpdateChannelMetrics() {
  auto npu = [this](uint32_t device) {
    for (const DeviceInfo& info : node->host().devices) {
      if (info.id == static_cast<int>(device)) return std::to_string(info.physical_id);
    }
    return std::to_string(device);
  };
  node->pump_or_null()->VisitCounters(
      [&](uint32_t device, uint32_t channel, const ChannelCounters& counters) {
        const abi::ChannelFormat* format = abi::FindChannelFormat(channel);
        std::string name =
            format != nullptr ? std::string(format->name) : std::to_string(channel);
        std::string id = npu(device);
        auto set = [&](MetricId metric, uint64_t value) {
          self->SetCount(metric, static_cast<double>(value), id, name);
        };
        set(MetricByName("profd_channel_bytes_total"), counters.bytes);
        set(MetricByName("profd_channel_garbage_bytes_total"), counters.garbage_bytes);
        set(MetricByName("profd_channel_read_errors_total"), counters.read_errors);
        set(MetricByName("profd_channel_dropped_bytes_total"), counters.dropped_bytes);
        set(MetricByName("profd_channel_discarded_bytes_total"), counters.discarded_bytes);
      });
  for (const auto& [code, count] : node->pump_or_null()->PollErrors()) {
    self->Set(MetricByName("profd_pump_poll_errors_total"), static_cast<double>(count),
              std::to_string(code));
  }
  PumpStats pump = node->pump_or_null()->stats();
  self->Set(MetricByName("profd_pump_restarts_total"),
            pump.threads_started > 0 ? static_cast<double>(pump.threads_started - 1) : 0);
  for (const DeviceInfo& device : node->host().devices) {
    DeviceControl* control_of = node->ControlOf(device.id);
    bool stuck = node->pump_or_null()->IsDeviceStuck(static_cast<uint32_t>(device.id)) ||
                 (control_of != nullptr && !control_of->Health().ok());
    self->Set(MetricByName("profd_device_stuck"), stuck ? 1 : 0,
              std::to_string(device.physical_id), "hal");
  }
  if (node->dcmi_or_null() == nullptr) return;
  for (const DcmiDevice& device : node->dcmi_or_null()->devices()) {
    bool stuck = false;
    for (const DcmiStuckCall& call : node->dcmi_or_null()->StuckCalls(clock.SteadyNs())) {
      stuck = stuck || call.physical_id == device.physical_id;
    }
    self->Set(MetricByName("profd_device_stuck"), stuck ? 1 : 0,
              std::to_string(device.physical_id), "dcmi");
  }
  for (const DeviceInfo& device : node->host().devices) {
    if (node->dcmi_or_null()->SilenceOf(device.id, device.physical_id).empty()) continue;
    self->Set(MetricByName("profd_device_stuck"), 1, std::to_string(device.physical_id), "dcmi");
  }
}

std::string App::Impl::TlsAddress() const {
  return rpc == nullptr || rpc->tls() == nullptr ? "" : rpc->tls()->stats().address;
}

void App::Impl::UpdateTlsMetrics() {
  if (rpc->tls() == nullptr) return;
  TlsStats tls = rpc->tls()->stats();
  auto set = [this](MetricId metric, auto value, std::string_view label = {}) {
    self->Set(metric, static_cast<double>(value), label);
  };
  set(MetricByName("profd_tls_connections"), tls.connections);
  set(MetricByName("profd_tls_reloads_total"), tls.reloads, "ok");
  set(MetricByName("profd_tls_reloads_total"), tls.failed_reloads, "failed");
  set(MetricByName("profd_tls_certificate_expiry_timestamp_seconds"), tls.expires_s);
  set(MetricByName("profd_rpc_rejected_total"), tls.rejected, "tls_connection_limit");
  set(MetricByName("profd_rpc_rejected_total"), rpc->role_denied(), "role");
}

void App::Impl::UpdateCallMetrics() {
  for (const RpcServer::CallUsage& kind : rpc->usage()) {
    self->Set(MetricByName("profd_rpc_held_calls"), static_cast<double>(kind.calls), kind.label);
    self->Set(MetricByName("profd_rpc_held_bytes"), static_cast<double>(kind.bytes), kind.label);
    constexpr MetricId kRefused = MetricByName("profd_rpc_refused_total");
    const std::pair<uint64_t, std::string_view> refused[] = {{kind.refused_user, "user"},
                                                             {kind.refused_node, "node"}};
    for (const auto& [count, limit] : refused) {
      if (count > 0) self->Set(kRefused, static_cast<double>(count), kind.label, limit);
    }
  }
}

void App::Impl::UpdateWriterMetrics() {
  const auto set = [this](MetricId metric, auto value, std::string_view label = {}) {
    self->Set(metric, static_cast<double>(value), label);
  };
  set(MetricByName("profd_dump_bytes_total"), writer->written_bytes());
  set(MetricByName("profd_dump_dropped_bytes_total"), writer->dropped_queue_full(), ToString(LossReason::kQueueFull));
  set(MetricByName("profd_dump_dropped_bytes_total"), writer->dropped_write_error(), ToString(LossReason::kWriteError));
  set(MetricByName("profd_dump_missing_records_total"), writer->missing_driver(), ToString(LossReason::kDriver));
  set(MetricByName("profd_dump_missing_records_total"), writer->missing_late(), ToString(LossReason::kLate));
  set(MetricByName("profd_dump_missing_records_total"), writer->missing_left_out(), ToString(LossReason::kOverBudget));
  for (const auto& [collector, records] : writer->aged_records()) set(MetricByName("profd_dump_aged_records_total"), records, collector);
  set(MetricByName("profd_dump_queue_bytes"), writer->queued_bytes());
  set(MetricByName("profd_dump_free_bytes"), writer->free_bytes());
  if (const uint64_t size = writer->size_bytes(); size > 0) set(MetricByName("profd_dump_volume_bytes"), size);
}

void App::Impl::UpdateSelfMetrics() {
  auto set = [this](MetricId metric, auto value) {
    self->Set(metric, static_cast<double>(value));
  };
  self->SetCollectors(stats);
  self->SetProcess();
  UpdateChannelMetrics();
  UpdateSampleAges();
  UpdateRecorderMetrics();
  UpdateAdviceMetrics();
  for (const auto& [state, count] : sessions->CountByState()) {
    self->Set(MetricByName("profd_sessions"), static_cast<double>(count), state);
  }
  for (const auto& [reason, count] : sessions->refused()) {
    self->Set(MetricByName("profd_sessions_refused_total"), static_cast<double>(count), reason);
  }
  set(MetricByName("profd_sessions_started_total"), sessions->started_total());
  UpdateWriterMetrics();
  set(MetricByName("profd_released_channels"), releases->size());
  set(MetricByName("profd_stream_subscribers"), hub.subscribers());
  set(MetricByName("profd_stream_dropped_samples_total"), hub.dropped());
  set(MetricByName("profd_series"), store.size());
  set(MetricByName("profd_series_refused_total"), store.refused());
  if (acceptor != nullptr) {
    set(MetricByName("profd_rpc_connections"), acceptor->connections());
    self->Set(MetricByName("profd_rpc_rejected_total"),
              static_cast<double>(acceptor->rejected()), "connection_limit");
  }
  self->Set(MetricByName("profd_rpc_rejected_total"), static_cast<double>(rpc->unidentified()),
            "unidentified");
  UpdateCallMetrics();
  UpdateTlsMetrics();
  UpdateWebMetrics();
  UpdatePushMetrics();
  UpdateJobMetrics();
  UpdateDumpMetrics();
  UpdateTuningMetrics();
  UpdateOverheadMetrics();
  UpdateArchiveMetrics();
  set(MetricByName("profd_simulated"), options.simulated ? 1 : 0);
  self->Set(MetricByName("profd_build_info"), 1, PROFD_VERSION, CompilerText(), PROFD_ARCH);
  self->Commit();
}

}  // namespace profd
