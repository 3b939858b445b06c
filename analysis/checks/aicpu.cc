#include <fmt/format.h>

#include <algorithm>
#include <map>

#include "analysis/checks/check.h"

namespace profd::analysis {

std::optional<Finding> CheckAiCpu(const CheckInput& input) {
  const Rank& rank = input.rank;
  int64_t all_ns = 0;
  int64_t cpu_ns = 0;
  int64_t longest_ns = 0;
  std::map<int32_t, std::pair<uint64_t, int64_t>> by_operator;  // calls and time
  int64_t first_ns = INT64_MAX;
  for (const Execution& each : rank.executions) {
    const int64_t ns = each.end_ns - each.start_ns;
    all_ns += ns;
    longest_ns = std::max(longest_ns, ns);
    if (rank.TextOf(rank.operators[static_cast<size_t>(each.op)].core) != "AI_CPU") continue;
    cpu_ns += ns;
    first_ns = std::min(first_ns, each.start_ns);
    auto& [calls, sum] = by_operator[each.op];
    ++calls;
    sum += ns;
  }
  if (by_operator.empty() || static_cast<double>(longest_ns) / 1000 < input.limits.At("aicpu", "longest_us")) return std::nullopt;
  const double all_ms = Ms(all_ns);
  const double cpu_ms = Ms(cpu_ns);
  Finding finding;
  finding.priority = PriorityOf(cpu_ms, all_ms, input.limits);
  finding.cost_ms = PerStep(rank, cpu_ms);
  finding.title = "Operators on the AI CPU";
  finding.evidence = fmt::format("{} operators ran {:.3f} ms on the AI CPU, {:.1f} % of all operators' time", by_operator.size(), cpu_ms, all_ms > 0 ? cpu_ms / all_ms * 100 : 0);
  finding.advice = {"Replace them by operators that the AI Core has, or use types that it has."};
  finding.columns = {"type", "name", "calls", "total_ms", "input_types"};
  std::vector<std::pair<int64_t, int32_t>> order;
  for (const auto& [op, sum] : by_operator) order.emplace_back(-sum.second, op);
  std::ranges::sort(order);
  bool any_double = false;
  for (const auto& [minus_ns, number] : order) {
    const Operator& op = rank.operators[static_cast<size_t>(number)];
    any_double = any_double || rank.TextOf(op.input_types).find("DOUBLE") != std::string_view::npos;
    finding.rows.push_back({rank.TextOf(op.type), rank.TextOf(op.name), by_operator[number].first, Ms(-minus_ns), rank.TextOf(op.input_types)});
  }
  if (any_double) finding.advice.emplace_back("Some take DOUBLE, which only the AI CPU computes: use float.");
  finding.at_ns = first_ns;
  return finding;
}

}  // namespace profd::analysis
