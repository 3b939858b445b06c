#include <algorithm>
#include <limits>
#include <map>
#include <string>

#include "analysis/checks/check.h"

namespace profd::analysis {
namespace {

struct Times {
  int64_t total_ns = 0;
  int64_t self_ns = 0;
  uint64_t calls = 0;
  double MeanMs() const { return calls == 0 ? 0 : Ms(total_ns) / static_cast<double>(calls); }
};
using Apis = std::map<std::string, Times>;

// Operators of the framework, each with and without those it calls; steps are none.
void AddApis(const Rank& rank, Apis* apis) {
  std::map<int32_t, std::vector<const Slice*>> threads;
  for (const Slice& each : rank.slices) {
    if (each.is_operator && !rank.TextOf(each.name).starts_with("ProfilerStep#")) threads[each.lane].push_back(&each);
  }
  for (auto& [lane, calls] : threads) {
    std::ranges::stable_sort(calls, [](const Slice* a, const Slice* b) { return a->start_ns != b->start_ns ? a->start_ns < b->start_ns : a->end_ns > b->end_ns; });
    std::vector<const Slice*> open;
    for (const Slice* call : calls) {
      while (!open.empty() && open.back()->end_ns <= call->start_ns) open.pop_back();
      const int64_t ns = call->end_ns - call->start_ns;
      Times& times = (*apis)[std::string(rank.TextOf(call->name))];
      times.total_ns += ns;
      times.self_ns += ns;
      ++times.calls;
      if (!open.empty()) (*apis)[std::string(rank.TextOf(open.back()->name))].self_ns -= ns;
      open.push_back(call);
    }
  }
}

}  // namespace

std::optional<Finding> CheckApiCompare(const CheckInput& input) {
  Apis mine;
  Apis other;
  const Sides sides = SidesOf(input, [](const Rank& rank) { return std::ranges::any_of(rank.slices, &Slice::is_operator); });
  for (const Rank* rank : sides.mine) AddApis(*rank, &mine);
  for (const Rank* rank : sides.other) AddApis(*rank, &other);
  if (mine.empty() || other.empty()) return std::nullopt;
  Apis all = mine;
  all.insert(other.begin(), other.end());
  Finding finding;
  finding.title = Text("Operators of the framework on the host, beside the other", "框架算子在 Host 侧的耗时对比");
  finding.columns = {"name", "total_ms", "self_ms", "mean_ms", "calls", "baseline_total_ms", "baseline_self_ms", "baseline_mean_ms", "baseline_calls",
                     "total_ratio", "self_ratio", "mean_ratio", "calls_ratio"};
  std::vector<std::pair<double, Json>> rows;
  double slower_ms = 0;  // of a step and rank
  const double steps = sides.mine_per / sides.other_per;
  for (const auto& [name, unused] : all) {
    const auto find = [&key = name](const Apis& apis) { return apis.contains(key) ? apis.at(key) : Times(); };
    const Times a = find(mine);
    const Times b = find(other);
    slower_ms += std::max(0.0, Ms(a.self_ns) / sides.mine_per - Ms(b.self_ns) / sides.other_per);
    Json row = {name};
    for (const Times* times : {&a, &b}) {
      for (const Json& value : {Json(Ms(times->total_ns)), Json(Ms(times->self_ns)), Json(times->MeanMs()), Json(times->calls)}) row.push_back(value);
    }
    for (const Json& ratio : {RatioOf(Ms(a.total_ns), Ms(b.total_ns) * steps), RatioOf(Ms(a.self_ns), Ms(b.self_ns) * steps), RatioOf(a.MeanMs(), b.MeanMs()),
                              RatioOf(static_cast<double>(a.calls), static_cast<double>(b.calls) * steps)}) {
      row.push_back(ratio);
    }
    rows.emplace_back(b.total_ns == 0 ? std::numeric_limits<double>::infinity() : static_cast<double>(a.total_ns) / static_cast<double>(b.total_ns), std::move(row));
  }
  std::ranges::stable_sort(rows, std::ranges::greater(), &std::pair<double, Json>::first);
  for (auto& [ratio, row] : rows) finding.rows.push_back(std::move(row));
  finding.cost_ms = ComparedCost(input, sides, slower_ms);
  finding.evidence = sides.of_steps ? Translate({"{} beside {}: what the host spends more on takes {:.3f} ms more of a step", "{} 与 {} 对比：Host 侧变慢的部分使每个 step 多耗时 {:.3f} ms"},
                                                input.compared_name, input.compared_with_name, slower_ms)
                                    : Translate({"{} beside {}: what the host spends more on takes {:.3f} ms more of all that a rank recorded", "{} 与 {} 对比：Host 侧变慢的部分使每个 rank 的全部采集多耗时 {:.3f} ms"},
                                                input.compared_name, input.compared_with_name, slower_ms);
  finding.advice = {Text("Look at what is called more often, and at what takes longer for the same number of calls.", "关注调用次数变多的 API，以及次数相同但耗时变长的 API。")};
  return finding;
}

}  // namespace profd::analysis
