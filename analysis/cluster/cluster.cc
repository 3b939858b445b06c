#include "analysis/cluster/cluster.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <numeric>
#include <optional>
#include <tuple>
#include <unordered_map>

#include "analysis/read/readers.h"
#include "base/text.h"

namespace profd::analysis {
namespace {

// Sets of ranks that are joined where they have one in common.
class Joined {
 public:
  explicit Joined(size_t count) : parent_(count) { std::iota(parent_.begin(), parent_.end(), size_t{0}); }

  void Join(const std::vector<size_t>& ranks) {
    for (const size_t each : ranks) parent_[RootOf(each)] = RootOf(ranks.front());
  }
  // Those of at least so many, by their first rank.
  std::vector<std::vector<size_t>> All(size_t least) {
    std::map<size_t, std::vector<size_t>> by_root;
    for (size_t i = 0; i < parent_.size(); ++i) by_root[RootOf(i)].push_back(i);
    std::vector<std::vector<size_t>> all;
    for (auto& [root, ranks] : by_root) {
      if (ranks.size() >= least) all.push_back(std::move(ranks));
    }
    std::ranges::sort(all);
    return all;
  }

 private:
  size_t RootOf(size_t i) {
    while (parent_[i] != i) i = parent_[i] = parent_[parent_[i]];
    return i;
  }
  std::vector<size_t> parent_;
};

int64_t SizeOf(const Rank& rank, std::string_view name) {
  const auto found = rank.parallel_sizes.find(name);
  return found == rank.parallel_sizes.end() ? 0 : found->second;
}

// Ranks do not begin to record at once, and then their numbers differ: operations of a step that all ranks of a group have
// as many of are the same ones in their order. Where ranks have more and fewer of them, as of the step in which a recording
// begins, such a step shows how far their numbers lie apart. Memory grows with the kinds of operations, times the steps or the ranks.
class SameOrder {
 public:
  // What an operation is called on all ranks; `number` is 0 unless it distinguishes those of one name.
  struct Identity {
    std::string_view name;
    int64_t number = 0;
  };

  explicit SameOrder(const Run& run) {
    for (const auto& rank : run.ranks) {
      std::map<Key, OfRank> of_rank;
      for (const Collective& each : rank->collectives) {
        if (!IsNumbered(*rank, each)) continue;
        OfRank& of = of_rank[KeyOf(*rank, each)];
        ++of.count;
        of.names += std::hash<std::string_view>()(rank->TextOf(each.name));
      }
      for (const auto& [key, of] : of_rank) {
        const auto [known, is_first] = kinds_.try_emplace(key, OfKind{of});
        known->second.same_names &= of.names == known->second.first.names;
        known->second.same_count &= of.count == known->second.first.count;
      }
    }
    AddFirstNumbers(run);
  }

  Identity Of(const Rank& rank, const Collective& each) const {
    const std::string_view name = rank.TextOf(each.name);
    if (!IsNumbered(rank, each)) return {name};
    const Key key = KeyOf(rank, each);
    const OfKind& kind = kinds_.at(key);
    if (kind.same_names) return {name};
    const std::string_view plain = std::get<2>(key);
    if (kind.same_count) return {plain};
    const auto first = first_numbers_.find({&rank, std::get<0>(key), plain});
    const std::optional<int64_t> number = NumberAfter(plain, name);
    return first != first_numbers_.end() && number ? Identity{plain, *number - first->second} : Identity{name};
  }

