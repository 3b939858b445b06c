#include <algorithm>

#include "analysis/checks/check.h"
#include "analysis/views/views.h"

namespace profd::analysis {

std::optional<Finding> CheckRetransmission(const CheckInput& input) {
  if (input.run.ranks.size() < 2) return std::nullopt;
  const double limit = input.limits.At("retransmission", "least_ms");
  Finding finding;
  for (const ClusterOp& op : input.cluster->operations()) {
    // Where it was short on one rank, the others were only waiting for that one.
    const double shortest = std::ranges::min(op.ranks, {}, [](const OnRank& each) { return each.op->elapse_ms; }).op->elapse_ms;
    if (shortest < limit) continue;
    for (const OnRank& each : op.ranks) {
      Transport rdma;
      for (const Transport& part : each.op->transports) {
        if (part.name == "RDMA") rdma.Add(part);
      }
      if (rdma.time_ms <= limit) continue;
      finding.cost_ms = std::max(finding.cost_ms.value_or(0), rdma.time_ms);
      const Rank& rank = input.cluster->At(each.rank);
      finding.rows.push_back({input.cluster->groups()[op.group].name, op.name, OrNull(rank.rank), rdma.size_mb, rdma.time_ms, SpeedOf(rdma),
                              StepOrNull(op.step), HostOf(rank)});
    }
  }
  if (finding.rows.empty()) return std::nullopt;
  finding.priority = Priority::kHigh;
  finding.title = Text("RDMA repeats packets", "RDMA 重传");
  finding.evidence = Translate({"RDMA took more than {:.0f} ms in operations that were as long on every rank, on {:rank and operation|ranks and operations}", "在各 rank 耗时相当的通信算子中，RDMA 传输超过 {:.0f} ms，共 {} 处"}, limit,
                         Counted{finding.rows.size()});
  finding.advice = {Text("Look at the counters of the ports (retransmissions, PFC) and at the settings of switch and server: profctl health, profctl show.", "查看端口计数器（重传、PFC）以及交换机和服务器的网络配置：profctl health、profctl show。")};
  finding.columns = {"group", "operation", "rank", "rdma_size_mb", "rdma_time_ms", "rdma_bandwidth_gb_s", "step", "host"};
  return finding;
}

}  // namespace profd::analysis
