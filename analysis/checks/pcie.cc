// PCIe between host and device: how full it is while the device copies, and whether it repeats.

#include <algorithm>
#include <array>
#include <string>

#include "analysis/checks/computing_kinds.h"
#include "analysis/checks/counters.h"

namespace profd::analysis {
namespace {

// Without overlaps, by start.
Intervals CopiesOf(const Rank& rank) {
  Intervals all;
  for (const Copy& each : rank.copies) all.push_back({each.start_ns, each.end_ns});
  std::ranges::sort(all, {}, &Interval::start_ns);
  Intervals merged;
  for (const Interval& each : all) {
    if (merged.empty() || merged.back().end_ns < each.start_ns) merged.push_back(each);
    merged.back().end_ns = std::max(merged.back().end_ns, each.end_ns);
  }
  return merged;
}

// To bytes per second; 0: it is not a bandwidth of PCIe, or not a mean.
double ScaleOf(const Series& series) {
  if (series.name.starts_with("pcie_bandwidth_bytes_per_second"))
    return series.name.find("stat=avg") != std::string::npos ? 1 : 0;
  if (!series.name.starts_with("PCIe")) return 0;
  return series.unit == "B/s" ? 1 : series.unit == "MB/s" ? 1e6 : 0;
}

}  // namespace

std::optional<Finding> CheckPcie(const CheckInput& input) {
  const Rank& rank = input.rank;
  const Intervals copies = CopiesOf(rank);
  const double limit = input.limits.At("hardware_pcie", "gb_s");
  Finding finding;
  finding.columns = {"counter", "unit", "mean", "max"};
  double most = 0;
  for (const auto& series : rank.hardware) {
    const double scale = ScaleOf(*series);
    if (scale <= 0 || series->count == 0) continue;
    const auto mean = copies.empty()
                          ? std::optional(series->sum / static_cast<double>(series->count))
                          : MeanDuring(*series, copies);
    if (!mean || *mean * scale / 1e9 < limit) continue;
    most = std::max(most, *mean * scale / 1e9);
    finding.rows.push_back({series->name, "GB/s", *mean * scale / 1e9, series->max * scale / 1e9});
  }
  if (most > 0) {
    finding.evidence =
        copies.empty()
            ? Translate({"PCIe moves {:.1f} GB/s on average", "PCIe 平均带宽为 {:.1f} GB/s"}, most)
            : Translate({"PCIe moves {:.1f} GB/s on average while the device copies",
                   "器件拷贝期间 PCIe 平均带宽为 {:.1f} GB/s"},
                  most);
    const double ms = FreeCopiesMs(rank);
    if (ms > 0) finding.cost_ms = PerStep(rank, ms);
  }
  constexpr auto kErrors = std::to_array<Watched>({{"pcie_errors_total", "", "errors_per_s"}});
  const std::vector<SeriesMean> errors = SeriesOverLimit(input, "hardware_pcie", kErrors, {});
  if (!errors.empty())
    Join(&finding.evidence, Text("; ", "；"),
         Translate({"{:counter of PCIe reports|counters of PCIe report} errors", "{} 个 PCIe 计数器报告错误"}, Counted{errors.size()}));
  for (const SeriesMean& each : errors)
    finding.rows.push_back({each.series->name, each.series->unit, each.mean, each.series->max});
  if (finding.rows.empty()) return std::nullopt;
  finding.priority = errors.empty() ? Priority::kMedium : Priority::kHigh;
  finding.title = Text("PCIe is saturated or reports errors", "PCIe 带宽饱和或报错");
  finding.advice = {
      Text("Copy less between host and device in the loop: .item(), .cpu(), logging of tensors, "
           "offloading of optimizer states.",
           "减少循环中 Host 与器件之间的拷贝：.item()、.cpu()、打印张量、优化器状态卸载。"),
      Text("Check the width and speed of the link (lspci -vv) where it reports errors.",
           "若链路报错，检查其宽度和速率（lspci -vv）。")};
  return finding;
}

}  // namespace profd::analysis
