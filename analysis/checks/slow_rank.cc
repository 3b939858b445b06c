#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "analysis/checks/check.h"
#include "analysis/cluster/cost.h"
#include "analysis/views/step_rows.h"
#include "analysis/views/views.h"

namespace profd::analysis {
namespace {

// "rank 3 in step 12"
std::string PlaceOf(const StepRow& row, bool chinese) {
  if (row.step < 0) return NameOf(*row.rank);
  return fmt::format(chinese ? fmt::runtime("{} step {}") : fmt::runtime("{} in step {}"), NameOf(*row.rank), row.step);
}

// Collectives at which a rank arrives last, far behind the others: they wait for it.
void AddVotes(const CheckInput& input, Finding* finding) {
  const std::vector<Vote> votes = VotesByRank(*input.cluster);
  const auto share = [](const Vote& vote) { return vote.operations > 0 ? static_cast<double>(vote.votes) / static_cast<double>(vote.operations) : 0; };
  const auto most = std::ranges::max_element(votes, {}, share);
  if (most == votes.end() || most->votes == 0 || share(*most) < input.limits.At("slow_rank", "votes")) return;
  const auto index = static_cast<size_t>(most - votes.begin());
  const std::string name = NameOf(input.cluster->At(index));
  Join(&finding->evidence, kBetweenSentences, Translate({"At {1} of {2:collective} {0} arrives far behind all others", "{0} 在 {1} / {2} 个集合通信中远远晚于其他 rank 到达"}, name, most->votes, Counted{most->operations}));
  finding->advice.push_back(Translate({"Look at what {} does before these collectives.", "查看 {} 在这些集合通信之前做了什么。"}, name));
}

// What is compared of each other: the rows of one step that more than one rank has; where there is none, each rank's mean.
std::vector<std::vector<StepRow>> ComparableRows(const Run& run, std::vector<StepRow> rows) {
  KeepCompleteSteps(run, &rows);
  std::vector<std::vector<StepRow>> by_step;
  for (const StepRow& row : rows) {
    if (by_step.empty() || by_step.back().back().step != row.step) by_step.emplace_back();
    by_step.back().push_back(row);
  }
  std::erase_if(by_step, [](const auto& of_step) { return of_step.size() < 2; });
  if (!by_step.empty()) return by_step;
  return {MeanRowsOf(run, rows)};
}

// The step in which a part differs most between ranks.
struct Difference {
  StepRow least;
  StepRow most;
  double ms = 0;
};
Difference LargestDifference(const std::vector<std::vector<StepRow>>& by_step, size_t part) {
  Difference largest;
  for (const auto& rows : by_step) {
    const auto [least, most] = std::ranges::minmax_element(rows, {}, [part](const StepRow& row) { return row.ms[part]; });
    const double ms = rows.empty() ? 0 : most->ms[part] - least->ms[part];
    if (ms > largest.ms) largest = {*least, *most, ms};
  }
  return largest;
}

}  // namespace

std::optional<Finding> CheckSlowRank(const CheckInput& input) {
  if (input.run.ranks.size() < 2) return std::nullopt;
  const std::vector<StepRow> rows = StepRowsOf(input.run);
  if (rows.empty()) return std::nullopt;
  double mean = 0;
  for (const StepRow& row : rows) mean += (row.ms[0] + row.ms[1] + row.ms[2]) / static_cast<double>(rows.size());
  Finding finding;
  finding.title = Text("Ranks beside each other", "各 rank 对比");
  constexpr std::array<Text, 3> kParts = {Text("Computing", "计算耗时"), Text("Communication", "通信耗时"), Text("Free time", "空闲耗时")};
  constexpr std::array<Text, 3> kAdvice = {
      Text("Compare the operators of the slowest and the fastest rank (profctl advise SLOW --baseline FAST), and their clocks.",
           "对比最慢与最快 rank 的算子（profctl advise SLOW --baseline FAST）及其频率。"),
      Text("See bandwidth_imbalance, and which rank arrives last: the others wait for it.", "查看 bandwidth_imbalance，以及哪个 rank 最后到达：其他 rank 都在等它。"),
      Text("Look at the host of the rank with the most free time: data loader, CPU, garbage collection.",
           "查看空闲最多的 rank 的主机侧：数据加载、CPU、垃圾回收。")};
  const std::vector<std::vector<StepRow>> by_step = ComparableRows(input.run, rows);
  for (size_t part = 0; part < kParts.size(); ++part) {
    const auto [least, most, difference] = LargestDifference(by_step, part);
    if (mean <= 0 || Reaches(input.limits.At("slow_rank", "difference"), difference / mean)) continue;
    if (part == static_cast<size_t>(StepPart::kFree) && !KnowsFreeTime(input.run)) {
      finding.advice.emplace_back(Text("Record communication, too (--task-time l1): without it, waiting for another rank looks like free time.",
                                       "请同时采集通信（--task-time l1）：否则等待其他 rank 的时间看似空闲。"));
      continue;
    }
    TranslatedText evidence = kParts[part];
    evidence += Translate({" differs by {:.3f} ms between ranks: {:.3f} ms", "在各 rank 之间相差 {:.3f} ms：最大 {:.3f} ms（"}, difference, most.ms[part]);
    evidence += TranslatedText(fmt::format(" on {}, {:.3f} ms on {}", PlaceOf(most, false), least.ms[part], PlaceOf(least, false)),
                     fmt::format("{}），最小 {:.3f} ms（{}）", PlaceOf(most, true), least.ms[part], PlaceOf(least, true)));
    Join(&finding.evidence, kBetweenSentences, evidence);
    finding.cost_ms = std::max(finding.cost_ms.value_or(0), difference);
    finding.advice.emplace_back(kAdvice[part]);
  }
  AddVotes(input, &finding);
  if (finding.evidence.empty()) finding.evidence = Text("No rank is slow", "没有慢 rank");
  finding.columns = {"step", "rank", "computing_ms", "uncovered_communication_ms", "free_ms"};
  const bool hosts = std::ranges::any_of(input.run.ranks, [](const auto& rank) { return !rank->host.empty(); });
  if (hosts) finding.columns.emplace_back("host");
  for (const StepRow& row : rows) {
    finding.rows.push_back({StepOrNull(row.step), OrNull(row.rank->rank), row.ms[0], row.ms[1], row.ms[2]});
    if (hosts) finding.rows.back().push_back(HostOf(*row.rank));
  }
  return finding;
}

}  // namespace profd::analysis
