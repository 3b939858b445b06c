// communication.json and communication_matrix.json (analysis 2.3), as files or as the exports make them, and those that a
// cluster analysis put together (2.4).
#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include <cmath>

#include "analysis/read/readers.h"

namespace profd::analysis {
namespace {

using Json = nlohmann::json;

double NumberOr(const Json& object, const char* name, double otherwise) {
  const auto found = object.find(name);
  return found != object.end() && found->is_number() ? found->get<double>() : otherwise;
}

// Name and group of "hcom_allReduce__586_0_1@17522688603477080586".
std::pair<std::string_view, std::string_view> NameAndGroup(std::string_view key) {
  const size_t at = key.rfind('@');
  return at == std::string_view::npos ? std::pair(key, std::string_view())
                                      : std::pair(key.substr(0, at), key.substr(at + 1));
}

// "hcom_allReduce_" of "hcom_allReduce__586_0_1".
std::string_view TypeOf(std::string_view name) {
  const size_t at = name.find("__");
  return at == std::string_view::npos ? name : name.substr(0, at + 1);
}

void AddTransports(const Json& bandwidth, Collective* collective) {
  for (const auto& [name, each] : bandwidth.items()) {
    if (!each.is_object()) continue;
    Transport transport;
    transport.name = name;
    transport.size_mb = NumberOr(each, "Transit Size(MB)", 0);
    transport.time_ms = NumberOr(each, "Transit Time(ms)", 0);
    if (transport.size_mb <= 0 && transport.time_ms <= 0) continue;
    if (const auto sizes = each.find("Size Distribution"); sizes != each.end() && sizes->is_object()) {
      for (const Json& size : *sizes) {
        if (size.is_array() && !size.empty() && size[0].is_number_unsigned()) transport.packets += size[0].get<uint64_t>();
      }
    }
    transport.large_packets = static_cast<uint64_t>(
        std::llround(NumberOr(each, "Large Packet Ratio", 0) * static_cast<double>(transport.packets)));
    collective->transports.push_back(std::move(transport));
  }
}

void AddOperation(std::string_view key, const Json& op, Rank* rank) {
  const auto times = op.find("Communication Time Info");
  if (times == op.end() || !times->is_object()) return;
  const auto [name, group] = NameAndGroup(key);
  Collective collective;
  collective.name = rank->Text(name);
  collective.type = rank->Text(TypeOf(name));
  collective.group = rank->Text(group);
  const double start_us = NumberOr(*times, "Start Timestamp(us)", 0);
  // In two parts: the nanoseconds of today are more than a double holds.
  const double whole_us = std::floor(start_us);
  if (std::abs(start_us) < 9e15) collective.start_ns = static_cast<int64_t>(whole_us) * 1000 + std::llround((start_us - whole_us) * 1000);
  collective.elapse_ms = NumberOr(*times, "Elapse Time(ms)", 0);
  collective.parts = {NumberOr(*times, "Transit Time(ms)", 0), NumberOr(*times, "Wait Time(ms)", 0),
                      NumberOr(*times, "Synchronization Time(ms)", 0), NumberOr(*times, "Idle Time(ms)", 0)};
  const auto bandwidth = op.find("Communication Bandwidth Info");
  if (bandwidth != op.end() && bandwidth->is_object()) AddTransports(*bandwidth, &collective);
  rank->collectives.push_back(std::move(collective));
}

// Step -> collective or p2p -> operation; of a cluster group -> step -> operation.
template <class Take>
void EachOperation(std::string_view text, std::string_view where, const ReadOrder& order, const Take& take) {
  const Json json = Json::parse(text, nullptr, false);
  if (!json.is_object()) {
    order.problems->push_back({std::string(where), "no JSON object"});
    return;
  }
  for (const Json& step : json) {
    if (!step.is_object()) continue;
    for (const Json& kind : step) {
      if (!kind.is_object()) continue;
      for (const auto& [key, op] : kind.items()) {
        if (op.is_object()) take(std::string_view(key), op);
      }
    }
  }
}

// {"0-1": {"Transport Type": "HCCS", ...}}
void EachLink(std::string_view group, const Json& pairs, const std::function<void(Link)>& take) {
  for (const auto& [pair, each] : pairs.items()) {
    const size_t dash = pair.find('-');
    if (!each.is_object() || dash == std::string::npos) continue;
    Link link;
    link.group = group;
    link.source = pair.substr(0, dash);
    link.destination = pair.substr(dash + 1);
    const auto transport = each.find("Transport Type");
    if (transport != each.end() && transport->is_string()) link.transport = transport->get<std::string>();
    link.size_mb = NumberOr(each, "Transit Size(MB)", 0);
    link.time_ms = NumberOr(each, "Transit Time(ms)", 0);
    take(std::move(link));
  }
}

constexpr std::string_view kTotal = "Total Op Info";

}  // namespace

void ReadCommunication(std::string_view json, std::string_view where, const ReadOrder& order, Rank* rank) {
  EachOperation(json, where, order, [rank](std::string_view key, const Json& op) {
    if (!key.starts_with(kTotal)) AddOperation(key, op, rank);
  });
}

void ReadCommunicationMatrix(std::string_view json, std::string_view where, const ReadOrder& order, Rank* rank) {
  // The others are parts of the total.
  EachOperation(json, where, order, [rank](std::string_view key, const Json& pairs) {
    const auto [name, group] = NameAndGroup(key);
    if (!name.ends_with("-total")) return;
    EachLink(group, pairs, [rank](Link link) { rank->links.push_back(std::move(link)); });
  });
}

void ReadClusterCommunication(std::string_view json, std::string_view where, const ReadOrder& order, const RankOf& rank_of) {
  EachOperation(json, where, order, [&rank_of](std::string_view key, const Json& ranks) {
    if (key.starts_with(kTotal)) return;
    for (const auto& [number, op] : ranks.items()) {
      Rank* rank = rank_of(number);
      if (rank != nullptr && op.is_object()) AddOperation(key, op, rank);
    }
  });
}

void ReadClusterMatrix(std::string_view json, std::string_view where, const ReadOrder& order, const RankOf& rank_of) {
  // Where an operation has no total of its group, it is one of its own.
  EachOperation(json, where, order, [&rank_of](std::string_view key, const Json& pairs) {
    const auto [name, group] = NameAndGroup(key);
    const bool part = name.find("-top") != std::string_view::npos || name.ends_with("-middle") ||
                      name.find("-bottom") != std::string_view::npos;
    if (part || name == kTotal) return;
    EachLink(group, pairs, [&rank_of](Link link) {
      Rank* rank = rank_of(link.source);
      if (rank != nullptr) rank->links.push_back(std::move(link));
    });
  });
}

}  // namespace profd::analysis
