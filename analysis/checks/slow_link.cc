#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "analysis/checks/check.h"
#include "analysis/views/step_rows.h"
#include "analysis/views/views.h"

namespace profd::analysis {
namespace {

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
    Json row = Json::array({StepOrNull(each.step), OrNull(each.rank->rank)});
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
  if (finding.evidence.empty()) return std::nullopt;
  finding.advice = {Text("Where one rank is much slower than the others, look at its links: profctl health, the matrix of links in the report, the switch's port.",
                         "若某个 rank 明显慢于其他 rank，请检查其链路：profctl health、报告中的链路矩阵、交换机端口。")};
  return finding;
}

}  // namespace profd::analysis
