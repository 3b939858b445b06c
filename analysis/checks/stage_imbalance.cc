#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <numeric>

#include "analysis/checks/check.h"
#include "analysis/views/views.h"

namespace profd::analysis {
namespace {

// Ranks that send to each other are stages of one pipeline.
class Pipelines {
 public:
  explicit Pipelines(const Run& run) : parent_(run.ranks.size()) {
    std::iota(parent_.begin(), parent_.end(), size_t{0});
    std::map<std::string, size_t, std::less<>> first;  // rank by group
    for (size_t i = 0; i < run.ranks.size(); ++i) {
      const Rank& rank = *run.ranks[i];
      for (const Collective& each : rank.collectives) {
        const std::string_view name = rank.TextOf(each.name);
        if (each.group == kNoText || (!name.starts_with("hcom_send") && !name.starts_with("hcom_receive"))) continue;
        const auto [it, is_new] = first.try_emplace(std::string(rank.TextOf(each.group)), i);
        if (!is_new) parent_[RootOf(i)] = RootOf(it->second);
      }
    }
  }
  // Those of more than one rank.
  std::vector<std::vector<size_t>> All() {
    std::map<size_t, std::vector<size_t>> by_root;
    for (size_t i = 0; i < parent_.size(); ++i) by_root[RootOf(i)].push_back(i);
    std::vector<std::vector<size_t>> all;
    for (auto& [root, ranks] : by_root) {
      if (ranks.size() > 1) all.push_back(std::move(ranks));
    }
    return all;
  }

 private:
  size_t RootOf(size_t i) {
    while (parent_[i] != i) i = parent_[i] = parent_[parent_[i]];
    return i;
  }
  std::vector<size_t> parent_;
};

// Of a step, on average.
double ComputingMs(const Rank& rank) {
  const std::map<int64_t, Shares> shares = StepSharesOf(rank);
  double ms = 0;
  for (const auto& [step, of] : shares) ms += of.computing / static_cast<double>(shares.size());
  if (!shares.empty()) return ms;
  const Json overall = OverallView(rank);
  return overall.is_object() ? PerStep(rank, overall["computing_ms"].get<double>()) : 0;
}

}  // namespace

std::optional<Finding> CheckStageImbalance(const CheckInput& input) {
  const Run& run = input.run;
  if (run.ranks.size() < 2) return std::nullopt;
  Finding finding;
  finding.columns = {"pipeline", "rank", "computing_ms", "beside_mean"};
  size_t number = 0;
  for (const std::vector<size_t>& ranks : Pipelines(run).All()) {
    std::vector<double> ms(ranks.size());
    std::ranges::transform(ranks, ms.begin(), [&run](size_t i) { return ComputingMs(*run.ranks[i]); });
    const double mean = std::accumulate(ms.begin(), ms.end(), 0.0) / static_cast<double>(ms.size());
    const auto [least, most] = std::ranges::minmax_element(ms);
    const size_t pipeline = number++;
    if (mean <= 0 || (*most - *least) / mean <= input.limits.At("stage_imbalance", "difference")) continue;
    finding.cost_ms = std::max(finding.cost_ms.value_or(0), *most - mean);
    finding.evidence += fmt::format("{}Pipeline {}: {} computes {:.3f} ms of a step, the mean of its {} ranks is {:.3f} ms", finding.evidence.empty() ? "" : ". ", pipeline,
                                    NameOf(*run.ranks[ranks[static_cast<size_t>(most - ms.begin())]]), *most, ms.size(), mean);
    for (size_t k = 0; k < ranks.size(); ++k) finding.rows.push_back({pipeline, OrNull(run.ranks[ranks[k]]->rank), ms[k], ms[k] / mean - 1});
  }
  if (finding.rows.empty()) return std::nullopt;
  finding.priority = Priority::kHigh;
  finding.title = "Stages of a pipeline have different amounts of work";
  finding.advice = {"Move layers from the slowest stage to others; embedding and loss count as layers, too."};
  return finding;
}

}  // namespace profd::analysis
