#include <algorithm>
#include <numeric>

#include "analysis/checks/check.h"
#include "analysis/cluster/cost.h"
#include "analysis/views/views.h"

namespace profd::analysis {

std::optional<Finding> CheckWaitForRank(const CheckInput& input) {
  const Cluster& cluster = *input.cluster;
  if (input.run.ranks.size() < 2) return std::nullopt;
  const std::vector<RankWaits> waits = WaitsByRank(cluster);
  const auto most = std::ranges::max_element(waits, {}, &RankWaits::others_wait_ms);
  const double mean = std::accumulate(waits.begin(), waits.end(), 0.0, [](double sum, const RankWaits& each) { return sum + each.others_wait_ms; }) /
                      static_cast<double>(waits.size());
  const auto last = static_cast<size_t>(most - waits.begin());
  const double step_ms = MeanStepMsOf(cluster.At(last));
  if (step_ms <= 0 || most->others_wait_ms < input.limits.At("wait_for_rank", "share") * step_ms) return std::nullopt;
  if (most->others_wait_ms < input.limits.At("wait_for_rank", "beside_mean") * mean) return std::nullopt;
  Finding finding;
  finding.title = Translate({"The other ranks wait for {}", "其他 rank 在等待 {}"}, NameOf(cluster.At(last)));
  finding.cost_ms = most->others_wait_ms;
  finding.priority = PriorityOf(*finding.cost_ms, step_ms, input.limits);
  finding.evidence = Translate({"{} arrives last at {} of {:operation} of communication; the others wait {:.3f} ms of a step of {:.3f} ms for it, {:.3f} ms for a rank on average",
                          "{} 在 {} / {} 个通信算子中最后到达；其他 rank 每个 step 为它等待 {:.3f} ms（step 时长 {:.3f} ms），平均每个 rank {:.3f} ms"},
                         NameOf(cluster.At(last)), most->last, Counted{most->operations}, most->others_wait_ms, step_ms, mean);
  finding.advice = {Text("Look at what that rank does before it communicates: more computing (see slow_rank), a slower host, or data that arrives late.",
                         "查看该 rank 通信之前做了什么：计算更多（见 slow_rank）、主机更慢，或数据来得晚。")};
  finding.columns = {"rank", "host", "others_wait_ms", "waits_ms", "last_of", "operations"};
  std::vector<size_t> order(waits.size());
  std::iota(order.begin(), order.end(), size_t{0});
  std::ranges::stable_sort(order, std::greater<>(), [&waits](size_t i) { return waits[i].others_wait_ms; });
  for (const size_t i : order) {
    if (waits[i].operations == 0) continue;
    finding.rows.push_back({OrNull(cluster.At(i).rank), HostOf(cluster.At(i)), waits[i].others_wait_ms, waits[i].waits_ms, waits[i].last, waits[i].operations});
  }
  return finding;
}

}  // namespace profd::analysis
