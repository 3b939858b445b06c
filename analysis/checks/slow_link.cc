#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "analysis/checks/check.h"
#include "analysis/checks/step_rows.h"
#include "analysis/cluster/cost.h"
#include "analysis/views/views.h"

namespace profd::analysis {
namespace {

double StepMs(const Cluster& cluster) {
  double ms = 0;
  double count = 0;
  for (const auto& rank : cluster.run().ranks) {
    const auto step = MeanStepOf(*rank);
    if (!step) continue;
    ms += step->computing + step->uncovered + step->free;
    ++count;
  }
  return count > 0 ? ms / count : 0;
}

// Links that are slower than those of their transport are; what they cost is their time beyond what the mean would take.
void AddSlowPairs(const CheckInput& input, Finding* finding) {
  constexpr size_t kMostNamed = 3;
  size_t slow = 0;
  for (const Pair& pair : PairsOf(*input.cluster)) {
    if (pair.score >= -input.limits.At("slow_link", "deviations")) break;
    const double extra = (pair.time_ms - pair.size_mb / pair.mean) / StepsOf(input.rank);
    finding->cost_ms = std::max(finding->cost_ms.value_or(0), extra);
    if (slow++ < kMostNamed) {
      Join(&finding->evidence, kBetweenSentences, Translate({"Rank {} to {} ({}): {:.3f} GB/s, the mean of all such links is {:.3f}", "rank {} 到 {}（{}）：{:.3f} GB/s，同类链路平均 {:.3f}"}, pair.source,
                                             pair.destination, pair.transport, pair.bandwidth, pair.mean));
    }
  }
  if (slow > kMostNamed) finding->evidence += Translate({", and {:more link}", "，另有 {} 条链路"}, Counted{slow - kMostNamed});
  if (slow > 0) finding->priority = PriorityOf(*finding->cost_ms, StepMs(*input.cluster), input.limits);
}

std::string NameOf(const LinkRow& of) {
  return of.step < 0 ? NameOf(*of.rank) : fmt::format("{}, step {}", NameOf(*of.rank), of.step);
}

}  // namespace

std::optional<Finding> CheckSlowLink(const CheckInput& input) {
  if (input.run.ranks.size() < 2) return std::nullopt;
  Finding finding;
  finding.title = Text("Bandwidth of the ranks", "各 rank 带宽");
  finding.columns = {"step", "rank", "rdma_bandwidth_gb_s", "rdma_size_mb", "rdma_time_ms", "sdma_bandwidth_gb_s", "sdma_size_mb", "sdma_time_ms"};
  const bool hosts = std::ranges::any_of(input.run.ranks, [](const auto& rank) { return !rank->host.empty(); });
  if (hosts) finding.columns.emplace_back("host");
  const std::vector<LinkRow> all = LinkRowsOf(input.run);
  for (const LinkRow& each : all) {
    // Not {...}: of one element, compilers disagree whether it is a list.
    Json row = Json::array({each.step < 0 ? Json() : Json(each.step), OrNull(each.rank->rank)});
    for (const Transport& sum : each.sums) {
      row.push_back(SpeedOf(sum));
      row.push_back(sum.size_mb);
      row.push_back(sum.time_ms);
    }
    if (hosts) row.push_back(HostOf(*each.rank));
    finding.rows.push_back(std::move(row));
  }
  for (size_t i = 0; i < kLinkTransports.size(); ++i) {
    std::vector<std::pair<double, const LinkRow*>> speeds;
    for (const LinkRow& each : all) {
      if (each.sums[i].time_ms > 0) speeds.emplace_back(SpeedOf(each.sums[i]), &each);
    }
    if (speeds.empty()) continue;
    // As they are shown: sums in another order differ in their last digits.
    const auto [least, most] = std::ranges::minmax_element(speeds, {}, [](const auto& each) { return std::llround(each.first * 1000); });
    double mean = 0;
    for (const auto& [speed, of] : speeds) mean += speed / static_cast<double>(speeds.size());
    Join(&finding.evidence, kBetweenSentences, Translate({"{}: {:.3f} GB/s on average, most {:.3f} on {}, least {:.3f} on {}, {:.3f} between them", "{}：平均 {:.3f} GB/s，最大 {:.3f}（{}），最小 {:.3f}（{}），相差 {:.3f}"},
                                          kLinkTransports[i], mean, most->first, NameOf(*most->second), least->first, NameOf(*least->second), most->first - least->first));
  }
  AddSlowPairs(input, &finding);
  if (finding.evidence.empty()) return std::nullopt;
  finding.advice = {Text("Where one rank is much slower than the others, look at its links: profctl health, the matrix of links in the report, the switch's port.",
                         "若某个 rank 明显慢于其他 rank，请检查其链路：profctl health、报告中的链路矩阵、交换机端口。")};
  return finding;
}

}  // namespace profd::analysis
