#include <algorithm>
#include <numeric>

#include "analysis/checks/check.h"
#include "analysis/cluster/cost.h"
#include "analysis/views/views.h"

namespace profd::analysis {
namespace {

// Of a step, on average.
double ComputingMs(const Rank& rank) {
  const auto step = MeanStepOf(rank);
  return step ? step->computing : 0;
}

}  // namespace

std::optional<Finding> CheckStageImbalance(const CheckInput& input) {
  const Run& run = input.run;
  if (run.ranks.size() < 2) return std::nullopt;
  Finding finding;
  finding.columns = {"pipeline", "rank", "computing_ms", "beside_mean", "stage", "host"};
  size_t number = 0;
  for (const std::vector<size_t>& ranks : input.cluster->pipelines()) {
    std::vector<double> ms(ranks.size());
    std::ranges::transform(ranks, ms.begin(), [&run](size_t i) { return ComputingMs(*run.ranks[i]); });
    const double mean = std::accumulate(ms.begin(), ms.end(), 0.0) / static_cast<double>(ms.size());
    const auto [least, most] = std::ranges::minmax_element(ms);
    const size_t pipeline = number++;
    if (mean <= 0 || Reaches(input.limits.At("stage_imbalance", "difference"), (*most - *least) / mean)) continue;
    finding.cost_ms = std::max(finding.cost_ms.value_or(0), *most - mean);
    Join(&finding.evidence, kBetweenSentences, Translate({"Pipeline {}: {} computes {:.3f} ms of a step, the mean of its {} ranks is {:.3f} ms", "流水线 {}：{} 每个 step 计算 {:.3f} ms，其 {} 个 rank 的平均值为 {:.3f} ms"}, pipeline,
                                                  NameOf(*run.ranks[ranks[static_cast<size_t>(most - ms.begin())]]), *most, ms.size(), mean));
    for (size_t k = 0; k < ranks.size(); ++k) {
      const Rank& rank = *run.ranks[ranks[k]];
      finding.rows.push_back({pipeline, OrNull(rank.rank), ms[k], ms[k] / mean - 1, OrNull(input.cluster->StageOf(ranks[k])), HostOf(rank)});
    }
  }
  if (finding.rows.empty()) return std::nullopt;
  finding.priority = Priority::kHigh;
  finding.title = Text("Stages of a pipeline have different amounts of work", "流水线各 stage 负载不均");
  finding.advice = {Text("Move layers from the slowest stage to others; embedding and loss count as layers, too.", "将最慢 stage 的层移到其他 stage；embedding 与 loss 也算作层。")};
  return finding;
}

}  // namespace profd::analysis
