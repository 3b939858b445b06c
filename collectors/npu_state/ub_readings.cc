#include "collectors/npu_state/ub_readings.h"

namespace profd {
namespace {

constexpr MetricId kPackets = MetricByName("atlas_npu_ub_packets_total");
constexpr MetricId kForwarded = MetricByName("atlas_npu_ub_forwarded_packets_total");
constexpr MetricId kLoopback = MetricByName("atlas_npu_ub_loopback_packets_total");
constexpr MetricId kErrors = MetricByName("atlas_npu_ub_errors_total");
constexpr MetricId kFlits = MetricByName("atlas_npu_ub_flits_total");
constexpr MetricId kRetries = MetricByName("atlas_npu_ub_retries_total");
constexpr MetricId kCrc = MetricByName("atlas_npu_ub_crc_errors_total");
constexpr MetricId kPause = MetricByName("atlas_npu_ub_ethernet_pause_frames_total");
constexpr MetricId kPfc = MetricByName("atlas_npu_ub_ethernet_pfc_frames_total");
constexpr MetricId kBadPackets = MetricByName("atlas_npu_ub_ethernet_bad_packets_total");
constexpr MetricId kBadBytes = MetricByName("atlas_npu_ub_ethernet_bad_bytes_total");

struct Counter {
  MetricId metric;
  std::array<std::string_view, 2> label = {};  // after udie and port, as many as the metric has
};

// What the counters of a port are, in the driver's order (dcmi-and-metrics 1.4: 21 of what was
// received, 16 of what was sent, three of both, and eight that only ports in Ethernet mode have).
constexpr size_t kFirstEthernet = 40;
constexpr auto kCounters = std::to_array<Counter>({
    {kPackets, {"rx", "ub_ipv4"}},
    {kPackets, {"rx", "ub_ipv6"}},
    {kPackets, {"rx", "unic_ipv4"}},
    {kPackets, {"rx", "unic_ipv6"}},
    {kPackets, {"rx", "ub_compact"}},
    {kPackets, {"rx", "ub_umoc_ctph"}},
    {kPackets, {"rx", "ub_umoc_ntph"}},
    {kPackets, {"rx", "ub_mem"}},
    {kPackets, {"rx", "unknown"}},
    {kErrors, {"rx", "drop"}},
    {kErrors, {"rx", "error"}},
    {kForwarded, {"host"}},
    {kForwarded, {"imp"}},
    {kForwarded, {"mar"}},
    {kForwarded, {"link"}},
    {kForwarded, {"noc"}},
    {kErrors, {"rx", "route"}},
    {kErrors, {"rx", "out"}},
    {kErrors, {"rx", "length"}},
    {kFlits, {"rx", "busy"}},
    {kFlits, {"rx", "ack"}},
    {kPackets, {"tx", "ub_ipv4"}},
    {kPackets, {"tx", "ub_ipv6"}},
    {kPackets, {"tx", "unic_ipv4"}},
    {kPackets, {"tx", "unic_ipv6"}},
    {kPackets, {"tx", "ub_compact"}},
    {kPackets, {"tx", "ub_umoc_ctph"}},
    {kPackets, {"tx", "ub_umoc_ntph"}},
    {kPackets, {"tx", "ub_mem"}},
    {kPackets, {"tx", "unknown"}},
    {kErrors, {"tx", "drop"}},
    {kErrors, {"tx", "error"}},
    {kLoopback},
    {kErrors, {"tx", "out"}},
    {kErrors, {"tx", "length"}},
    {kFlits, {"tx", "busy"}},
    {kFlits, {"tx", "ack"}},
    {kRetries, {"request"}},
    {kRetries, {"ack"}},
    {kCrc},
    {kPause, {"rx"}},
    {kPause, {"tx"}},
    {kPfc, {"rx"}},
    {kPfc, {"tx"}},
    {kBadPackets, {"rx"}},
    {kBadPackets, {"tx"}},
    {kBadBytes, {"rx"}},
    {kBadBytes, {"tx"}},
});
static_assert(kCounters.size() == abi::kUbCounters);

}  // namespace

void UbReadings::Slow(DevicePass& pass) {
  if (pass.over() || pass.dcmi().api() != DcmiApi::kV2) return;  // A5 only
  ReadLinks(pass);
  ReadCounters(pass);
}

void UbReadings::ReadLinks(DevicePass& pass) {
  constexpr MetricId kLinkUp = MetricByName("atlas_npu_ub_link_up");
  auto status = pass.Ask(dcmi::kUbLinkStatus);
  links_.BeginRound();
  for (int port = 0; status.ok() && port < abi::kUbLinkPorts; ++port) {
    const int state = status.value.ub_port_status[port];
    if (state <= abi::kUbPortNone || state > abi::kUbPortDown) continue;
    const SeriesId series = links_.Use(port, kLinkUp, [&] {
      return std::array<std::string, 2>{"", std::to_string(port)};
    });
    pass.Emit(series, state == abi::kUbPortDown ? 0 : 1);
  }
  links_.EndRound();
}

void UbReadings::ReadCounters(DevicePass& pass) {
  auto ports = pass.Ask(&DcmiService::UbPorts);
  counters_.BeginRound();
  for (size_t i = 0; ports.ok() && i < ports.value.count; ++i) {
    const DcmiUbPort& port = ports.value.ports[i];
    auto stats = pass.Ask(&DcmiService::UbPortStatistics, port.udie, port.port);
    if (stats.ok()) PutCounters(pass, port, stats.value);
  }
  counters_.EndRound();
}

void UbReadings::PutCounters(DevicePass& pass, const DcmiUbPort& port,
                             const abi::DcmiPortPktStats& stats) {
  const size_t count = port.uboe ? kCounters.size() : kFirstEthernet;
  for (size_t i = 0; i < count; ++i) {
    if (stats.pkt_num[i] == UINT64_MAX) continue;  // not counted
    const Counter& counter = kCounters[i];
    const std::tuple key{port.udie, port.port, i};
    auto name = [&](auto... labels) {
      return counters_.Use(key, counter.metric, [&] {
        return std::array<std::string, 2 + sizeof...(labels)>{
            std::to_string(port.udie), std::to_string(port.port), std::string(labels)...};
      });
    };
    const auto& [first, second] = counter.label;
    const SeriesId series = first.empty() ? name() : second.empty() ? name(first) : name(first, second);
    pass.Emit(series, static_cast<double>(stats.pkt_num[i]));
  }
}

}  // namespace profd
