#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <tuple>

#include "analysis/checks/check.h"
#include "analysis/views/views.h"

namespace profd::analysis {
namespace {

struct OnRank {
  const Rank* rank = nullptr;
  const Collective* op = nullptr;
  double size_mb = 0;
  double time_ms = 0;
};
// By group and name, and which of them it is on its rank.
using Operations = std::map<std::tuple<std::string, std::string, size_t>, std::vector<OnRank>>;

Operations OperationsOf(const Run& run) {
  Operations operations;
  for (const auto& rank : run.ranks) {
    std::map<std::pair<TextId, TextId>, size_t> seen;
    for (const Collective& each : rank->collectives) {
      OnRank here{rank.get(), &each};
      for (const Transport& part : each.transports) {
        if (part.name != "RDMA") continue;
        here.size_mb += part.size_mb;
        here.time_ms += part.time_ms;
      }
      const size_t number = seen[{each.group, each.name}]++;
      operations[{std::string(rank->TextOf(each.group)), std::string(rank->TextOf(each.name)), number}].push_back(here);
    }
  }
  return operations;
}

}  // namespace

std::optional<Finding> CheckRetransmission(const CheckInput& input) {
  if (input.run.ranks.size() < 2) return std::nullopt;
  const double limit = input.limits.At("retransmission", "least_ms");
  Finding finding;
  for (const auto& [key, ranks] : OperationsOf(input.run)) {
    // Where it was short on one rank, the others were only waiting for that one.
    const double shortest = std::ranges::min(ranks, {}, [](const OnRank& each) { return each.op->elapse_ms; }).op->elapse_ms;
    const double most = std::ranges::max(ranks, {}, &OnRank::time_ms).time_ms;
    if (shortest < limit || most <= limit) continue;
    for (const OnRank& each : ranks) {
      if (each.time_ms <= limit) continue;
      finding.cost_ms = std::max(finding.cost_ms.value_or(0), each.time_ms);
      finding.rows.push_back({std::get<0>(key), std::get<1>(key), OrNull(each.rank->rank), each.size_mb, each.time_ms, each.size_mb / each.time_ms});
    }
  }
  if (finding.rows.empty()) return std::nullopt;
  finding.priority = Priority::kHigh;
  finding.title = Text("RDMA repeats packets", "RDMA 重传");
  finding.evidence = Say({"RDMA took more than {:.0f} ms in operations that were as long on every rank, on {} ranks and operations", "在各 rank 耗时相当的通信算子中，RDMA 传输超过 {:.0f} ms，共 {} 处"}, limit,
                         finding.rows.size());
  finding.advice = {Text("Look at the counters of the ports (retransmissions, PFC) and at the settings of switch and server: profctl health, profctl show.", "查看端口计数器（重传、PFC）以及交换机和服务器的网络配置：profctl health、profctl show。")};
  finding.columns = {"group", "operation", "rank", "rdma_size_mb", "rdma_time_ms", "rdma_bandwidth_gb_s"};
  return finding;
}

}  // namespace profd::analysis
