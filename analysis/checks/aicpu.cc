#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <map>

#include "analysis/checks/places.h"

namespace profd::analysis {
namespace {

// Advice for operators of their own (analysis 1.5), by type in lower case.
struct Hint {
  std::string_view types;  // separated by blanks
  Text advice;
};
const std::array kHints = {
    Hint{"index", {"Index: use an equivalent that the AI Core has, such as torch.index_select or torch.where with a mask.", "Index：改用 AI Core 支持的等价写法，例如 torch.index_select，或用掩码配合 torch.where。"}},
    Hint{"indexput indexputv2", {"IndexPut: use an equivalent that the AI Core has, such as torch.where with a mask.", "IndexPut：改用 AI Core 支持的等价写法，例如用掩码配合 torch.where。"}},
    Hint{"nonzero", {"NonZero: use an equivalent with a fixed shape, such as a mask that is multiplied or given to torch.where.", "NonZero：改用 shape 固定的等价写法，例如掩码相乘或将掩码传给 torch.where。"}},
    Hint{"argmin", {"ArgMin: CANN 7.0.RC1 and later have it on the AI Core: update the toolkit.", "ArgMin：CANN 7.0.RC1 及以后版本可在 AI Core 上运行：请升级 toolkit。"}},
};

bool IsFor(const Hint& hint, std::string_view type) {
  std::string lower(type);
  std::ranges::transform(lower, lower.begin(), [](char c) { return c >= 'A' && c <= 'Z' ? static_cast<char>(c + 32) : c; });
  return fmt::format(" {} ", hint.types).find(fmt::format(" {} ", lower)) != std::string::npos;
}

}  // namespace

std::optional<Finding> CheckAiCpu(const CheckInput& input) {
  const Rank& rank = input.rank;
  int64_t all_ns = 0;
  int64_t cpu_ns = 0;
  int64_t longest_ns = rank.longest_communication_ns;
  std::map<int32_t, std::pair<uint64_t, int64_t>> by_operator;  // calls and time
  std::map<int32_t, uint32_t> first_of;                         // execution
  int64_t first_ns = INT64_MAX;
  for (size_t i = 0; i < rank.executions.size(); ++i) {
    const Execution& each = rank.executions[i];
    const int64_t ns = each.end_ns - each.start_ns;
    all_ns += ns;
    longest_ns = std::max(longest_ns, ns);
    if (rank.TextOf(rank.operators[static_cast<size_t>(each.op)].core) != "AI_CPU") continue;
    cpu_ns += ns;
    first_ns = std::min(first_ns, each.start_ns);
    auto& [calls, sum] = by_operator[each.op];
    ++calls;
    sum += ns;
    first_of.try_emplace(each.op, static_cast<uint32_t>(i));
  }
  if (by_operator.empty() || static_cast<double>(longest_ns) / 1000 < input.limits.At("aicpu", "longest_us")) return std::nullopt;
  const double all_ms = Ms(all_ns);
  const double cpu_ms = Ms(cpu_ns);
  Finding finding;
  finding.priority = PriorityOf(cpu_ms, all_ms, input.limits);
  finding.cost_ms = PerStep(rank, cpu_ms);
  finding.title = Text("Operators on the AI CPU", "在 AI CPU 上运行的算子");
  finding.evidence = Translate({"{} operators ran {:.3f} ms on the AI CPU, {:.1f} % of all operators' time", "{} 个算子在 AI CPU 上运行 {:.3f} ms，占全部算子耗时的 {:.1f} %"}, by_operator.size(), cpu_ms,
                         all_ms > 0 ? cpu_ms / all_ms * 100 : 0.0);
  finding.advice = {Text("Replace them by operators that the AI Core has, or use types that it has.", "替换为 AI Core 支持的算子，或使用其支持的数据类型。")};
  finding.columns = {"type", "name", "calls", "total_ms", "input_types"};
  std::vector<std::pair<int64_t, int32_t>> order;
  order.reserve(by_operator.size());
  for (const auto& [op, sum] : by_operator) order.emplace_back(-sum.second, op);
  std::ranges::sort(order);
  bool any_double = false;
  for (const auto& [minus_ns, number] : order) {
    const Operator& op = rank.operators[static_cast<size_t>(number)];
    any_double = any_double || rank.TextOf(op.input_types).find("DOUBLE") != std::string_view::npos;
    finding.rows.push_back({rank.TextOf(op.type), rank.TextOf(op.name), by_operator[number].first, Ms(-minus_ns), rank.TextOf(op.input_types)});
  }
  std::vector<uint32_t> executions;
  executions.reserve(order.size());
  for (const auto& [minus_ns, number] : order) executions.push_back(first_of[number]);
  for (const std::string_view stack : StacksOfLaunches(rank, executions)) {
    if (!stack.empty()) finding.stacks.emplace_back(stack);
  }
  if (any_double) finding.advice.emplace_back(Text("Some take DOUBLE, which only the AI CPU computes: use float.", "部分算子的输入为 DOUBLE，只能在 AI CPU 上计算：请改用 float。"));
  for (const Hint& hint : kHints) {
    const bool wanted = std::ranges::any_of(order, [&](const auto& each) { return IsFor(hint, rank.TextOf(rank.operators[static_cast<size_t>(each.second)].type)); });
    if (wanted) finding.advice.emplace_back(hint.advice);
  }
  finding.at_ns = first_ns;
  return finding;
}

}  // namespace profd::analysis
