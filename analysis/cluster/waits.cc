#include <algorithm>
#include <array>
#include <map>
#include <set>
#include <tuple>
#include <utility>

#include "analysis/cluster/cost.h"
#include "analysis/cluster/statistics.h"
#include "analysis/read/readers.h"
#include "analysis/views/views.h"
#include "base/text.h"

namespace profd::analysis {
namespace {

// Between which two ranks the messages of a rank went, as far as their tasks or the rank's links show it.
class Peers {
 public:
  using Two = std::pair<int32_t, int32_t>;  // as Collective::between

  explicit Peers(const Cluster& cluster) : cluster_(cluster), ranks_(cluster.run().ranks.size()) {
    for (size_t i = 0; i < ranks_.size(); ++i) {
      const Rank& rank = cluster.At(i);
      for (const Link& link : rank.links) {
        const std::string_view kind = rank.TextOf(link.name);
        if (link.source == link.destination || (!kind.starts_with("send") && !kind.starts_with("receive"))) continue;
        Two two;
        if (!ParseNumber(rank.TextOf(link.source), &two.first) || !ParseNumber(rank.TextOf(link.destination), &two.second)) continue;
        if (two.first > two.second) std::swap(two.first, two.second);
        ranks_[i].by_kind[{link.group, kind.starts_with("send")}].insert(two);
        if (link.op != kNoText) ranks_[i].by_name[{link.group, link.op}].insert(two);
      }
    }
  }

  // Links name a few operations of each kind only; the others are known where all of their kind are between the same two.
  Two Of(const OnRank& side) const {
    if (side.op->between != kUnknownEnds) return side.op->between;
    const auto& [by_name, by_kind] = ranks_[side.rank];
    const auto named = by_name.find({side.op->group, side.op->name});
    const auto kind = by_kind.find({side.op->group, IsSend(cluster_.At(side.rank).TextOf(side.op->name))});
    const bool is_named = named != by_name.end();
    if (!is_named && kind == by_kind.end()) return kUnknownEnds;
    const std::set<Two>& found = is_named ? named->second : kind->second;
    return found.size() == 1 ? *found.begin() : kUnknownEnds;
  }

 private:
  struct OfRank {
    std::map<std::pair<TextId, TextId>, std::set<Two>> by_name;  // by group and operation
    std::map<std::pair<TextId, bool>, std::set<Two>> by_kind;    // by group, and whether it sends
  };
  const Cluster& cluster_;
  std::vector<OfRank> ranks_;
};

// What one rank has of a message.
struct Side {
  OnRank of;
  bool sent = false;
  Peers::Two two = kUnknownEnds;
  // "__241_19_1" of a send and of its receive, and which of those of one name it is.
  std::pair<std::string_view, size_t> number;
};

// What a rank sent and received; of some messages.
struct MessagesOfRank {
  std::vector<OnRank> sent;
  std::vector<OnRank> received;
};

struct Messages {
  std::map<std::pair<std::string_view, size_t>, std::vector<const Side*>> by_number;
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

template <class Take>
void TakePairs(int64_t step, std::vector<OnRank>* sent, std::vector<OnRank>* received, const Take& take) {
  for (std::vector<OnRank>* each : {sent, received}) std::ranges::stable_sort(*each, {}, [](const OnRank& side) { return side.op->start_ns; });
  for (size_t i = 0; i < sent->size(); ++i) take(step, {(*sent)[i], (*received)[i]});
}

// Of messages of one name, without its number, of a group in a step: the two sides of each.
template <class Take>
void EachMessage(int64_t step, bool of_two, const std::vector<Side>& sides, const Take& take) {
  const bool known = !of_two && std::ranges::none_of(sides, [](const Side& side) { return side.two == kUnknownEnds; });
  std::map<Peers::Two, Messages> messages;
  for (const Side& side : sides) {
    Messages& of = messages[known ? side.two : kUnknownEnds];
    of.by_number[side.number].push_back(&side);
    // Recordings of unknown steps need not begin at the same message.
    if (step < 0 || (!of_two && !known)) continue;
    MessagesOfRank& rank = of.by_rank[side.of.rank];
    (side.sent ? rank.sent : rank.received).push_back(side.of);
  }
  for (auto& [two, of] : messages) {
    if (of.HaveBothSides()) {
      TakePairs(step, &of.by_rank.begin()->second.sent, &of.by_rank.rbegin()->second.received, take);
      TakePairs(step, &of.by_rank.rbegin()->second.sent, &of.by_rank.begin()->second.received, take);
      continue;
    }
    for (const auto& [number, both] : of.by_number) {
      if (both.size() != 2 || both[0]->of.rank == both[1]->of.rank) continue;
      const bool others = both[0]->two != both[1]->two && both[0]->two != kUnknownEnds && both[1]->two != kUnknownEnds;
      if (!others) take(step, {both[0]->of, both[1]->of});
    }
  }
}

// Both sides of a message, or all ranks of a collective.
template <class Take>
void EachMeeting(const Cluster& cluster, const Take& take) {
  const Peers peers(cluster);
  std::map<std::tuple<size_t, int64_t, std::string_view>, std::vector<Side>> messages;
  for (const ClusterOp& op : cluster.operations()) {
    if (IsSendOrReceive(op.name)) {
      const size_t at = op.name.find("__");
      if (at == std::string_view::npos) continue;
      std::vector<Side>& sides = messages[{op.group, op.step, WithoutNumbers(op.name).substr(at)}];
      for (const OnRank& each : op.ranks) sides.push_back({each, IsSend(op.name), peers.Of(each), {op.name.substr(at), op.repeat}});
    } else if (op.ranks.size() > 1) {
      take(op.step, op.ranks);
    }
  }
  for (const auto& [key, sides] : messages) {
    const ClusterGroup& group = cluster.groups()[std::get<0>(key)];
    EachMessage(std::get<1>(key), std::max(group.ranks.size(), group.facts.ranks.size()) <= 2, sides, take);
  }
}

const OnRank& LastOf(const std::vector<OnRank>& ranks) {
  return *std::ranges::min_element(ranks, {}, [](const OnRank& each) { return each.op->elapse_ms; });
}

}  // namespace

std::optional<Shares> MeanStepOf(const Rank& rank) {
  const std::map<int64_t, Shares> shares = StepSharesOf(rank);
  Shares sum;
  double steps = 0;
  for (const auto& [step, of] : shares) {
    // A recording begins and ends within a step: of one where nothing ran, nothing was recorded.
    if (of.computing + of.uncovered <= 0) continue;
    ++steps;
    sum.Add(of);
  }
  if (steps > 0) return sum.MeanOf(steps);
  const std::optional<Overall> overall = OverallOf(rank);
  return overall ? std::optional(overall->shares) : std::nullopt;
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
