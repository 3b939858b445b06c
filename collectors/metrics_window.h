// Windowed views of gauges that move faster than anybody scrapes: least, mean and largest value
// since the scraper's previous scrape (docs/metrics-guide.md); see metric_table.h. No collector
// feeds them: the metric store sums up the samples of the metric they name.
#pragma once

#include <array>

#include "collectors/metric_spec.h"

namespace profd {

inline constexpr auto kWindowMetrics = [] {
  constexpr std::string_view kSamples = "its samples since the previous scrape";
  auto window = [=](std::string_view name, std::string_view of, std::string_view labels,
                    std::string_view unit, std::string_view help,
                    WindowMean mean = WindowMean::kOfSamples) {
    return MetricSpec{name, MetricType::kGauge, MetricScope::kDevice,          labels, unit,
                      help, kSamples,           MetricVisibility::kEverywhere, of,     mean};
  };
  return std::to_array<MetricSpec>({
      window("atlas_npu_utilization_window_ratio", "atlas_npu_utilization_ratio", "unit,stat",
             "ratio", "Least, mean and largest utilisation of a unit since the previous scrape"),
      window("atlas_npu_frequency_window_hertz", "atlas_npu_frequency_hertz", "domain,stat",
             "hertz", "Lowest, mean and highest clock of a domain since the previous scrape",
             WindowMean::kOverTime),
      window("atlas_npu_power_window_watts", "atlas_npu_power_watts", "scope,stat", "watts",
             "Least, mean and largest power drawn since the previous scrape"),
      window("atlas_npu_hbm_bandwidth_window_bytes_per_second",
             "atlas_npu_hbm_bandwidth_bytes_per_second", "hbm,direction,stat", "bytes per second",
             "Least, mean and largest traffic of one HBM stack since the previous scrape"),
      window("atlas_npu_ddr_bandwidth_window_bytes_per_second",
             "atlas_npu_ddr_bandwidth_bytes_per_second", "ddr,direction,stat", "bytes per second",
             "Least, mean and largest traffic of one DDR controller since the previous scrape"),
      window("atlas_npu_llc_throughput_window_bytes_per_second",
             "atlas_npu_llc_throughput_bytes_per_second", "stat", "bytes per second",
             "Least, mean and largest traffic through the last-level cache since the previous "
             "scrape"),
      window("atlas_npu_hccs_bandwidth_window_bytes_per_second",
             "atlas_npu_hccs_bandwidth_bytes_per_second", "link,direction,stat", "bytes per second",
             "Least, mean and largest bandwidth of HCCS since the previous scrape"),
      window("atlas_npu_pcie_bandwidth_window_bytes_per_second",
             "atlas_npu_pcie_bandwidth_bytes_per_second", "direction,type,stat", "bytes per second",
             "PCIe bandwidth since the previous scrape: the least of the minima, the mean of the "
             "means and the largest of the maxima the driver reported"),
      window("atlas_npu_network_port_bandwidth_window_bytes_per_second",
             "atlas_npu_network_port_bandwidth_bytes_per_second", "layer,port,direction,stat",
             "bytes per second",
             "Least, mean and largest traffic of a network port since the previous scrape"),
  });
}();

}  // namespace profd
