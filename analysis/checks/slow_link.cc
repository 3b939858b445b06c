#include <fmt/format.h>

#include <algorithm>

#include "analysis/checks/check.h"
#include "analysis/views/views.h"

namespace profd::analysis {

std::optional<Finding> CheckSlowLink(const CheckInput& input) {
  if (input.run.ranks.size() < 2) return std::nullopt;
  Finding finding;
  finding.title = "Bandwidth of the ranks";
  finding.columns = {"rank", "rdma_bandwidth_gb_s", "rdma_size_mb", "rdma_time_ms", "sdma_bandwidth_gb_s", "sdma_size_mb", "sdma_time_ms"};
  for (const auto& rank : input.run.ranks) {
    Json row = {OrNull(rank->rank)};
    for (const char* transport : {"RDMA", "SDMA"}) {
      const Transport sum = SumOf(*rank, transport);
      row.push_back(SpeedOf(sum));
      row.push_back(sum.size_mb);
      row.push_back(sum.time_ms);
    }
    finding.rows.push_back(std::move(row));
  }
  for (const char* transport : {"RDMA", "SDMA"}) {
    std::vector<std::pair<double, const Rank*>> speeds;
    for (const auto& rank : input.run.ranks) {
      const Transport sum = SumOf(*rank, transport);
      if (sum.time_ms > 0) speeds.emplace_back(SpeedOf(sum), rank.get());
    }
    if (speeds.empty()) continue;
    const auto [least, most] = std::ranges::minmax_element(speeds);
    double mean = 0;
    for (const auto& [speed, rank] : speeds) mean += speed / static_cast<double>(speeds.size());
    finding.evidence += fmt::format("{}{}: {:.3f} GB/s on average, most {:.3f} on {}, least {:.3f} on {}", finding.evidence.empty() ? "" : ". ",
                                    transport, mean, most->first, NameOf(*most->second), least->first, NameOf(*least->second));
  }
  if (finding.evidence.empty()) return std::nullopt;
  finding.advice = {"Where one rank is much slower than the others, look at its links: profctl health, the matrix of links in the report, the switch's port."};
  return finding;
}

}  // namespace profd::analysis
