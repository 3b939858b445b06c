#include <algorithm>
#include <cmath>
#include <iterator>
#include <map>
#include <set>
#include <tuple>

#include "analysis/cluster/cost.h"
#include "analysis/cluster/statistics.h"
#include "analysis/read/readers.h"
#include "analysis/views/views.h"
#include "base/text.h"

namespace profd::analysis {
namespace {

bool IsAllToAll(std::string_view type) {
  return LowerCase(type).find("alltoall") != std::string::npos;
}

double TransitOf(const Collective& op) { return op.parts && op.parts->transit_ms > 0 ? op.parts->transit_ms : op.elapse_ms; }

}  // namespace

double MovedMb(const Collective& op) {
  double moved = 0;
  double parts = 0;
  for (const Transport& each : op.transports) {
    if (each.name == "SDMA" || each.name == "RDMA") moved += each.size_mb;
    if (each.name != "SDMA" && each.name != "RDMA" && each.name != "LOCAL") parts += each.size_mb;
  }
  return moved > 0 ? moved : parts;
}

std::vector<SlowOp> SlowOperations(const Cluster& cluster) {
  std::map<std::tuple<std::string_view, int64_t, size_t>, std::vector<SlowOp>> kinds;  // by type, KB, ranks
  for (const ClusterOp& op : cluster.operations()) {
    if (IsSendOrReceive(op.name)) continue;
    SlowOp made{.op = &op, .transit_ms = op.ranks.front().op->elapse_ms};
    for (const OnRank& each : op.ranks) {
      made.transit_ms = std::min(made.transit_ms, each.op->elapse_ms);
      made.size_mb = std::max(made.size_mb, MovedMb(*each.op));
    }
    kinds[{op.type, std::llround(std::min(made.size_mb, 1e12) * 1000), op.ranks.size()}].push_back(made);
  }
  std::vector<SlowOp> slow;
  for (auto& [key, ops] : kinds) {
    std::vector<double> ms(ops.size());
    std::ranges::transform(ops, ms.begin(), &SlowOp::transit_ms);
    const Spread spread = SpreadOf(ms);
    double most = 0;
    for (const double each : ms) most = std::max(most, std::abs(spread.ScoreOf(each)));
    for (SlowOp& op : ops) {
      op.mean_ms = spread.mean;
      op.score = spread.ScoreOf(op.transit_ms);
      op.offset_ratio = most;
      if (std::abs(op.score) > kOutlier) slow.push_back(op);
    }
  }
  std::ranges::stable_sort(slow, [](const SlowOp& a, const SlowOp& b) { return std::pair(a.offset_ratio, a.score) > std::pair(b.offset_ratio, b.score); });
  return slow;
}

LinkEnds::LinkEnds(const Cluster& cluster) : cluster_(cluster) {
  for (const ClusterGroup& group : cluster.groups()) {
    for (const size_t rank : group.ranks) members_[group.name].ranks.insert(cluster.NumberOf(rank));
  }
  std::set<int> read;
  for (size_t i = 0; i < cluster.run().ranks.size(); ++i) {
    read.insert(cluster.NumberOf(i));
    AddMember(cluster.At(i), cluster.NumberOf(i));
  }
  while (read.contains(first_missing_)) ++first_missing_;
  for (size_t i = 0; i < cluster.run().ranks.size(); ++i) {
    const Rank& rank = cluster.At(i);
    std::set<std::pair<TextId, TextId>> seen;
    // A rank's copy to itself shows its number in the group; in a dump each of its links starts at itself.
    for (const Link& link : rank.links) {
      if (link.source != link.destination && rank.source != "dump") continue;
      if (!seen.emplace(link.group, link.source).second) continue;
      numbers_[std::string(rank.TextOf(link.group))].try_emplace(std::string(rank.TextOf(link.source)), cluster.NumberOf(i));
    }
  }
}

void LinkEnds::AddMember(const Rank& rank, int number) {
  std::set<std::tuple<TextId, TextId, TextId>> seen;
  for (const Link& link : rank.links) {
    if (!seen.emplace(link.group, link.source, link.destination).second) continue;
    Members& members = members_[std::string(rank.TextOf(link.group))];
    members.ranks.insert(number);
    members.linked.insert(number);
    int source = -1;
    int destination = -1;
    if (ParseNumber(rank.TextOf(link.source), &source)) members.most = std::max(members.most, source);
    if (ParseNumber(rank.TextOf(link.destination), &destination)) members.most = std::max(members.most, destination);
    members.numbered_in_all = members.numbered_in_all && source == number;
  }
}

std::optional<int> LinkEnds::NumberOf(size_t rank, TextId group, TextId end) {
  if (rank != cached_rank_) cache_.clear();
  cached_rank_ = rank;
  const auto [it, is_new] = cache_.try_emplace({group, end});
  if (is_new) it->second = Find(cluster_.At(rank), group, end);
  return it->second;
}

std::optional<int> LinkEnds::Find(const Rank& rank, TextId group, TextId end) const {
  int number = 0;
  if (!ParseNumber(rank.TextOf(end), &number) || number < 0) return std::nullopt;
  // A cluster analysis has numbered them already.
  if (rank.source == kClusterSource) return number;
  const auto numbered = numbers_.find(rank.TextOf(group));
  if (numbered != numbers_.end()) {
    const auto known = numbered->second.find(rank.TextOf(end));
    if (known != numbered->second.end()) return known->second;
  }
  const auto facts = rank.groups.find(rank.TextOf(group));
  const bool has_facts = facts != rank.groups.end() && !facts->second.ranks.empty();
  if (has_facts && static_cast<size_t>(number) < facts->second.ranks.size()) return facts->second.ranks[static_cast<size_t>(number)];
  if (numbered != numbers_.end()) return std::nullopt;
  if (has_facts) return std::ranges::find(facts->second.ranks, number) == facts->second.ranks.end() ? std::nullopt : std::optional(number);
  const auto members = members_.find(rank.TextOf(group));
  return members == members_.end() ? std::nullopt : MemberOf(members->second, number);
}

std::optional<int> LinkEnds::MemberOf(const Members& members, int number) const {
  const auto in_order = [&members](int of_group) { return *std::next(members.ranks.begin(), of_group); };
  const auto count = static_cast<int>(members.ranks.size());
  // Each of so many ranks has a number of its own below their count: these are all of the group, or its first ones.
  if (members.linked == members.ranks && members.most < count) return in_order(number);
  // Or numbers are those of the run, and the group has all ranks up to the last one.
  if (members.numbered_in_all && number <= *members.linked.rbegin()) return number;
  // One that was not read may stand before the others.
  if (number < count) return in_order(number) < first_missing_ ? std::optional(in_order(number)) : std::nullopt;
  return number < first_missing_ && members.ranks.contains(number) ? std::optional(number) : std::nullopt;
}

std::vector<Pair> PairsOf(const Cluster& cluster) {
  LinkEnds ends(cluster);
  std::map<std::tuple<std::string, int, int>, Pair> sums;
  for (size_t i = 0; i < cluster.run().ranks.size(); ++i) {
    const Rank& rank = cluster.At(i);
    for (const Link& link : rank.links) {
      if (link.part || link.source == link.destination) continue;
      const auto source = ends.NumberOf(i, link.group, link.source);
      const auto destination = ends.NumberOf(i, link.group, link.destination);
      if (!source || !destination || *source == *destination) continue;
      const std::string transport(rank.TextOf(link.transport));
      Pair& sum = sums[{transport, *source, *destination}];
      sum.source = *source;
      sum.destination = *destination;
      sum.transport = transport;
      sum.size_mb += link.size_mb;
      sum.time_ms += link.time_ms;
    }
  }
  std::vector<Pair> pairs;
  auto begin = sums.begin();
  while (begin != sums.end()) {
    const auto end = std::find_if(begin, sums.end(), [&begin](const auto& each) { return each.second.transport != begin->second.transport; });
    std::vector<double> speeds;
    const size_t first = pairs.size();
    for (; begin != end; ++begin) {
      if (begin->second.time_ms <= 0) continue;
      Pair& pair = pairs.emplace_back(begin->second);
      pair.bandwidth = pair.size_mb / pair.time_ms;
      speeds.push_back(pair.bandwidth);
    }
    const Spread spread = SpreadOf(speeds);
    for (size_t k = first; k < pairs.size(); ++k) {
      pairs[k].mean = spread.mean;
      pairs[k].score = spread.ScoreOf(pairs[k].bandwidth);
    }
  }
  std::ranges::stable_sort(pairs, {}, &Pair::score);
  return pairs;
}

std::vector<ExpertLoad> ExpertLoadsOf(const Cluster& cluster) {
  std::map<std::pair<size_t, size_t>, ExpertLoad> sums;  // by group and rank
  for (const ClusterOp& op : cluster.operations()) {
    if (!IsAllToAll(op.type) || op.ranks.size() < 2) continue;
    for (const OnRank& each : op.ranks) {
      ExpertLoad& sum = sums[{op.group, each.rank}];
      sum.group = op.group;
      sum.rank = each.rank;
      sum.size_mb += MovedMb(*each.op) / StepsOf(cluster.At(each.rank));
      sum.transit_ms += TransitOf(*each.op) / StepsOf(cluster.At(each.rank));
    }
  }
  std::map<size_t, std::pair<double, double>> totals;  // MB and ranks by group
  for (const auto& [key, sum] : sums) {
    totals[sum.group].first += sum.size_mb;
    ++totals[sum.group].second;
  }
  std::vector<ExpertLoad> loads;
  for (auto& [key, sum] : sums) {
    const double mean = totals[sum.group].first / totals[sum.group].second;
    if (mean <= 0) continue;
    sum.beside_mean = sum.size_mb / mean - 1;
    loads.push_back(sum);
  }
  std::ranges::stable_sort(loads, [](const ExpertLoad& a, const ExpertLoad& b) { return std::pair(a.group, -a.size_mb) < std::pair(b.group, -b.size_mb); });
  return loads;
}

}  // namespace profd::analysis
