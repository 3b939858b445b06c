#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <map>

#include "analysis/checks/places.h"
#include "base/text.h"

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
    Hint{"argmin", {"ArgMin: CANN 7.0.RC1 and later have it on the AI Core: update the toolkit if it is older.", "ArgMin：CANN 7.0.RC1 及以后版本可在 AI Core 上运行：若版本更早，请升级 toolkit。"}},
};

// `words`: separated by blanks.
bool HasWord(std::string_view words, std::string_view word) { return fmt::format(" {} ", words).find(fmt::format(" {} ", word)) != std::string::npos; }

bool IsFor(const Hint& hint, std::string_view type) { return HasWord(hint.types, LowerCase(type)); }

// Types that the AI Core of a CANN version has, by operator type in lower case (analysis 1.5). Versions that are in no rule
// have none.
struct TypeRule {
  std::string_view versions;
  std::string_view operators;  // empty: all that no rule of the version names, nor kWithoutRule
  std::string_view inputs;
  std::string_view outputs = {};  // empty: those of inputs
};
constexpr std::string_view kOld = "7.0.RC1";
constexpr std::string_view kNewer = "7.0.0 8.0.RC1";
constexpr std::string_view kWithoutRule = "cast tensorequal equal nonzero mul";
constexpr std::array kTypeRules = {
    TypeRule{kOld, "", "float float32 float16 bool int32 uint32 int64 uint64 int8 uint8 int16 uint16 dt_bf16"},
    TypeRule{kOld, "cast", "float float32 float16 bool int32 uint32 int64 uint64 uint8 dt_bf16"},
    TypeRule{kOld, "tensorequal", "float float32 float16 bool int32 int8 uint8", "bool"},
    TypeRule{kOld, "equal", "float float32 float16 bool int32 int64 int8 uint8", "bool"},
    TypeRule{kOld, "nonzero", "float16 bool dt_bf16", "int64"},
    TypeRule{kOld, "mul", "float float32 float16 bool int32 uint32 int64 uint64 int8 uint8 dt_bf16"},
    TypeRule{kNewer, "", "float float32 float16 dt_bf16 float64 bool int32 int64 int8 uint8 int16 complex64 complex128"},
    TypeRule{kNewer, "cast", "float float32 float16 bool int32 uint32 int64 uint64 uint8 dt_bf16"},
    TypeRule{kNewer, "tensorequal", "float float32 float16 dt_bf16 float64 bool int32 int8 uint8", "bool"},
    TypeRule{kNewer, "equal", "float float32 float16 dt_bf16 float64 bool int32 int64 int8 uint8", "bool"},
    TypeRule{kNewer, "mul", "float float32 float16 dt_bf16 float64 bool int32 int64 int8 uint8 complex64"},
};

// `advice_on`: on a type of the list that is none of the known ones.
template <class AdviceOn>
void AddUnknown(std::string_view list, std::string_view known, const AdviceOn& advice_on, Finding* finding) {
  for (std::string_view type; NextPart(&list, ';', &type);) {
    if (type.empty() || type == "N/A" || HasWord(known, LowerCase(type))) continue;
    const TranslatedText advice = advice_on(type);
    if (std::ranges::find(finding->advice, advice) == finding->advice.end()) finding->advice.push_back(advice);
  }
}

using Types = std::pair<TextId, TextId>;  // of inputs and outputs

std::vector<Types> TypesOf(const Operator& op) {
  std::vector<Types> types = {{op.input_types, op.output_types}};
  types.insert(types.end(), op.other_types.begin(), op.other_types.end());
  return types;
}

// Those of an operator's inputs and outputs that its version has not on the AI Core; each once.
void AddTypes(const Rank& rank, const Operator& op, const Types& types, Finding* finding) {
  const std::string name = LowerCase(rank.TextOf(op.type));
  const auto is_for = [&](const TypeRule& rule) {
    return HasWord(rule.versions, rank.cann_version) && (rule.operators == name || (rule.operators.empty() && !HasWord(kWithoutRule, name)));
  };
  const auto* const rule = std::ranges::find_if(kTypeRules, is_for);
  if (rank.cann_version.empty() || rule == kTypeRules.end()) return;
  const std::string_view outputs = rule->outputs.empty() ? rule->inputs : rule->outputs;
  AddUnknown(rank.TextOf(types.first), rule->inputs, [&](std::string_view type) {
    return Translate({"{0}: of {1}, CANN {2} may compute it on the AI CPU only; try {3}.", "{0}：CANN {2} 对 {1} 可能只能在 AI CPU 上计算；可尝试 {3}。"},
                     rank.TextOf(op.type), type, rank.cann_version, rule->inputs);
  }, finding);
  AddUnknown(rank.TextOf(types.second), outputs, [&](std::string_view type) {
    return Translate({"{0}: with an output of {1}, CANN {2} may compute it on the AI CPU only; try {3}.", "{0}：输出为 {1} 时，CANN {2} 可能只能在 AI CPU 上计算；可尝试 {3}。"},
                     rank.TextOf(op.type), type, rank.cann_version, outputs);
  }, finding);
}

}  // namespace

std::optional<Finding> CheckAiCpu(const CheckInput& input) {
  const Rank& rank = input.rank;
  int64_t all_ns = rank.communication_sum_ns;
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
    if (rank.TextOf(rank.operators[static_cast<size_t>(each.op)].core) != kAiCpuCore) continue;
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
  finding.evidence = Translate({"{:operator} ran {:.3f} ms on the AI CPU, {:.1f} % of the time of all tasks", "{} 个算子在 AI CPU 上运行 {:.3f} ms，占全部任务耗时的 {:.1f} %"}, Counted{by_operator.size()}, cpu_ms,
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
    for (const Types& types : TypesOf(op)) any_double = any_double || rank.TextOf(types.first).find("DOUBLE") != std::string_view::npos;
    finding.rows.push_back({rank.TextOf(op.type), rank.TextOf(op.name), by_operator[number].first, Ms(-minus_ns), rank.TextOf(op.input_types)});
  }
  std::vector<uint32_t> executions;
  executions.reserve(order.size());
  for (const auto& [minus_ns, number] : order) executions.push_back(first_of[number]);
  for (const std::string_view stack : StacksOfLaunches(rank, executions)) {
    if (!stack.empty()) finding.stacks.emplace_back(stack);
  }
  if (any_double) finding.advice.emplace_back(Text("Some take DOUBLE, which only the AI CPU computes: use float.", "部分算子的输入为 DOUBLE，只能在 AI CPU 上计算：请改用 float。"));
  for (const auto& [minus_ns, number] : order) {
    const Operator& op = rank.operators[static_cast<size_t>(number)];
    for (const Types& types : TypesOf(op)) AddTypes(rank, op, types, &finding);
  }
  for (const Hint& hint : kHints) {
    const bool wanted = std::ranges::any_of(order, [&](const auto& each) { return IsFor(hint, rank.TextOf(rank.operators[static_cast<size_t>(each.second)].type)); });
    if (wanted) finding.advice.emplace_back(hint.advice);
  }
  finding.at_ns = first_ns;
  return finding;
}

}  // namespace profd::analysis
