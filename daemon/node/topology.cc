#include "daemon/node/topology.h"

#include <fmt/format.h>

#include <map>

#include "base/text.h"
#include "collectors/metric_table.h"
#include "daemon/session/local_cpus.h"
#include "driver/rooted_fs.h"
#include "profd/v1/profd.pb.h"
#include "proto/enum_word/enum_word.h"

namespace profd {
namespace {

// How a series becomes part of a link. Links of one kind and name are one.
struct LinkFact {
  MetricId metric;
  v1::Link::Kind kind;
  std::string_view name_label;   // empty: the device has one
  enum class Field : uint8_t { kUp, kSpeed, kLanes, kError } field;
  std::string_view error = {};        // its name
  std::string_view error_label = {};  // more of its name
  std::string_view only = {};         // of error_label: this value, and it is no part of the name
};

using enum LinkFact::Field;
constexpr auto kLinkFacts = std::to_array<LinkFact>({
    {MetricByName("atlas_npu_hccs_link_up"), v1::Link::KIND_HCCS, "link", kUp},
    {MetricByName("atlas_npu_hccs_lanes_up"), v1::Link::KIND_HCCS, "link", kLanes},
    {MetricByName("atlas_npu_hccs_crc_errors_total"), v1::Link::KIND_HCCS, "link", kError, "crc"},
    {MetricByName("atlas_npu_hccs_retries_total"), v1::Link::KIND_HCCS, "link", kError, "retries"},
    {MetricByName("atlas_npu_ub_link_up"), v1::Link::KIND_UB, "port", kUp},
    {MetricByName("atlas_npu_sio_crc_errors_total"), v1::Link::KIND_SIO, "", kError, "crc", "direction"},
    {MetricByName("atlas_npu_network_link_up"), v1::Link::KIND_NETWORK, "port", kUp},
    {MetricByName("atlas_npu_network_speed_bytes_per_second"), v1::Link::KIND_NETWORK, "port", kSpeed},
    {MetricByName("atlas_npu_network_link_up_transitions_total"), v1::Link::KIND_NETWORK, "", kError, "link_ups"},
    {MetricByName("atlas_npu_network_fcs_errors_total"), v1::Link::KIND_NETWORK, "", kError, "fcs"},
    {MetricByName("atlas_npu_network_bad_packets_total"), v1::Link::KIND_NETWORK, "", kError, "bad_packets",
     "direction"},
    {MetricByName("atlas_npu_network_fec_codewords_total"), v1::Link::KIND_NETWORK, "", kError,
     "uncorrectable_codewords", "state", "uncorrected"},
    {MetricByName("atlas_npu_roce_retransmits_total"), v1::Link::KIND_NETWORK, "", kError, "retransmissions"},
    {MetricByName("atlas_npu_pcie_errors_total"), v1::Link::KIND_PCIE, "", kError, "", "type"},
});

constexpr MetricId kTopology = MetricByName("atlas_npu_topology_info");
constexpr MetricId kInfo = MetricByName("atlas_npu_info");

v1::Link& LinkOf(v1::DeviceTopology& device, v1::Link::Kind kind, const std::string& name) {
  for (v1::Link& link : *device.mutable_links()) {
    if (link.kind() == kind && link.name() == name) return link;
  }
  v1::Link& link = *device.add_links();
  link.set_kind(kind);
  link.set_name(name);
  return link;
}

void AddLinkFact(const LinkFact& fact, const SeriesValue& series, v1::DeviceTopology* device) {
  const std::string_view more = LabelOf(series, fact.error_label);
  if (!fact.only.empty() && more != fact.only) return;
  v1::Link& link = LinkOf(*device, fact.kind, std::string(LabelOf(series, fact.name_label)));
  switch (fact.field) {
    case kUp:
      link.set_up(series.value != 0);
      return;
    case kSpeed:
      link.set_bytes_per_second(series.value);
      return;
    case kLanes:
      link.set_lanes(static_cast<uint32_t>(series.value));
      return;
    case kError: {
      std::string name(fact.error);
      if (fact.only.empty() && !more.empty()) name += (name.empty() ? "" : "_") + std::string(more);
      (*link.mutable_errors())[name] = static_cast<uint64_t>(series.value);
    }
  }
}

// "16.0 GT/s PCIe" and its lanes, as bytes per second before encoding.
void AddPcie(const RootedFs& sys, v1::DeviceTopology* device) {
  const std::string folder = fmt::format("bus/pci/devices/{}/", device->pci_bus_id());
  auto speed = sys.ReadFile(folder + "current_link_speed", 64);
  auto width = sys.ReadFile(folder + "current_link_width", 16);
  uint32_t lanes = 0;
  if (!width.ok() || !ParseNumber(Trim(*width), &lanes) || lanes == 0) return;
  v1::Link& link = LinkOf(*device, v1::Link::KIND_PCIE, "");
  link.set_lanes(lanes);
  double transfers = 0;
  std::string_view text = speed.ok() ? std::string_view(*speed) : std::string_view();
  if (ParseNumber(NextToken(&text), &transfers)) {
    link.set_bytes_per_second(transfers * 1e9 / 8 * lanes);
  }
}

}  // namespace

void DescribeTopology(const Host& host, const MetricStore& store, const NpuHealth& health, v1::Topology* out) {
  std::map<int, v1::DeviceTopology*> by_device;
  for (const DeviceInfo& info : host.devices) {
    v1::DeviceTopology& device = *out->add_devices();
    device.set_id(static_cast<uint32_t>(info.id));
    device.set_physical_id(static_cast<uint32_t>(info.physical_id));
  }
  // Only now: a field that grows moves its messages.
  for (v1::DeviceTopology& device : *out->mutable_devices()) {
    by_device[static_cast<int>(device.id())] = &device;
  }
  std::vector<MetricId> metrics = {kInfo, kTopology};
  for (const LinkFact& fact : kLinkFacts) metrics.push_back(fact.metric);
  store.VisitFreshOf(metrics, host.clock.MonotonicRawNs(), [&](const SeriesValue& series) {
    auto found = by_device.find(series.device);
    if (found == by_device.end()) return;
    v1::DeviceTopology& device = *found->second;
    if (series.metric == kInfo) {
      device.set_pci_bus_id(std::string(LabelOf(series, "pci_bus_id")));
      uint32_t numa_node = 0;
      if (ParseNumber(LabelOf(series, "numa_node"), &numa_node)) device.set_numa_node(numa_node);
      return;
    }
    if (series.metric == kTopology) {
      v1::Neighbour& neighbour = *device.add_neighbours();
      uint32_t peer = 0;
      if (ParseNumber(LabelOf(series, "peer_npu"), &peer)) neighbour.set_physical_id(peer);
      neighbour.set_type(EnumOf<v1::Neighbour::Type>(LabelOf(series, "type")));
      return;
    }
    for (const LinkFact& fact : kLinkFacts) {
      if (fact.metric == series.metric) AddLinkFact(fact, series, &device);
    }
  });
  for (v1::DeviceTopology& device : *out->mutable_devices()) {
    device.set_cpus(LocalCpusOf(host, store, static_cast<int>(device.id())));
    if (!device.pci_bus_id().empty() && !health.IsDown(static_cast<int>(device.id()))) AddPcie(host.sys, &device);
  }
}

}  // namespace profd
