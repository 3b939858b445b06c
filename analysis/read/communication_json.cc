// communication.json and communication_matrix.json (analysis 2.3), as files or as the exports make them, and those that a
// cluster analysis put together (2.4).
#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include <algorithm>
#include <cmath>

#include "analysis/read/readers.h"
#include "base/count_text.h"
#include "base/text.h"

namespace profd::analysis {
namespace {

using Json = nlohmann::json;

constexpr std::string_view kTotal = "Total Op Info";

// Where an operation stands in the file.
struct Place {
  std::string_view group;  // of a cluster: "(0, 1)"
  int64_t step = -1;
  bool p2p = false;
};

// What is not of the kind that it should be.
struct Wrong {
  std::string_view of;  // the operation that is looked at
  uint64_t count = 0;
  std::string first;

  void Add(std::string_view name) {
    if (++count == 1) first = of.empty() ? std::string(name) : fmt::format("{} of {}", name, of);
  }
  double Number(const Json& object, const char* name) {
    const auto found = object.find(name);
    if (found == object.end()) return 0;
    if (found->is_number()) return found->get<double>();
    Add(name);
    return 0;
  }
  bool IsObject(const Json& value, std::string_view name) {
    if (!value.is_object()) Add(name);
    return value.is_object();
  }
};

// Python writes NaN, Infinity and -Infinity, which JSON has not: made empty texts, which are no numbers either. All bytes keep their places.
std::string WithoutNan(std::string text) {
  bool quoted = false;
  for (size_t i = 0; i < text.size(); ++i) {
    if (quoted && text[i] == '\\') {
      ++i;
      continue;
    }
    if (text[i] == '"') quoted = !quoted;
    if (quoted) continue;
    for (const std::string_view word : {"NaN", "Infinity", "-Infinity"}) {
      if (text.compare(i, word.size(), word) != 0) continue;
      text.replace(i, word.size(), word.size(), ' ');
      text[i] = text[i + 1] = '"';
      i += word.size() - 1;
      break;
    }
  }
  return text;
}

// Null: it is no object, or damaged, which is said.
Json ParseObject(std::string_view text, std::string_view where, const ReadContext& context) {
  Json json = Json::parse(text, nullptr, false);
  try {
    if (json.is_discarded()) json = Json::parse(WithoutNan(std::string(text)));
  } catch (const Json::parse_error& error) {
    context.AddProblem(where, fmt::format("the JSON is damaged at byte {}: all of it is left out", error.byte));
    return nullptr;
  } catch (const Json::out_of_range&) {
    context.AddProblem(where, "the JSON has a number that is too large: all of it is left out");
    return nullptr;
  }
  if (json.is_object()) return json;
  context.AddProblem(where, "no JSON object");
  return nullptr;
}

// Name and group of "hcom_allReduce__586_0_1@17522688603477080586".
std::pair<std::string_view, std::string_view> NameAndGroup(std::string_view key) {
  const size_t at = key.rfind('@');
  return at == std::string_view::npos ? std::pair(key, std::string_view())
                                      : std::pair(key.substr(0, at), key.substr(at + 1));
}

void AddSizes(const Json& sizes, Transport* transport) {
  for (const auto& [text, each] : sizes.items()) {
    if (!each.is_array() || each.empty() || !each[0].is_number()) continue;
    PacketSize size;
    size.count = CountOf(each[0].get<double>());
    if (!ParseNumber(text, &size.mb) || !std::isfinite(size.mb)) size.mb = 0;
    if (each.size() > 1 && each[1].is_number()) size.time_ms = each[1].get<double>();
    transport->packets += size.count;
    transport->sizes.push_back(size);
  }
}

uint64_t LargeOf(const Transport& transport) {
  return static_cast<uint64_t>(std::llround(std::clamp(transport.large_ratio, 0.0, 1.0) * static_cast<double>(transport.packets)));
}

void AddTransports(const Json& bandwidth, Collective* collective, Wrong* wrong) {
  for (const auto& [name, each] : bandwidth.items()) {
    if (!wrong->IsObject(each, name)) continue;
    const uint64_t before = wrong->count;
    Transport transport;
    transport.name = name;
    transport.size_mb = wrong->Number(each, "Transit Size(MB)");
    transport.time_ms = wrong->Number(each, "Transit Time(ms)");
    transport.large_ratio = wrong->Number(each, "Large Packet Ratio");
    if (wrong->count > before) continue;
    if (transport.size_mb <= 0 && transport.time_ms <= 0) continue;
    const auto sizes = each.find("Size Distribution");
    if (sizes != each.end() && sizes->is_object()) AddSizes(*sizes, &transport);
    transport.large_packets = LargeOf(transport);
    collective->transports.push_back(std::move(transport));
  }
}

void AddOperation(const Place& place, std::string_view key, const Json& op, Wrong* wrong, Rank* rank) {
  const auto times = op.find("Communication Time Info");
  if (times == op.end() || !wrong->IsObject(*times, "Communication Time Info")) return;
  const uint64_t before = wrong->count;
  const auto [name, group] = NameAndGroup(key);
  Collective collective = CollectiveOf({name, group, place.step, place.p2p}, rank);
  collective.start_ns = MicrosAsNs(wrong->Number(*times, "Start Timestamp(us)")).value_or(0);
  collective.elapse_ms = wrong->Number(*times, "Elapse Time(ms)");
  if (times->contains("Transit Time(ms)")) {
    collective.parts = {wrong->Number(*times, "Transit Time(ms)"), wrong->Number(*times, "Wait Time(ms)"),
                        wrong->Number(*times, "Synchronization Time(ms)"), wrong->Number(*times, "Idle Time(ms)")};
  }
  if (wrong->count > before) return;
  const auto bandwidth = op.find("Communication Bandwidth Info");
  if (bandwidth != op.end() && bandwidth->is_object()) AddTransports(*bandwidth, &collective, wrong);
  rank->collectives.push_back(std::move(collective));
}

// Step -> collective or p2p -> operation; of a cluster group -> step -> operation, or group -> operation -> step.
template <class Take>
void EachOperation(std::string_view text, std::string_view where, bool of_cluster, const ReadContext& context, const Take& take) {
  const Json json = ParseObject(text, where, context);
  Wrong wrong;
  const auto take_if = [&](const Place& place, std::string_view key, const Json& op, std::string_view name) {
    wrong.of = {};
    if (!wrong.IsObject(op, name)) return;
    wrong.of = key;
    take(place, key, op, &wrong);
  };
  for (const auto& [outer, middle] : json.items()) {
    wrong.of = {};
    if (!wrong.IsObject(middle, outer)) continue;
    for (const auto& [inner, operations] : middle.items()) {
      wrong.of = outer;
      if (!wrong.IsObject(operations, inner)) continue;
      // Other releases have the operation before the step.
      if (of_cluster && (inner.find('@') != std::string::npos || inner.starts_with(kTotal))) {
        for (const auto& [step, op] : operations.items()) {
          take_if(Place{outer, StepNumberOf(step), outer == "p2p"}, inner, op, step);
        }
        continue;
      }
      const Place place{of_cluster ? outer : std::string_view(), StepNumberOf(of_cluster ? inner : outer), (of_cluster ? outer : inner) == "p2p"};
      for (const auto& [key, op] : operations.items()) {
        take_if(place, key, op, key);
      }
    }
  }
  if (wrong.count > 0) {
    context.AddProblem(where, fmt::format("{}: what is described there is left out, the first is {}", CountText(wrong.count, "value makes no sense", "values make no sense"), wrong.first));
  }
}

// {"0-1": {"Transport Type": "HCCS", ...}}; `rank_of`: whose link it is, null where it is not a rank's.
void EachLink(const Place& place, std::string_view key, bool part, const Json& pairs, Wrong* wrong, const std::function<Rank*(std::string_view source)>& rank_of) {
  const auto [name, group] = NameAndGroup(key);
  for (const auto& [pair, each] : pairs.items()) {
    const size_t dash = pair.find('-');
    if (!wrong->IsObject(each, pair) || dash == std::string::npos) continue;
    const std::string_view source = std::string_view(pair).substr(0, dash);
    Rank* rank = rank_of(source);
    if (rank == nullptr) continue;
    const auto text = [&link_json = each, rank](const char* field) {
      const auto found = link_json.find(field);
      return found != link_json.end() && found->is_string() ? rank->Text(found->template get_ref<const std::string&>()) : kNoText;
    };
    Link link;
    link.group = rank->Text(group);
    link.source = rank->Text(source);
    link.destination = rank->Text(std::string_view(pair).substr(dash + 1));
    link.transport = text("Transport Type");
    const uint64_t before = wrong->count;
    link.size_mb = wrong->Number(each, "Transit Size(MB)");
    link.time_ms = wrong->Number(each, "Transit Time(ms)");
    if (wrong->count > before) continue;
    link.name = rank->Text(name);
    link.op = text("Op Name");
    if (link.op == kNoText) link.op = text("op_name");
    link.step = place.step;
    link.p2p = place.p2p;
    link.part = part;
    rank->links.push_back(link);
  }
}

}  // namespace

Collective CollectiveOf(const OperationKey& key, Rank* rank) {
  Collective made;
  made.name = rank->Text(key.name);
  made.type = rank->Text(CollectiveTypeOf(key.name));
  made.group = rank->Text(key.group);
  made.step = key.step;
  made.p2p = key.p2p;
  return made;
}

std::string_view CollectiveTypeOf(std::string_view name) {
  const size_t at = name.find("__");
  return at == std::string_view::npos ? name : name.substr(0, at + 1);
}

bool IsSend(std::string_view name) { return name.starts_with("hcom_send"); }

bool IsSendOrReceive(std::string_view name) {
  // "batchSendRecv" is of several ranks.
  return IsSend(name) || name.starts_with("hcom_receive");
}

bool IsPartOfTotal(std::string_view name) {
  return name.find("-top") != std::string_view::npos || name.ends_with("-middle") || name.find("-bottom") != std::string_view::npos;
}

int64_t StepNumberOf(std::string_view text) {
  int64_t step = -1;
  if (text.starts_with("step")) text.remove_prefix(4);
  return ParseNumber(text, &step) && step >= 0 ? step : -1;
}

std::optional<int64_t> MicrosAsNs(double us) {
  // In two parts: the nanoseconds of today are more than a double holds.
  const double whole = std::floor(us);
  if (!(std::abs(us) < 9e15)) return std::nullopt;
  return static_cast<int64_t>(whole) * 1000 + std::llround((us - whole) * 1000);
}

uint64_t CountOf(double count) {
  constexpr double kMost = 1e15;
  return count >= 0 ? static_cast<uint64_t>(std::min(count, kMost)) : 0;
}

void AddPackets(const TransportRow& row, const PacketSize& size, Collective* op) {
  if (row.size_mb <= 0 && row.time_ms <= 0) return;
  auto known = std::ranges::find(op->transports, row.name, &Transport::name);
  if (known == op->transports.end()) {
    known = op->transports.insert(known, Transport{.name = std::string(row.name), .size_mb = row.size_mb, .time_ms = row.time_ms});
    known->large_ratio = row.large_ratio;
  }
  if (size.count == 0 && size.mb <= 0) return;
  known->packets += size.count;
  known->large_packets = LargeOf(*known);
  known->sizes.push_back(size);
}

void ReadCommunication(std::string_view json, std::string_view where, const ReadContext& context, Rank* rank) {
  EachOperation(json, where, false, context, [rank](const Place& place, std::string_view key, const Json& op, Wrong* wrong) {
    if (!key.starts_with(kTotal)) AddOperation(place, key, op, wrong, rank);
  });
}

void ReadCommunicationMatrix(std::string_view json, std::string_view where, const ReadContext& context, Rank* rank) {
  EachOperation(json, where, false, context, [rank](const Place& place, std::string_view key, const Json& pairs, Wrong* wrong) {
    const std::string_view name = NameAndGroup(key).first;
    if (name == kTotal) return;
    EachLink(place, key, IsPartOfTotal(name), pairs, wrong, [rank](std::string_view) { return rank; });
  });
}

void ReadClusterCommunication(std::string_view json, std::string_view where, const ReadContext& context, const RankOf& rank_of) {
  EachOperation(json, where, true, context, [&rank_of](const Place& place, std::string_view key, const Json& ranks, Wrong* wrong) {
    if (key.starts_with(kTotal)) return;
    for (const auto& [number, op] : ranks.items()) {
      Rank* rank = rank_of(number);
      if (rank != nullptr && wrong->IsObject(op, number)) AddOperation(place, key, op, wrong, rank);
    }
  });
}

void ReadClusterMatrix(std::string_view json, std::string_view where, const ReadContext& context, const RankOf& rank_of) {
  // Where an operation has no total of its group, it is one of its own.
  EachOperation(json, where, true, context, [&rank_of](const Place& place, std::string_view key, const Json& pairs, Wrong* wrong) {
    const std::string_view name = NameAndGroup(key).first;
    if (name != kTotal) EachLink(place, key, IsPartOfTotal(name), pairs, wrong, rank_of);
  });
}

}  // namespace profd::analysis
