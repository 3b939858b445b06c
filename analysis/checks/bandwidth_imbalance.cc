#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <string>
#include <tuple>
#include <vector>

#include "analysis/checks/check.h"
#include "analysis/cluster/cost.h"
#include "analysis/rules/slowest_rank.h"
#include "analysis/views/step_rows.h"
#include "analysis/views/views.h"

namespace profd::analysis {
namespace {

// A rank with a transport, or a link between two ranks.
struct Slow {
  TranslatedText ranks;
  std::string transport;
  double size_mb = 0;
  double time_ms = 0;
  double speed = 0;  // GB/s
  double usual = 0;  // of the others
  double steps = 1;
  // Of a step: what is beyond the time that the usual bandwidth would take.
  double extra_ms() const { return (time_ms - size_mb / usual) / steps; }
};

// A rank whose port is slow has all of its links slow, and among few links no deviation is large: each rank is compared with
// the median of those that move at least half as much as most do. Smaller amounts are slower by nature.
void FindSlowRanks(const CheckInput& input, const std::vector<LinkRow>& rows, size_t transport, std::vector<Slow>* slow) {
  std::map<const Rank*, Transport> sums;
  for (const LinkRow& row : rows) sums[row.rank].Add(row.sums[transport]);
  std::erase_if(sums, [](const auto& each) { return each.second.time_ms <= 0; });
  if (sums.size() < 2) return;
  std::vector<double> sizes, speeds;
  for (const auto& [rank, sum] : sums) sizes.push_back(sum.size_mb);
  std::erase_if(sums, [least_mb = MedianOf(sizes) / 2](const auto& each) { return each.second.size_mb < least_mb; });
  for (const auto& [rank, sum] : sums) speeds.push_back(SpeedOf(sum));
  const double median = MedianOf(speeds);
  for (const auto& [rank, sum] : sums) {
    if (Reaches(SpeedOf(sum), input.limits.At("bandwidth_imbalance", "of_median") * median)) continue;
    slow->push_back({{NameOf(*rank), NameOf(*rank)}, std::string(kLinkTransports[transport]), sum.size_mb, sum.time_ms, SpeedOf(sum), median, StepsOf(*rank)});
  }
}

void FindSlowLinks(const CheckInput& input, std::vector<Slow>* slow) {
  for (const Pair& pair : PairsOf(*input.cluster)) {
    if (pair.score >= -input.limits.At("bandwidth_imbalance", "deviations")) break;
    slow->push_back({Translate({"rank {} to {}", "rank {} 到 {}"}, pair.source, pair.destination), pair.transport, pair.size_mb, pair.time_ms, pair.bandwidth, pair.mean, StepsOf(input.rank)});
  }
}

double StepMs(const Cluster& cluster) {
  double ms = 0;
  double count = 0;
  for (const auto& rank : cluster.run().ranks) {
    const double step_ms = MeanStepMsOf(*rank);
    ms += step_ms;
    count += step_ms > 0 ? 1 : 0;
  }
  return count > 0 ? ms / count : 0;
}

}  // namespace

std::optional<Finding> CheckBandwidthImbalance(const CheckInput& input) {
  std::vector<Slow> slow;
  const std::vector<LinkRow> rows = LinkRowsOf(input.run);
  for (size_t transport = 0; transport < kLinkTransports.size(); ++transport) FindSlowRanks(input, rows, transport, &slow);
  FindSlowLinks(input, &slow);
  if (slow.empty()) return std::nullopt;
  std::ranges::sort(slow, [](const Slow& one, const Slow& two) { return std::tuple(-one.extra_ms(), one.ranks.en, one.transport) < std::tuple(-two.extra_ms(), two.ranks.en, two.transport); });
  Finding finding;
  finding.title = Text("Slow links", "慢链路");
  finding.cost_ms = slow.front().extra_ms();
  finding.priority = PriorityOf(*finding.cost_ms, StepMs(*input.cluster), input.limits);
  finding.columns = {"link", "transport", "bandwidth_gb_s", "usual_gb_s", "size_mb", "time_ms", "extra_ms_per_step"};
  constexpr size_t kMostNamed = 3;
  for (const Slow& each : slow) {
    if (finding.rows.size() < kMostNamed) {
      Join(&finding.evidence, kBetweenSentences, {fmt::format("{} of {}: {:.3f} GB/s, {:.3f} is usual", each.transport, each.ranks.en, each.speed, each.usual),
                                                  fmt::format("{}（{}）：{:.3f} GB/s，通常为 {:.3f}", each.transport, each.ranks.zh, each.speed, each.usual)});
    }
    finding.rows.push_back({CellOf(each.ranks), each.transport, each.speed, each.usual, each.size_mb, each.time_ms, each.extra_ms()});
  }
  if (slow.size() > kMostNamed) finding.evidence += Translate({", and {} more", "，另有 {} 条"}, slow.size() - kMostNamed);
  finding.advice = {Text("Look at these links: profctl health, the matrix of links in the report, the switch's port; retransmission, hardware_roce and hardware_hccs show whether data is repeated.",
                         "请检查这些链路：profctl health、报告中的链路矩阵、交换机端口；是否重传见 retransmission、hardware_roce 与 hardware_hccs。")};
  return finding;
}

}  // namespace profd::analysis
