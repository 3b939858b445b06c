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
  size_t labels;  // after udie and port
  std::array<std::string_view, 2> label;
};

// What the counters of a port are, in the driver's order (dcmi-and-metrics 1.4: 21 of what was
// received, 16 of what was sent, three of both, and eight that only ports in Ethernet mode have).
constexpr size_t kFirstEthernet = 40;
constexpr auto kCounters = std::to_array<Counter>({
    {kPackets, 2, {"rx", "ub_ipv4"}},
    {kPackets, 2, {"rx", "ub_ipv6"}},
    {kPackets, 2, {"rx", "unic_ipv4"}},
    {kPackets, 2, {"rx", "unic_ipv6"}},
    {kPackets, 2, {"rx", "ub_compact"}},
    {kPackets, 2, {"rx", "ub_umoc_ctph"}},
    {kPackets, 2, {"rx", "ub_umoc_ntph"}},
    {kPackets, 2, {"rx", "ub_mem"}},
    {kPackets, 2, {"rx", "unknown"}},
    {kErrors, 2, {"rx", "drop"}},
    {kErrors, 2, {"rx", "error"}},
    {kForwarded, 1, {"host", ""}},
    {kForwarded, 1, {"imp", ""}},
    {kForwarded, 1, {"mar", ""}},
    {kForwarded, 1, {"link", ""}},
    {kForwarded, 1, {"noc", ""}},
    {kErrors, 2, {"rx", "route"}},
    {kErrors, 2, {"rx", "out"}},
    {kErrors, 2, {"rx", "length"}},
    {kFlits, 2, {"rx", "busy"}},
    {kFlits, 2, {"rx", "ack"}},
    {kPackets, 2, {"tx", "ub_ipv4"}},
    {kPackets, 2, {"tx", "ub_ipv6"}},
    {kPackets, 2, {"tx", "unic_ipv4"}},
    {kPackets, 2, {"tx", "unic_ipv6"}},
    {kPackets, 2, {"tx", "ub_compact"}},
    {kPackets, 2, {"tx", "ub_umoc_ctph"}},
    {kPackets, 2, {"tx", "ub_umoc_ntph"}},
    {kPackets, 2, {"tx", "ub_mem"}},
    {kPackets, 2, {"tx", "unknown"}},
    {kErrors, 2, {"tx", "drop"}},
    {kErrors, 2, {"tx", "error"}},
    {kLoopback, 0, {"", ""}},
    {kErrors, 2, {"tx", "out"}},
    {kErrors, 2, {"tx", "length"}},
    {kFlits, 2, {"tx", "busy"}},
    {kFlits, 2, {"tx", "ack"}},
    {kRetries, 1, {"request", ""}},
    {kRetries, 1, {"ack", ""}},
    {kCrc, 0, {"", ""}},
    {kPause, 1, {"rx", ""}},
    {kPause, 1, {"tx", ""}},
    {kPfc, 1, {"rx", ""}},
    {kPfc, 1, {"tx", ""}},
    {kBadPackets, 1, {"rx", ""}},
    {kBadPackets, 1, {"tx", ""}},
    {kBadBytes, 1, {"rx", ""}},
    {kBadBytes, 1, {"tx", ""}},
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
    const SeriesId series = counter.labels == 0   ? name()
                            : counter.labels == 1 ? name(counter.label[0])
                                                  : name(counter.label[0], counter.label[1]);
    pass.Emit(series, static_cast<double>(stats.pkt_num[i]));
  }
}

}  // namespace profd
