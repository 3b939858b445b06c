#include <algorithm>

#include "analysis/checks/check.h"
#include "analysis/cluster/cost.h"
#include "analysis/views/views.h"

namespace profd::analysis {

std::optional<Finding> CheckExpertImbalance(const CheckInput& input) {
  const Cluster& cluster = *input.cluster;
  Finding finding;
  finding.columns = {"group", "rank", "host", "size_mb", "transit_ms", "beside_mean"};
  const std::vector<ExpertLoad> loads = ExpertLoadsOf(cluster);
  for (auto begin = loads.begin(); begin != loads.end();) {
    const auto end = std::find_if(begin, loads.end(), [&begin](const ExpertLoad& each) { return each.group != begin->group; });
    if (begin->beside_mean > input.limits.At("expert_imbalance", "difference")) {
      double mean_ms = 0;
      for (auto each = begin; each != end; ++each) mean_ms += each->transit_ms / static_cast<double>(end - begin);
      const double cost = std::max(begin->transit_ms - mean_ms, 0.0);
      if (!finding.cost_ms || cost > *finding.cost_ms) {
        finding.cost_ms = cost;
        finding.priority = PriorityOf(cost, MeanStepMsOf(cluster.At(begin->rank)), input.limits);
      }
      Join(&finding.evidence, kBetweenSentences, Translate({"Group {}: {} exchanges {:.3f} MB of a step with the others, {:.1f} % more than a rank on average", "通信组 {}：{} 每个 step 与其他 rank 交换 {:.3f} MB，比平均多 {:.1f} %"},
                                                    cluster.groups()[begin->group].label(), NameOf(cluster.At(begin->rank)), begin->size_mb, begin->beside_mean * 100));
      for (auto each = begin; each != end; ++each) {
        finding.rows.push_back({cluster.groups()[each->group].label(), OrNull(cluster.At(each->rank).rank), HostOf(cluster.At(each->rank)), each->size_mb, each->transit_ms,
                                each->beside_mean});
      }
    }
    begin = end;
  }
  if (finding.rows.empty()) return std::nullopt;
  finding.title = Text("Experts have different amounts of work", "各专家负载不均");
  finding.advice = {Text("Balance the experts: a loss for balance, a limit of tokens for each expert, or other places for the busy ones.", "均衡各专家：使用负载均衡损失、限制每个专家的 token 数，或调整繁忙专家的位置。")};
  return finding;
}

}  // namespace profd::analysis
