#include <algorithm>
#include <limits>
#include <map>

#include "analysis/checks/check.h"

namespace profd::analysis {
namespace {

struct Times {
  double total_us = 0;
  double most_us = 0;
  double least_us = std::numeric_limits<double>::infinity();
  uint64_t calls = 0;
  double Mean() const { return calls == 0 ? 0 : total_us / static_cast<double>(calls); }
};
using Kernels = std::map<std::pair<std::string, std::string>, Times>;  // by type and core

Kernels KernelsOf(const std::vector<const Rank*>& ranks) {
  Kernels kernels;
  for (const Rank* rank : ranks) {
    for (const Execution& each : rank->executions) {
      const Operator& op = rank->operators[static_cast<size_t>(each.op)];
      Times& times = kernels[{std::string(rank->TextOf(op.type)), std::string(rank->TextOf(op.core))}];
      const double us = static_cast<double>(each.end_ns - each.start_ns) / 1000;
      times.total_us += us;
      times.most_us = std::max(times.most_us, us);
      times.least_us = std::min(times.least_us, us);
      ++times.calls;
    }
  }
  return kernels;
}

// `steps`: those of all ranks of mine, divided by those of the other.
Json RowOf(const std::pair<std::string, std::string>& key, const Times& mine, const Times& other, double steps) {
  Json row = {key.first, key.second};
  for (const Times* times : {&mine, &other}) {
    row.push_back(times->total_us);
    row.push_back(times->Mean());
    row.push_back(times->most_us);
    row.push_back(times->calls == 0 ? 0 : times->least_us);
    row.push_back(times->calls);
  }
  row.push_back(RatioOf(mine.total_us, other.total_us * steps));
  row.push_back(RatioOf(mine.Mean(), other.Mean()));
  return row;
}

}  // namespace

std::optional<Finding> CheckKernelCompare(const CheckInput& input) {
  const Sides sides = SidesOf(input, [](const Rank& rank) { return !rank.executions.empty(); });
  const Kernels mine = KernelsOf(sides.mine);
  const Kernels other = KernelsOf(sides.other);
  if (mine.empty() || other.empty()) return std::nullopt;
  Kernels all = mine;
  all.insert(other.begin(), other.end());
  Finding finding;
  finding.title = Text("Operators by type, beside the other", "按类型对比计算算子");
  finding.columns = {"type", "core", "total_us", "mean_us", "max_us", "min_us", "calls", "baseline_total_us", "baseline_mean_us", "baseline_max_us",
                     "baseline_min_us", "baseline_calls", "total_ratio", "mean_ratio"};
  double slower_us = 0;  // of a step and rank
  std::vector<std::pair<double, Json>> rows;
  for (const auto& [key, unused] : all) {
    const auto find = [&key = key](const Kernels& kernels) { return kernels.contains(key) ? kernels.at(key) : Times(); };
    const Times a = find(mine);
    const Times b = find(other);
    slower_us += std::max(0.0, a.total_us / sides.mine_per - b.total_us / sides.other_per);
    rows.emplace_back(b.total_us == 0 ? std::numeric_limits<double>::infinity() : a.total_us / b.total_us, RowOf(key, a, b, sides.mine_per / sides.other_per));
  }
  std::ranges::stable_sort(rows, std::ranges::greater(), &std::pair<double, Json>::first);
  for (auto& [ratio, row] : rows) finding.rows.push_back(std::move(row));
  finding.cost_ms = ComparedCost(input, sides, slower_us / 1000);
  finding.evidence = sides.of_steps
                         ? Translate({"{} beside {}: what is slower takes {:.3f} ms more of a step and rank", "{} 与 {} 对比：变慢的算子使每个 rank 的每个 step 多耗时 {:.3f} ms"}, input.compared_name,
                                     input.compared_with_name, slower_us / 1000)
                         : Translate({"{} beside {}: what is slower takes {:.3f} ms more of all that a rank recorded", "{} 与 {} 对比：变慢的算子使每个 rank 的全部采集多耗时 {:.3f} ms"}, input.compared_name,
                                     input.compared_with_name, slower_us / 1000);
  return finding;
}

}  // namespace profd::analysis
