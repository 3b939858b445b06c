#include <algorithm>

#include "analysis/checks/check.h"
#include "analysis/times.h"
#include "base/text.h"

namespace profd::analysis {
namespace {

struct Slow {
  const Collective* op = nullptr;
  double gb_s = 0;
};

}  // namespace

std::optional<Finding> CheckBandwidthContention(const CheckInput& input) {
  const Rank& rank = input.rank;
  std::vector<bool> multiplies(rank.operators.size());
  for (size_t i = 0; i < rank.operators.size(); ++i) multiplies[i] = LowerCase(rank.TextOf(rank.operators[i].type)).find("matmul") != std::string::npos;
  std::vector<Interval> kernels;
  for (const Execution& each : rank.executions) {
    if (multiplies[static_cast<size_t>(each.op)]) kernels.push_back({each.start_ns, each.end_ns});
  }
  std::ranges::sort(kernels, {}, &Interval::start_ns);
  // Where one of the earlier ones is longer than the next.
  for (size_t i = 1; i < kernels.size(); ++i) kernels[i].end_ns = std::max(kernels[i].end_ns, kernels[i - 1].end_ns);
  const double limit = input.limits.At("bandwidth_contention", "sdma_gb_s");
  std::vector<Slow> found;
  for (const Collective& each : rank.collectives) {
    const auto sdma = std::ranges::find(each.transports, "SDMA", &Transport::name);
    if (sdma == each.transports.end() || sdma->size_mb <= 0 || sdma->time_ms <= 0) continue;
    const double gb_s = sdma->size_mb / sdma->time_ms;
    const int64_t end_ns = EndOf(each.start_ns, each.elapse_ms);
    const auto after = std::ranges::lower_bound(kernels, end_ns, {}, &Interval::start_ns);
    const bool beside = after != kernels.begin() && std::prev(after)->end_ns > each.start_ns;
    if (beside && !Reaches(gb_s, limit)) found.push_back({&each, gb_s});
  }
  if (found.empty()) return std::nullopt;
  std::ranges::stable_sort(found, {}, &Slow::gb_s);
  Finding finding;
  finding.priority = Priority::kLow;
  finding.title = Text("Communication beside matrix multiplications is slow", "与矩阵乘并行的通信带宽偏低");
  finding.evidence = Translate({"{:operation} over SDMA ran beside a matrix multiplication at less than {} GB/s", "{} 个 SDMA 通信算子与矩阵乘并行时的带宽低于 {} GB/s"}, Counted{found.size()}, limit);
  finding.advice = {Text("Compare with a run in which they do not overlap: where the step is faster, keep it so.", "与关闭计算通信掩盖的训练对比：若 step 更快则保持关闭。")};
  finding.columns = {"name", "duration_ms", "bandwidth_gb_s"};
  for (const Slow& each : found) finding.rows.push_back({rank.TextOf(each.op->name), each.op->elapse_ms, each.gb_s});
  finding.at_ns = found.front().op->start_ns;
  return finding;
}

}  // namespace profd::analysis
