#include "daemon/node/node_view.h"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>

#include "collectors/channel_options.h"
#include "collectors/metric_table.h"
#include "driver/dcmi_errors.h"
#include "profd/v1/profd.pb.h"

namespace profd {
namespace {

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
  return PermissionDenied(fmt::format("libdcmi permits {} queries not to uid {} here", denied, ::geteuid())).ToString();
}

void DescribeDevice(const Node& node, const DeviceInfo& device, const ChannelArbiter& arbiter, v1::Device* out) {
  v1::Device& wire = *out;
  auto id = static_cast<uint32_t>(device.id);
  wire.set_id(id);
  wire.set_physical_id(static_cast<uint32_t>(device.physical_id));
  wire.set_chip(device.chip_name);
  if (device.chip_id >= 0) wire.set_chip_id(static_cast<uint32_t>(device.chip_id));
  wire.set_uuid(node.UuidOf(device));
  if (device.counter_hz > 0) wire.set_counter_hz(device.counter_hz);
  if (const ClockPair* clock_pair = arbiter.ClockOf(device.id); clock_pair != nullptr) {
    v1::ClockPair& pair = *wire.mutable_clock();
    pair.set_host_ns(clock_pair->host_ns);
    pair.set_device_ns(clock_pair->device_ns);
    pair.set_device_count(clock_pair->device_count);
    pair.set_host_count(clock_pair->host_count);
    pair.set_uncertainty_ns(clock_pair->uncertainty_ns);
  }
  std::vector<ChannelArbiter::ChannelStatus> running = arbiter.Channels(device.id);
  for (uint32_t channel : device.channels) {
    v1::Channel& entry = *wire.add_channels();
    entry.set_id(channel);
    entry.set_state(v1::Channel::STATE_IDLE);
    const abi::ChannelFormat* format = abi::FindChannelFormat(channel);
    if (format != nullptr) entry.set_name(std::string(format->name));
    auto status = std::ranges::find(running, channel, &ChannelArbiter::ChannelStatus::channel);
    if (status != running.end()) {
      entry.set_state(status->state);
      entry.set_detail(status->detail);
      if (status->hz > 0) entry.set_hz(status->hz);
      entry.set_users(status->users);
    }
    ChannelCounters counters = node.pump_or_null()->Counters(id, channel);
    entry.set_bytes(counters.bytes);
    entry.set_records(counters.records);
    entry.set_garbage_bytes(counters.garbage_bytes);
  }
}

bool IsStuckInDcmi(const Node& node, int physical_id) {
  const std::vector<DcmiStuckCall> calls = node.dcmi_or_null()->StuckCalls(node.host().clock.SteadyNs());
  return std::ranges::find(calls, physical_id, &DcmiStuckCall::physical_id) != calls.end();
}

bool ReadsState(const std::vector<std::string>& off) { return std::ranges::count(off, "npu_state") == 0; }
constexpr std::string_view kStateOff = "metrics.disable has npu_state";

// Both driver libraries may have noticed; DCMI's text has what to do.
HealthFacts HealthFactsOf(const Node& node, const DeviceInfo& device, const ChannelArbiter& arbiter, bool reads_state) {
  HealthFacts facts{.device = device.id, .npu = std::to_string(device.physical_id)};
  auto add = [&facts](const std::string& problem) {
    if (problem.empty()) return;
    facts.problem += (facts.problem.empty() ? "" : "; ") + problem;
  };
  add(arbiter.ProblemOf(device.id));
  if (facts.problem.empty() && !device.usable.ok()) add(device.usable.message());
  if (node.pump_or_null()->IsDeviceStuck(static_cast<uint32_t>(device.id))) facts.hangs = true;
  if (DeviceControl* control_of = node.ControlOf(device.id); control_of != nullptr) {
    if (const Status calls = control_of->Health(); !calls.ok()) facts.stuck_call = calls.message();
  }
  const DcmiService* dcmi = node.dcmi_or_null();
  // A library that fails, or has only just answered, proves nothing about the NPU.
  if (dcmi != nullptr && dcmi->IsAwaited(device.id)) {
    facts.unreadable = node.DcmiProblemOf(device);
  } else {
    add(node.DcmiProblemOf(device));
  }
  if (dcmi != nullptr) {
    if (dcmi->HangsSilently(device.id) || IsStuckInDcmi(node, device.physical_id)) facts.hangs = true;
  }
  if (dcmi == nullptr) {
    facts.not_read = node.report().dcmi_error();
  } else if (dcmi->FindByLogicalId(device.id) == nullptr) {
    facts.not_read = "libdcmi does not list it";
  } else if (!reads_state) {
    facts.not_read = kStateOff;
  }
  return facts;
}

}  // namespace

