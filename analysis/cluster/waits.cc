#include <algorithm>
#include <array>
#include <map>
#include <set>
#include <tuple>

#include "analysis/cluster/cost.h"
#include "analysis/cluster/statistics.h"
#include "analysis/read/readers.h"
#include "analysis/views/views.h"

namespace profd::analysis {
namespace {

// What a rank sent and received; of some messages.
struct MessagesOfRank {
  std::vector<OnRank> sent;
  std::vector<OnRank> received;
};

// Messages of one name, without its number, of a group in a step.
struct Messages {
  // "__241_19_1" of a send and of its receive.
  std::map<std::pair<std::string_view, size_t>, std::vector<OnRank>> by_number;
  std::map<size_t, MessagesOfRank> by_rank;

  // Numbers count from where a rank's recording began, and a rank's sends and receives in one sequence: where both ranks
  // recorded both sides of all messages, the order of the messages is what they have in common.
  bool HaveBothSides() const {
    if (by_rank.size() != 2) return false;
    const MessagesOfRank& one = by_rank.begin()->second;
    const MessagesOfRank& other = by_rank.rbegin()->second;
    return one.sent.size() == other.received.size() && one.received.size() == other.sent.size();
  }
};

// Both sides of a message, or all ranks of a collective.
template <class Take>
void EachMeeting(const Cluster& cluster, const Take& take) {
  std::map<std::tuple<size_t, int64_t, std::string_view>, Messages> messages;
  for (const ClusterOp& op : cluster.operations()) {
    if (IsSendOrReceive(op.name)) {
      const size_t at = op.name.find("__");
      if (at == std::string_view::npos) continue;
      Messages& of = messages[{op.group, op.step, WithoutNumbers(op.name).substr(at)}];
      std::vector<OnRank>& sides = of.by_number[{op.name.substr(at), op.repeat}];
      sides.insert(sides.end(), op.ranks.begin(), op.ranks.end());
      // Recordings of unknown steps need not begin at the same message, and of more than two ranks no name has the other side.
      const ClusterGroup& group = cluster.groups()[op.group];
      if (op.step < 0 || std::max(group.ranks.size(), group.facts.ranks.size()) > 2) continue;
      for (const OnRank& each : op.ranks) (IsSend(op.name) ? of.by_rank[each.rank].sent : of.by_rank[each.rank].received).push_back(each);
    } else if (op.ranks.size() > 1) {
      take(op.step, op.ranks);
    }
  }
  const auto take_pairs = [&take](int64_t step, std::vector<OnRank>* sent, std::vector<OnRank>* received) {
    for (std::vector<OnRank>* each : {sent, received}) std::ranges::stable_sort(*each, {}, [](const OnRank& side) { return side.op->start_ns; });
    for (size_t i = 0; i < sent->size(); ++i) take(step, {(*sent)[i], (*received)[i]});
  };
  for (auto& [key, of] : messages) {
    if (of.HaveBothSides()) {
      take_pairs(std::get<1>(key), &of.by_rank.begin()->second.sent, &of.by_rank.rbegin()->second.received);
      take_pairs(std::get<1>(key), &of.by_rank.rbegin()->second.sent, &of.by_rank.begin()->second.received);
      continue;
    }
    for (const auto& [number, sides] : of.by_number) {
      if (sides.size() == 2 && sides[0].rank != sides[1].rank) take(std::get<1>(key), sides);
    }
  }
}

const OnRank& LastOf(const std::vector<OnRank>& ranks) {
  return *std::ranges::min_element(ranks, {}, [](const OnRank& each) { return each.op->elapse_ms; });
}

}  // namespace

std::optional<Shares> MeanStepOf(const Rank& rank) {
  const std::map<int64_t, Shares> shares = StepSharesOf(rank);
  Shares mean;
  double steps = 0;
  for (const auto& [step, of] : shares) {
    // A recording begins and ends within a step: of one where nothing ran, nothing was recorded.
    if (of.computing + of.uncovered <= 0) continue;
    ++steps;
    mean.computing += of.computing;
    mean.communication += of.communication;
    mean.uncovered += of.uncovered;
    mean.free += of.free;
  }
  if (steps > 0) return Shares{mean.computing / steps, mean.communication / steps, mean.uncovered / steps, mean.free / steps};
  const Json overall = OverallView(rank);
  if (!overall.is_object()) return std::nullopt;
  return Shares{overall["computing_ms"].get<double>(), overall["communication_ms"].get<double>(), overall["uncovered_communication_ms"].get<double>(),
                overall["free_ms"].get<double>()};
}

double MeanStepMsOf(const Rank& rank) {
  const std::optional<Shares> step = MeanStepOf(rank);
  return step ? step->whole() : 0;
}

std::vector<Wait> WaitsOf(const Cluster& cluster) {
  std::map<std::tuple<int64_t, size_t, size_t>, Wait> sums;
  EachMeeting(cluster, [&sums](int64_t step, const std::vector<OnRank>& ranks) {
    const OnRank& last = LastOf(ranks);
    for (const OnRank& each : ranks) {
      const double ms = each.op->elapse_ms - last.op->elapse_ms;
      if (each.rank == last.rank || ms <= 0) continue;
      Wait& sum = sums[{step, each.rank, last.rank}];
      sum.step = step;
      sum.waiting = each.rank;
      sum.last = last.rank;
      sum.ms += ms;
      ++sum.operations;
    }
  });
  std::vector<Wait> waits;
  waits.reserve(sums.size());
  for (const auto& [key, wait] : sums) waits.push_back(wait);
  std::ranges::stable_sort(waits, std::greater<>(), &Wait::ms);
  return waits;
}

std::vector<RankWaits> WaitsByRank(const Cluster& cluster) {
  std::vector<RankWaits> all(cluster.run().ranks.size());
  struct OfRank {
    // Of meetings of unknown and of known steps.
    std::array<double, 2> waits_ms{};
    std::array<double, 2> others_wait_ms{};
    std::set<int64_t> steps;  // known ones
  };
  std::vector<OfRank> sums(all.size());
  EachMeeting(cluster, [&all, &sums](int64_t step, const std::vector<OnRank>& ranks) {
    const OnRank& last = LastOf(ranks);
    const size_t known = step < 0 ? 0 : 1;
    double others = 0;
    for (const OnRank& each : ranks) {
      const double ms = each.op->elapse_ms - last.op->elapse_ms;
      sums[each.rank].waits_ms[known] += ms;
      if (step >= 0) sums[each.rank].steps.insert(step);
      ++all[each.rank].operations;
      others += ms;
    }
    if (others <= 0) return;
    sums[last.rank].others_wait_ms[known] += others / static_cast<double>(ranks.size() - 1);
    ++all[last.rank].last;
  });
  for (size_t i = 0; i < all.size(); ++i) {
    // A rank may have more or fewer steps than those it met others in.
    const size_t known = sums[i].steps.empty() ? 0 : 1;
    const double steps = known == 0 ? StepsOf(cluster.At(i)) : static_cast<double>(sums[i].steps.size());
    all[i].others_wait_ms = sums[i].others_wait_ms[known] / steps;
    all[i].waits_ms = sums[i].waits_ms[known] / steps;
  }
  return all;
}

std::vector<Vote> VotesByRank(const Cluster& cluster) {
  constexpr size_t kLeast = 3;
  std::vector<Vote> all(cluster.run().ranks.size());
  std::vector<double> ms;
  for (const ClusterOp& op : cluster.operations()) {
    if (op.ranks.size() < kLeast || IsSendOrReceive(op.name)) continue;
    ms.clear();
    for (const OnRank& each : op.ranks) {
      ms.push_back(each.op->elapse_ms);
      ++all[each.rank].operations;
    }
    if (const auto outlier = LowOutlier(ms)) ++all[op.ranks[*outlier].rank].votes;
  }
  return all;
}

}  // namespace profd::analysis
