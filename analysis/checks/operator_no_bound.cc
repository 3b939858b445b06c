#include <algorithm>

#include "analysis/checks/check.h"

namespace profd::analysis {
namespace {

// Whether the ratio counts for its kind of core: a cube core has no vector unit, and the other way round.
bool Counts(std::string_view name) {
  if (name.starts_with("aiv_mac") || name.starts_with("aic_vec")) return false;
  for (const std::string_view unit : {"vec", "mac", "scalar", "mte1", "mte2", "mte3"}) {
    if (name == unit || name.ends_with("_" + std::string(unit))) return true;
  }
  return false;
}

}  // namespace

std::optional<Finding> CheckOperatorNoBound(const CheckInput& input) {
  const Rank& rank = input.rank;
  if (ShapesAreDynamic(rank)) return std::nullopt;  // they come first
  const double limit = input.limits.At("operator_no_bound", "ratio");
  std::vector<bool> unbound(rank.operators.size());
  for (size_t i = 0; i < rank.operators.size(); ++i) {
    const Operator& op = rank.operators[i];
    double most = 0;
    for (size_t k = 0; k < op.ratio_ns.size(); ++k) {
      if (Counts(rank.ratio_names[k])) most = std::max(most, op.Ratio(k));
    }
    unbound[i] = most > 0 && most <= limit;
  }
  std::vector<double> total(rank.operators.size());
  int64_t longest_ns = 0;
  double all_ms = 0;
  for (const Execution& each : rank.executions) {
    const auto op = static_cast<size_t>(each.op);
    if (!unbound[op]) continue;
    const double ms = Ms(each.end_ns - each.start_ns);
    total[op] += ms;
    all_ms += ms;
    longest_ns = std::max(longest_ns, each.end_ns - each.start_ns);
  }
  if (static_cast<double>(longest_ns) / 1000 <= input.limits.At("operator_no_bound", "longest_us")) return std::nullopt;
  std::vector<size_t> order;
  for (size_t i = 0; i < total.size(); ++i) {
    if (total[i] > 0) order.push_back(i);
  }
  std::ranges::stable_sort(order, std::ranges::greater(), [&total](size_t i) { return total[i]; });
  Finding finding;
  finding.priority = Priority::kLow;
  finding.title = Text("Operators that no unit bounds", "无明显瓶颈单元的算子");
  finding.evidence = Translate({"{:operator keeps no unit of its|operators keep no unit of their} core busy for more than {:.0f} % of the time; together {:.3f} ms", "{} 个算子的所有计算单元利用率均不超过 {:.0f} %；共 {:.3f} ms"}, Counted{order.size()}, limit * 100,
                         all_ms);
  finding.advice = {Text("Tune them with AOE, the longest ones first.", "从耗时最长的算子开始使用 AOE 调优。")};
  finding.columns = {"type", "name", "core", "total_ms", "input_shapes"};
  for (const size_t i : order) {
    const Operator& op = rank.operators[i];
    finding.rows.push_back({rank.TextOf(op.type), rank.TextOf(op.name), rank.TextOf(op.core), total[i], rank.TextOf(op.input_shapes)});
  }
  return finding;
}

}  // namespace profd::analysis
