// Communication by operation and by link, its speed beside what the link can do (analysis 5.6).
#include <algorithm>
#include <map>

#include "analysis/views/views.h"

namespace profd::analysis {
namespace {

// GB/s (10^9) that MindStudio Insight compares with; none: not published.
std::optional<double> ReferenceOf(std::string_view transport) {
  if (transport == "RDMA") return 12.5;
  if (transport == "HCCS" || transport == "SDMA") return 18;
  if (transport == "PCIE") return 20;
  return std::nullopt;
}

// MB (10^6) in ms.
Json Speed(double mb, double ms) { return ms > 0 ? Json(mb / ms) : Json(); }

struct OfOperation {
  uint64_t count = 0;
  double elapse_ms = 0;
  bool has_parts = false;
  Collective::Parts parts;
  std::map<std::string, Transport> transports;
};

Json TransportJson(const Transport& each) {
  return {{"transport", each.name},
          {"size_mb", each.size_mb},
          {"time_ms", each.time_ms},
          {"bandwidth_gb_s", Speed(each.size_mb, each.time_ms)},
          {"reference_gb_s", OrNull(ReferenceOf(each.name))},
          {"packets", each.packets},
          {"large_packet_ratio",
           each.packets == 0 ? Json() : Json(static_cast<double>(each.large_packets) / static_cast<double>(each.packets))}};
}

}  // namespace

Json CommunicationView(const Rank& rank) {
  std::map<std::tuple<TextId, TextId, TextId>, OfOperation> operations;
  for (const Collective& each : rank.collectives) {
    OfOperation& sum = operations[{each.group, each.name, each.type}];
    sum.count += each.count;
    sum.elapse_ms += each.elapse_ms;
    if (each.parts) {
      sum.has_parts = true;
      sum.parts.Add(*each.parts);
    }
    for (const Transport& transport : each.transports) {
      Transport& to = sum.transports[transport.name];
      to.name = transport.name;
      to.Add(transport);
      to.packets += transport.packets;
      to.large_packets += transport.large_packets;
    }
  }
  std::vector<std::pair<std::tuple<TextId, TextId, TextId>, OfOperation>> sorted(operations.begin(), operations.end());
  std::ranges::stable_sort(sorted, std::greater<>(), [](const auto& each) { return each.second.elapse_ms; });
  Json list = Json::array();
  for (const auto& [key, sum] : sorted) {
    const auto part = [&sum = sum](double value) { return sum.has_parts ? Json(value) : Json(); };
    const double moving = sum.parts.wait_ms + sum.parts.transit_ms;
    Json json = {{"group", TextOrNull(rank, std::get<0>(key))},
                 {"name", TextOrNull(rank, std::get<1>(key))},
                 {"type", TextOrNull(rank, std::get<2>(key))},
                 {"count", sum.count},
                 {"elapse_ms", sum.elapse_ms},
                 {"transit_ms", part(sum.parts.transit_ms)},
                 {"wait_ms", part(sum.parts.wait_ms)},
                 {"synchronization_ms", part(sum.parts.synchronization_ms)},
                 {"idle_ms", part(sum.parts.idle_ms)},
                 {"wait_ratio", sum.has_parts && moving > 0 ? Json(sum.parts.wait_ms / moving) : Json()}};
    json["transports"] = Json::array();
    for (const auto& [name, transport] : sum.transports) json["transports"].push_back(TransportJson(transport));
    list.push_back(std::move(json));
  }
  return list;
}

Json LinksView(const Rank& rank) {
  // Ranks are texts of numbers: 2 comes before 10.
  using Number = std::pair<size_t, std::string_view>;
  const auto number = [&rank](TextId id) { return Number(rank.TextOf(id).size(), rank.TextOf(id)); };
  std::map<std::tuple<std::string_view, Number, Number, std::string_view>, std::pair<double, double>> links;
  for (const Link& link : rank.links) {
    if (link.part) continue;
    auto& [mb, ms] = links[{rank.TextOf(link.group), number(link.source), number(link.destination), rank.TextOf(link.transport)}];
    mb += link.size_mb;
    ms += link.time_ms;
  }
  Json list = Json::array();
  for (const auto& [key, sum] : links) {
    const auto& [group, source, destination, transport] = key;
    list.push_back({{"group", group}, {"src", source.second}, {"dst", destination.second}, {"transport", transport},
                    {"size_mb", sum.first}, {"time_ms", sum.second}, {"bandwidth_gb_s", Speed(sum.first, sum.second)},
                    {"reference_gb_s", OrNull(ReferenceOf(transport))}});
  }
  return list;
}

}  // namespace profd::analysis