 private:
  using Key = std::tuple<std::string_view, int64_t, std::string_view>;  // group, step, name
  struct OfRank {
    size_t count = 0;
    size_t names = 0;  // a sum of their hashes
  };
  struct OfKind {
    OfRank first;
    bool same_names = true;  // on all ranks that have it
    bool same_count = true;
  };
  static bool IsNumbered(const Rank& rank, const Collective& each) {
    return each.step >= 0 && each.count == 1 && !each.p2p && !IsSendOrReceive(rank.TextOf(each.name));
  }
  static Key KeyOf(const Rank& rank, const Collective& each) {
    return {rank.TextOf(each.group), each.step, WithoutNumbers(rank.TextOf(each.name))};
  }
  // 19 of "hcom_allReduce__241_19_1", which is "hcom_allReduce__241" without its numbers.
  static std::optional<int64_t> NumberAfter(std::string_view plain, std::string_view name) {
    if (plain.size() == name.size()) return std::nullopt;
    const std::string_view rest = name.substr(plain.size() + 1);
    int32_t number = 0;
    return ParseNumber(rest.substr(0, rest.find('_')), &number) ? std::optional<int64_t>(number) : std::nullopt;
  }
  // Of each rank the number of the first operation in the first step whose operations are known to be the same.
  void AddFirstNumbers(const Run& run) {
    std::map<std::pair<std::string_view, std::string_view>, int64_t> steps;
    for (const auto& [key, kind] : kinds_) {
      if (kind.same_count && !kind.same_names) steps.try_emplace({std::get<0>(key), std::get<2>(key)}, std::get<1>(key));
    }
    if (steps.empty()) return;
    for (const auto& rank : run.ranks) {
      for (const Collective& each : rank->collectives) {
        if (!IsNumbered(*rank, each)) continue;
        const auto [group, step, plain] = KeyOf(*rank, each);
        const auto of = steps.find({group, plain});
        const std::optional<int64_t> number = NumberAfter(plain, rank->TextOf(each.name));
        if (of == steps.end() || of->second != step || !number) continue;
        int64_t& first = first_numbers_.try_emplace({rank.get(), group, plain}, *number).first->second;
        first = std::min(first, *number);
      }
    }
  }

