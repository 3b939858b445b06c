#include <algorithm>
#include <map>
#include <utility>

#include "analysis/checks/check.h"

namespace profd::analysis {
namespace {

// So many of the cores are left without work in the last round.
bool LeavesCores(const Rank& rank, std::string_view core, const Execution& each) {
  const int cores = core == "AI_CORE" || rank.vector_cores == 0 ? rank.cube_cores : rank.vector_cores;
  if (cores == 0 || each.blocks == kNoBlocks || (core != "AI_CORE" && core != "AI_VECTOR_CORE" && core != "MIX_AIC")) return false;
  // 0 leaves none of the vector cores half used.
  if (core == "MIX_AIC" && rank.vector_cores > 0 && each.mix_blocks != kNoBlocks && each.mix_blocks % rank.vector_cores == 0) return false;
  return each.blocks % cores != 0;
}

struct Times {
  int64_t ns = 0;
  uint64_t calls = 0;
};

}  // namespace

std::optional<Finding> CheckBlockDim(const CheckInput& input) {
  const Rank& rank = input.rank;
  if (ShapesAreDynamic(rank)) return std::nullopt;
  std::map<std::pair<int32_t, uint16_t>, Times> found;  // by operator and blocks
  int64_t sum_ns = 0;
  for (const Execution& each : rank.executions) {
    const int64_t ns = each.end_ns - each.start_ns;
    if (ns <= 0 || !LeavesCores(rank, rank.TextOf(rank.operators[static_cast<size_t>(each.op)].core), each)) continue;
    Times& times = found[{each.op, each.blocks}];
    times.ns += ns;
    ++times.calls;
    sum_ns += ns;
  }
  if (found.empty()) return std::nullopt;
  std::vector<std::pair<std::pair<int32_t, uint16_t>, Times>> sorted(found.begin(), found.end());
  std::ranges::stable_sort(sorted, std::ranges::greater(), [](const auto& each) { return each.second.ns; });
  Finding finding;
  finding.priority = Priority::kLow;
  finding.title = Text("Operators that leave cores without work", "未用满核数的算子");
  finding.evidence = Translate({"{:operator is|operators are} cut into a number of blocks that is not a multiple of the {} cube or {} vector cores; together {:.3f} ms",
                          "{} 个算子的 block 数不是 {} 个 cube 核或 {} 个 vector 核的整数倍；共 {:.3f} ms"}, Counted{sorted.size()}, rank.cube_cores, rank.vector_cores, Ms(sum_ns));
  finding.advice = {Text("Tune them with AOE, the longest ones first; or choose shapes that cut into multiples of the number of cores.", "从耗时最长的算子开始使用 AOE 调优；或选择可按核数整除切分的 shape。")};
  finding.columns = {"type", "name", "core", "blocks", "calls", "total_ms", "input_shapes"};
  for (const auto& [key, times] : sorted) {
    const Operator& op = rank.operators[static_cast<size_t>(key.first)];
    finding.rows.push_back({rank.TextOf(op.type), rank.TextOf(op.name), rank.TextOf(op.core), key.second, times.calls, Ms(times.ns), rank.TextOf(op.input_shapes)});
  }
  return finding;
}

}  // namespace profd::analysis
