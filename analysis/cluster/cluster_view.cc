#include "analysis/cluster/cluster_view.h"

#include <algorithm>
#include <array>
#include <map>

#include "analysis/cluster/cost.h"
#include "analysis/cluster/statistics.h"

namespace profd::analysis {
namespace {

constexpr size_t kMostWaits = 1000;
constexpr size_t kMostPairs = 1000;

using Part = double (*)(const Shares&);
struct NamedPart {
  std::string_view name;
  Part of;
  bool needs_computing;  // not known without it
};
constexpr std::array<NamedPart, 3> kParts = {{{"computing_ms", [](const Shares& shares) { return shares.computing; }, true},
                                              {"uncovered_communication_ms", [](const Shares& shares) { return shares.uncovered; }, false},
                                              {"free_ms", [](const Shares& shares) { return shares.free; }, true}}};

// Of a rank's mean step; null where it is not known.
Json PartOf(const Rank& rank, const std::optional<Shares>& step, const NamedPart& part) {
  const bool known = step && (!part.needs_computing || KnowsComputing(rank));
  return known ? Json(part.of(*step)) : Json();
}

// Of a rank, in front of its values in a table.
Json RankJson(const Cluster& cluster, size_t rank) { return {{"rank", cluster.NumberOf(rank)}, {"host", HostOf(cluster.At(rank))}}; }

Json Hosts(const Cluster& cluster) {
  std::map<std::string, Json> hosts;
  for (size_t i = 0; i < cluster.run().ranks.size(); ++i) {
    if (!cluster.At(i).host.empty()) hosts[cluster.At(i).host].push_back(cluster.NumberOf(i));
  }
  Json list = Json::array();
  for (auto& [host, ranks] : hosts) list.push_back({{"host", host}, {"ranks", std::move(ranks)}});
  return list;
}

Json Groups(const Cluster& cluster) {
  std::vector<uint64_t> operations(cluster.groups().size());
  for (const ClusterOp& op : cluster.operations()) ++operations[op.group];
  Json list = Json::array();
  for (size_t g = 0; g < cluster.groups().size(); ++g) {
    const ClusterGroup& group = cluster.groups()[g];
    Json ranks = Json::array();
    for (const size_t rank : group.ranks) ranks.push_back(cluster.NumberOf(rank));
    list.push_back({{"group", group.name}, {"name", group.facts.label.empty() ? Json() : Json(group.facts.label)}, {"type", group.p2p ? "p2p" : "collective"},
                    {"ranks", std::move(ranks)}, {"operations", operations[g]}});
  }
  return list;
}

// Where one rank's part is an outlier of all ranks', in either direction that matters: more than the others.
Json Outlier(const Cluster& cluster, const std::vector<size_t>& ranks, const std::vector<double>& ms) {
  const auto outlier = HighOutlier(ms);
  if (!outlier) return nullptr;
  return cluster.NumberOf(ranks[*outlier]);
}

Json Steps(const Cluster& cluster) {
  std::map<int64_t, std::vector<std::pair<size_t, Shares>>> steps;
  for (size_t i = 0; i < cluster.run().ranks.size(); ++i) {
    for (const auto& [step, shares] : StepSharesOf(cluster.At(i))) {
      if (shares.computing + shares.uncovered > 0) steps[step].emplace_back(i, shares);
    }
  }
  Json list = Json::array();
  for (const auto& [step, rows] : steps) {
    Json json = {{"step", StepOrNull(step)}, {"ranks", rows.size()}};
    std::vector<size_t> ranks(rows.size());
    std::ranges::transform(rows, ranks.begin(), &std::pair<size_t, Shares>::first);
    for (const NamedPart& part : kParts) {
      std::vector<double> ms(rows.size());
      std::ranges::transform(rows, ms.begin(), [&part](const auto& row) { return part.of(row.second); });
      const auto [least, most] = std::ranges::minmax_element(ms);
      json[std::string(part.name)] = {{"min", *least}, {"mean", SpreadOf(ms).mean}, {"max", *most},
                                      {"min_rank", cluster.NumberOf(ranks[static_cast<size_t>(least - ms.begin())])},
                                      {"max_rank", cluster.NumberOf(ranks[static_cast<size_t>(most - ms.begin())])},
                                      {"outlier_rank", Outlier(cluster, ranks, ms)}};
    }
    list.push_back(std::move(json));
  }
  return list;
}

Json RankTimes(const Cluster& cluster) {
  const std::vector<RankWaits> waits = WaitsByRank(cluster);
  const std::vector<Vote> votes = VotesByRank(cluster);
  Json list = Json::array();
  for (size_t i = 0; i < cluster.run().ranks.size(); ++i) {
    Json json = RankJson(cluster, i);
    json["stage"] = OrNull(cluster.StageOf(i));
    const auto indexes = cluster.IndexesOf(i);
    constexpr std::array<const char*, 3> kIndexes = {"dp", "pp", "tp"};
    for (size_t k = 0; k < kIndexes.size(); ++k) json[kIndexes[k]] = indexes ? Json((*indexes)[k]) : Json();
    const auto step = MeanStepOf(cluster.At(i));
    for (const NamedPart& part : kParts) json[std::string(part.name)] = PartOf(cluster.At(i), step, part);
    json["waits_ms"] = waits[i].operations > 0 ? Json(waits[i].waits_ms) : Json();
    json["others_wait_ms"] = waits[i].operations > 0 ? Json(waits[i].others_wait_ms) : Json();
    json["last_of"] = waits[i].last;
    json["votes"] = votes[i].votes;
    json["operations"] = waits[i].operations;
    list.push_back(std::move(json));
  }
  return list;
}

Json Stages(const Cluster& cluster) {
  Json list = Json::array();
  for (size_t s = 0; s < cluster.stages().size(); ++s) {
    Json ranks = Json::array();
    std::array<double, kParts.size()> sums{};
    std::array<double, kParts.size()> most{};
    double count = 0;
    for (const size_t rank : cluster.stages()[s]) {
      ranks.push_back(cluster.NumberOf(rank));
      const auto step = MeanStepOf(cluster.At(rank));
      if (!step || !KnowsComputing(cluster.At(rank))) continue;
      ++count;
      for (size_t k = 0; k < kParts.size(); ++k) {
        const double ms = kParts[k].of(*step);
        sums[k] += ms;
        most[k] = std::max(most[k], ms);
      }
    }
    Json json = {{"stage", s}, {"ranks", std::move(ranks)}};
    for (size_t k = 0; k < kParts.size(); ++k) json[std::string(kParts[k].name)] = count > 0 ? Json{{"mean", sums[k] / count}, {"max", most[k]}} : Json();
    list.push_back(std::move(json));
  }
  return list;
}

Json WaitList(const Cluster& cluster) {
  Json list = Json::array();
  for (const Wait& wait : WaitsOf(cluster)) {
    if (list.size() == kMostWaits) break;
    list.push_back({{"step", StepOrNull(wait.step)}, {"rank", cluster.NumberOf(wait.waiting)}, {"host", HostOf(cluster.At(wait.waiting))},
                    {"for_rank", cluster.NumberOf(wait.last)}, {"for_host", HostOf(cluster.At(wait.last))}, {"wait_ms", wait.ms},
                    {"operations", wait.operations}});
  }
  return list;
}

Json SlowOps(const Cluster& cluster) {
  Json list = Json::array();
  for (const SlowOp& slow : SlowOperations(cluster)) {
    if (list.size() == kMostSlow) break;
    list.push_back({{"step", StepOrNull(slow.op->step)}, {"operation", slow.op->name}, {"type", slow.op->type},
                    {"group", cluster.groups()[slow.op->group].label()}, {"ranks", slow.op->ranks.size()}, {"size_mb", slow.size_mb},
                    {"transit_ms", slow.transit_ms}, {"mean_ms", slow.mean_ms}, {"score", slow.score}, {"offset_ratio", slow.offset_ratio}});
  }
  return list;
}

Json Pairs(const Cluster& cluster) {
  std::map<int, size_t> by_number;
  for (size_t i = 0; i < cluster.run().ranks.size(); ++i) by_number.emplace(cluster.NumberOf(i), i);
  const auto host_of = [&](int number) {
    const auto found = by_number.find(number);
    return found == by_number.end() ? Json() : HostOf(cluster.At(found->second));
  };
  Json list = Json::array();
  for (const Pair& pair : PairsOf(cluster)) {
    if (list.size() == kMostPairs) break;
    list.push_back({{"src", pair.source}, {"src_host", host_of(pair.source)}, {"dst", pair.destination}, {"dst_host", host_of(pair.destination)},
                    {"transport", pair.transport}, {"size_mb", pair.size_mb}, {"time_ms", pair.time_ms}, {"bandwidth_gb_s", pair.bandwidth},
                    {"mean_gb_s", pair.mean}, {"score", pair.score}});
  }
  return list;
}

Json Experts(const Cluster& cluster) {
  Json list = Json::array();
  for (const ExpertLoad& load : ExpertLoadsOf(cluster)) {
    Json json = RankJson(cluster, load.rank);
    json["group"] = cluster.groups()[load.group].label();
    json["size_mb"] = load.size_mb;
    json["transit_ms"] = load.transit_ms;
    json["beside_mean"] = load.beside_mean;
    list.push_back(std::move(json));
  }
  return list;
}

}  // namespace

Json ClusterView(const Cluster& cluster) {
  if (cluster.run().ranks.size() < 2) return nullptr;
  return {{"hosts", Hosts(cluster)}, {"groups", Groups(cluster)}, {"stages", Stages(cluster)}, {"steps", Steps(cluster)},
          {"rank_times", RankTimes(cluster)}, {"waits", WaitList(cluster)}, {"slow_operations", SlowOps(cluster)}, {"pairs", Pairs(cluster)},
          {"experts", Experts(cluster)}};
}

}  // namespace profd::analysis