  std::map<Key, OfKind> kinds_;
  std::map<std::tuple<const Rank*, std::string_view, std::string_view>, int64_t> first_numbers_;  // rank, group, name
};

}  // namespace

Cluster::Cluster(const Run& run) : run_(run), stage_of_(run.ranks.size()) {
  AddOperations();
  FindPipelines();
  FindStages();
}

int Cluster::NumberOf(size_t rank) const {
  const Rank& at = At(rank);
  return at.rank.value_or(at.device.value_or(static_cast<int>(rank)));
}

std::optional<std::array<int64_t, 3>> Cluster::IndexesOf(size_t rank) const {
  const Rank& at = At(rank);
  if (at.parallel_index) return at.parallel_index;
  // Tensor parallelism varies first, then context, data, pipeline.
  const int64_t tensor = SizeOf(at, "tensor_model_parallel_size");
  const int64_t pipeline = SizeOf(at, "pipeline_model_parallel_size");
  const int64_t context = std::max<int64_t>(SizeOf(at, "context_parallel_size"), 1);
  const int64_t world = SizeOf(at, "world_size");
  int64_t data = SizeOf(at, "data_parallel_size");
  constexpr int64_t kMost = 1'000'000;
  for (const int64_t size : {tensor, pipeline, context, world, data}) {
    if (size < 0 || size > kMost) return std::nullopt;
  }
  if (tensor < 1 || pipeline < 1 || !at.rank) return std::nullopt;
  if (data < 1) data = std::max<int64_t>(world / (tensor * pipeline * context), 1);
  const int64_t in_stage = *at.rank / (tensor * context);
  return std::array<int64_t, 3>{in_stage % data, in_stage / data, *at.rank % tensor};
}

void Cluster::AddOperations() {
  const SameOrder order(run_);
  using Key = std::tuple<size_t, int64_t, std::string_view, int64_t, size_t>;
  struct Hash {
    size_t operator()(const Key& key) const {
      const size_t name = std::hash<std::string_view>()(std::get<2>(key));
      return (name ^ (std::get<0>(key) * 0x9E3779B97F4A7C15u)) + static_cast<size_t>(std::get<1>(key)) * 0xD6E8FEB86659FD93u +
             static_cast<size_t>(std::get<3>(key)) + std::get<4>(key);
    }
  };
  std::unordered_map<Key, size_t, Hash> known;
  std::map<std::string, size_t, std::less<>> group_ids;
  for (size_t i = 0; i < run_.ranks.size(); ++i) {
    const Rank& rank = *run_.ranks[i];
    std::map<std::tuple<TextId, TextId, int64_t>, size_t> seen;
    std::map<std::tuple<TextId, std::string_view, int64_t, int64_t>, size_t> places;
    std::unordered_map<TextId, size_t> groups;
    for (const Collective& each : rank.collectives) {
      const auto [group, is_new] = groups.try_emplace(each.group, 0);
      if (is_new) {
        const std::string name(rank.TextOf(each.group));
        const auto [id, is_first] = group_ids.try_emplace(name, groups_.size());
        if (is_first) groups_.emplace_back().name = name;
        group->second = id->second;
        ClusterGroup& made = groups_[id->second];
        made.ranks.push_back(i);
        const auto facts = rank.groups.find(name);
        if (made.facts.ranks.empty() && facts != rank.groups.end()) made.facts = facts->second;
      }
      const std::string_view name = rank.TextOf(each.name);
      if (each.p2p || IsSendOrReceive(name)) groups_[group->second].p2p = true;
      const auto [same, number] = order.Of(rank, each);
      const size_t repeat = seen[{each.group, each.name, each.step}]++;
      const size_t place = places[{each.group, same, each.step, number}]++;
      const auto [op, is_first] = known.try_emplace({group->second, each.step, same, number, place}, operations_.size());
      if (is_first) operations_.push_back({group->second, name, rank.TextOf(each.type), each.step, repeat, {}});
      operations_[op->second].ranks.push_back({i, &each});
    }
  }
  std::ranges::stable_sort(operations_, [](const ClusterOp& a, const ClusterOp& b) { return std::pair(a.group, a.step) < std::pair(b.group, b.step); });
}

void Cluster::FindPipelines() {
  Joined joined(run_.ranks.size());
  for (const ClusterGroup& group : groups_) {
    if (group.p2p) joined.Join(group.ranks);
  }
  pipelines_ = joined.All(2);
}

void Cluster::FindStages() {
  if (!pipelines_.empty()) {
    // In how many p2p groups two ranks of a group are both.
    std::vector<std::vector<size_t>> p2p_of(run_.ranks.size());
    for (size_t g = 0; g < groups_.size(); ++g) {
      if (!groups_[g].p2p) continue;
      for (const size_t rank : groups_[g].ranks) p2p_of[rank].push_back(g);
    }
    Joined joined(run_.ranks.size());
    for (const ClusterGroup& group : groups_) {
      if (group.p2p) continue;
      std::vector<size_t> p2p;
      for (const size_t rank : group.ranks) p2p.insert(p2p.end(), p2p_of[rank].begin(), p2p_of[rank].end());
      std::ranges::sort(p2p);
      if (std::ranges::adjacent_find(p2p) == p2p.end()) joined.Join(group.ranks);
    }
    stages_ = joined.All(1);
    // A rank that neither shares work nor sends is of no pipeline.
    std::erase_if(stages_, [&p2p_of](const std::vector<size_t>& stage) { return stage.size() == 1 && p2p_of[stage.front()].empty(); });
  } else {
    std::map<int64_t, std::vector<size_t>> by_index;
    for (size_t i = 0; i < run_.ranks.size(); ++i) {
      if (const auto indexes = IndexesOf(i)) by_index[(*indexes)[1]].push_back(i);
    }
    if (by_index.size() > 1) {
      for (auto& [index, ranks] : by_index) stages_.push_back(std::move(ranks));
    }
  }
  for (size_t stage = 0; stage < stages_.size(); ++stage) {
    for (const size_t rank : stages_[stage]) stage_of_[rank] = stage;
  }
}

std::string_view WithoutNumbers(std::string_view name) {
  std::string_view rest = name;
  for (int i = 0; i < 2; ++i) {
    const size_t at = rest.rfind('_');
    if (at == std::string_view::npos || at + 1 == rest.size()) return name;
    if (rest.find_first_not_of("0123456789", at + 1) != std::string_view::npos) return name;
    rest = rest.substr(0, at);
  }
  return rest;
}

std::string RankName(const Rank& rank) {
  const std::string name = rank.rank ? fmt::format("rank {}", *rank.rank) : fmt::format("device {}", rank.device.value_or(0));
  return rank.host.empty() ? name : fmt::format("{} on {}", name, rank.host);
}

}  // namespace profd::analysis
