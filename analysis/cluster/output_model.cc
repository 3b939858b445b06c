#include <algorithm>
#include <array>
#include <cmath>
#include <numeric>
#include <tuple>

#include "analysis/cluster/cost.h"
#include "analysis/cluster/output.h"
#include "analysis/views/views.h"

namespace profd::analysis {
namespace {

void AddTransport(const Transport& part, Collective* total) {
  auto sum = std::ranges::find(total->transports, part.name, &Transport::name);
  if (sum == total->transports.end()) sum = total->transports.insert(sum, Transport{.name = part.name});
  sum->Add(part);
  for (const PacketSize& size : part.sizes) {
    const auto same = std::ranges::find(sum->sizes, size.mb, &PacketSize::mb);
    if (same == sum->sizes.end()) {
      sum->sizes.push_back(size);
    } else {
      same->count += size.count;
      same->time_ms += size.time_ms;
    }
  }
}

// To the picosecond: less is what dividing and multiplying by 1000 adds.
std::optional<double> Us(std::optional<double> ms) { return ms ? std::optional(std::round(*ms * 1e9) / 1e6) : std::nullopt; }

std::optional<double> Max(std::optional<double> a, std::optional<double> b) {
  if (!a || !b) return a ? a : b;
  return std::max(*a, *b);
}

}  // namespace

std::vector<int> RanksOf(const Cluster& cluster, const ClusterGroup& group) {
  std::vector<int> ranks = group.facts.ranks;
  if (ranks.empty()) {
    for (const size_t rank : group.ranks) ranks.push_back(cluster.NumberOf(rank));
  }
  std::ranges::sort(ranks);
  return ranks;
}

std::string RankSet(const std::vector<int>& ranks, std::string_view comma) {
  std::string text = "(";
  for (const int rank : ranks) {
    if (text.size() > 1) text += comma;
    text += std::to_string(rank);
  }
  // As Python writes a tuple of one.
  return text + (ranks.size() == 1 ? ",)" : ")");
}

double OutputSpeed(double mb, double ms) { return ms > 0 ? std::round(mb / ms * 1e4) / 1e4 : 0; }

double OutputRatio(double part_ms, double transit_ms) {
  const double both = part_ms + transit_ms;
  return both > 0 ? std::round(part_ms / both * 1e4) / 1e4 : 0;
}

OutputModel::OutputModel(const Cluster& cluster) : cluster_(cluster), order_(cluster.operations().size()) {
  std::map<std::string, size_t> known;
  for (const ClusterGroup& group : cluster.groups()) {
    std::vector<int> recorded;
    for (const size_t rank : group.ranks) recorded.push_back(cluster.NumberOf(rank));
    std::ranges::sort(recorded);
    const std::string set = group.p2p ? "p2p" : RankSet(recorded, ", ");
    const auto [it, is_new] = known.try_emplace(set, sets_.size());
    if (is_new) sets_.push_back(set);
    set_of_.push_back(it->second);
  }
  std::iota(order_.begin(), order_.end(), size_t{0});
  std::ranges::stable_sort(order_, {}, [&](size_t i) {
    const ClusterOp& op = cluster.operations()[i];
    return std::tuple(set_of_[op.group], op.step, op.group);
  });
}

OutputOp OutputModel::Made(const ClusterOp& op) const {
  OutputOp made{set_of_[op.group], op.group, op.step, std::string(op.name), {}};
  if (op.repeat > 0) made.name += "#" + std::to_string(op.repeat);
  for (const OnRank& each : op.ranks) made.ranks.emplace_back(cluster_.NumberOf(each.rank), each.op);
  return made;
}

void OutputModel::AddTo(const ClusterOp& op, std::map<int, Collective>* totals) const {
  for (const OnRank& each : op.ranks) {
    Collective& total = (*totals)[cluster_.NumberOf(each.rank)];
    total.elapse_ms += each.op->elapse_ms;
    if (each.op->parts) {
      if (!total.parts) total.parts = Collective::Parts{};
      total.parts->Add(*each.op->parts);
    }
    for (const Transport& part : each.op->transports) AddTransport(part, &total);
  }
}

std::vector<OutputLinks> OutputModel::Links() const {
  std::map<std::string, size_t, std::less<>> groups;
  for (size_t g = 0; g < cluster_.groups().size(); ++g) groups.emplace(cluster_.groups()[g].name, g);
  LinkEnds ends(cluster_);
  std::map<std::tuple<size_t, int64_t, size_t, std::string>, OutputLinks> all;
  for (size_t i = 0; i < cluster_.run().ranks.size(); ++i) {
    const Rank& rank = cluster_.At(i);
    // Neighbours are mostly of the same operation.
    std::pair<TextId, TextId> last{kNoText, kNoText};
    int64_t last_step = -1;
    OutputLinks* links = nullptr;
    for (const Link& link : rank.links) {
      const auto source = ends.NumberOf(i, link.group, link.source);
      const auto destination = ends.NumberOf(i, link.group, link.destination);
      const auto group = groups.find(rank.TextOf(link.group));
      if (!source || !destination || group == groups.end()) continue;
      if (links == nullptr || last != std::pair(link.group, link.name) || last_step != link.step) {
        const std::string name(rank.TextOf(link.name));
        const auto [of_name, is_new] = all.try_emplace({set_of_[group->second], link.step, group->second, name});
        links = &of_name->second;
        if (is_new) *links = {set_of_[group->second], group->second, link.step, name, link.part, {}};
        last = {link.group, link.name};
        last_step = link.step;
      }
      OutputLink& sum = links->pairs[{*source, *destination}];
      if (sum.transport.empty()) sum.transport = rank.TextOf(link.transport);
      if (sum.op.empty()) sum.op = rank.TextOf(link.op);
      sum.size_mb += link.size_mb;
      sum.time_ms += link.time_ms;
    }
  }
  std::vector<OutputLinks> list;
  std::optional<OutputLinks> total;
  const auto end_total = [&] {
    if (total && !total->pairs.empty()) list.push_back(std::move(*total));
  };
  for (auto& [key, links] : all) {
    if (!total || total->group != links.group || total->step != links.step) {
      end_total();
      total = OutputLinks{links.set, links.group, links.step, std::string(kTotalOp), false, {}};
    }
    for (const auto& [pair, link] : links.pairs) {
      if (links.part) continue;
      OutputLink& sum = total->pairs[pair];
      sum.transport = link.transport;
      sum.size_mb += link.size_mb;
      sum.time_ms += link.time_ms;
    }
    list.push_back(std::move(links));
  }
  end_total();
  return list;
}

std::vector<OutputModel::StepRow> OutputModel::Steps() const {
  std::vector<StepRow> rows;
  std::map<std::pair<int64_t, size_t>, StepRow> stages;
  for (size_t i = 0; i < cluster_.run().ranks.size(); ++i) {
    for (const auto& [step, of] : StepSharesOf(cluster_.At(i))) {
      StepRow row{step, false, std::to_string(cluster_.NumberOf(i)), {}, cluster_.IndexesOf(i)};
      const auto [computing, communication, uncovered, free] = of.begun.value_or(std::array{of.computing, of.communication, of.uncovered, of.free});
      row.us = {Us(computing), Us(uncovered), Us(communication - uncovered), Us(communication), Us(free), Us(of.stage), Us(of.bubble), Us(of.without_receive), Us(of.preparing)};
      if (const auto stage = cluster_.StageOf(i)) {
        std::vector<int> numbers;
        for (const size_t rank : cluster_.stages()[*stage]) numbers.push_back(cluster_.NumberOf(rank));
        StepRow& most = stages[{step, *stage}];
        if (most.index.empty()) most = {step, true, RankSet(numbers, ", "), {}, std::nullopt};
        for (size_t k = 0; k < row.us.size(); ++k) most.us[k] = Max(most.us[k], row.us[k]);
      }
      rows.push_back(std::move(row));
    }
  }
  for (auto& [key, row] : stages) rows.push_back(std::move(row));
  std::ranges::stable_sort(rows, {}, [](const StepRow& row) { return std::pair(row.step, row.stage); });
  return rows;
}

}  // namespace profd::analysis