std::vector<HealthFacts> DriverFacts(const Node& node, const ChannelArbiter& arbiter, const std::vector<std::string>& off) {
  std::vector<HealthFacts> all;
  for (const DeviceInfo& device : node.host().devices) {
    all.push_back(HealthFactsOf(node, device, arbiter, ReadsState(off)));
  }
  return all;
}

std::vector<HealthFacts> DcmiOnlyFacts(const Node& node, const std::vector<std::string>& off) {
  std::vector<HealthFacts> all;
  for (const DcmiDevice* device : node.DcmiOnlyDevices()) {
    HealthFacts& facts = all.emplace_back();
    facts.device = device->logical_id;
    facts.problem = node.dcmi_or_null()->ProblemOf(*device, node.host().clock.SteadyNs());
    facts.hangs = IsStuckInDcmi(node, device->physical_id);
    if (!ReadsState(off)) facts.not_read = kStateOff;
  }
  return all;
}

void DescribeDevices(const Node& node, const ChannelArbiter& arbiter, const NpuHealth& health, v1::Node* out) {
  for (const DeviceInfo& device : node.host().devices) {
    v1::Device& wire = *out->add_devices();
    DescribeDevice(node, device, arbiter, &wire);
    health.Describe(device.id, &wire);
  }
}

void DescribeCollectors(const Node& node, const CollectorStatsTable& stats, const std::vector<std::string>& off,
                        v1::Node* out) {
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
    wire.set_overview(spec.overview);
    bool disabled = std::ranges::find(off, spec.name) != off.end();
    if (!disabled && spec.always_on_hz > 0) wire.set_always_on_hz(spec.always_on_hz);
    Status why;
    if (entry.probe_device == nullptr) {
      why = entry.probe_host(node.host());
      wire.set_available(why.ok());
    } else {
      why = Unimplemented(node.report().hal_error().empty() ? "no devices on this node" : node.report().hal_error());
      for (const DeviceInfo& device : node.host().devices) {
        Status one = ProbeDevice(entry, node.host(), device);
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
      wire.set_last_error(DcmiDenials(node.dcmi_or_null()));
    }
    if (spec.source != CollectorSource::kChannel) {
      wire.set_last_duration_ns(static_cast<uint64_t>(one.last_duration_ns.load(std::memory_order_relaxed)));
    }
  }
}

void UpdateNodeMetrics(const Node& node, SelfMetrics* self) {
  auto npu = [&node](uint32_t device) {
    const DeviceInfo* const info = node.host().FindDevice(static_cast<int>(device));
    return info == nullptr ? std::to_string(device) : std::to_string(info->physical_id);
  };
  node.pump_or_null()->VisitCounters(
      [&](uint32_t device, uint32_t channel, const ChannelCounters& counters) {
        const abi::ChannelFormat* format = abi::FindChannelFormat(channel);
        std::string name = format != nullptr ? std::string(format->name) : std::to_string(channel);
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
  for (const auto& [code, count] : node.pump_or_null()->PollErrors()) {
    self->Set(MetricByName("profd_pump_poll_errors_total"), count, std::to_string(code));
  }
  PumpStats pump = node.pump_or_null()->stats();
  self->Set(MetricByName("profd_pump_restarts_total"), pump.threads_started > 0 ? pump.threads_started - 1 : 0);
  for (const DeviceInfo& device : node.host().devices) {
    DeviceControl* control_of = node.ControlOf(device.id);
    bool stuck = node.pump_or_null()->IsDeviceStuck(static_cast<uint32_t>(device.id)) ||
                 (control_of != nullptr && !control_of->Health().ok());
    self->Set(MetricByName("profd_device_stuck"), stuck ? 1 : 0, std::to_string(device.physical_id), "hal");
  }
  if (node.dcmi_or_null() == nullptr) return;
  for (const DcmiDevice& device : node.dcmi_or_null()->devices()) {
    const bool stuck = IsStuckInDcmi(node, device.physical_id);
    self->Set(MetricByName("profd_device_stuck"), stuck ? 1 : 0, std::to_string(device.physical_id), "dcmi");
  }
  for (const DeviceInfo& device : node.host().devices) {
    if (node.dcmi_or_null()->SilenceOf(device.id, device.physical_id).empty()) continue;
    const bool hangs = node.dcmi_or_null()->HangsSilently(device.id);
    self->Set(MetricByName("profd_device_stuck"), hangs ? 1 : 0, std::to_string(device.physical_id), "dcmi");
  }
}

}  // namespace profd
