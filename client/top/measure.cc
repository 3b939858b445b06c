#include "client/top/measure.h"

#include <fmt/format.h>

#include <cmath>

#include "profd/v1/profd.pb.h"

namespace profd::client::top {
namespace {

constexpr std::array<MeasureInfo, kMeasures> kInfos = {{
    {"utilization_ratio", "util", "AI Core utilisation", "ratio"},
    {"hbm_used_bytes", "hbm", "HBM used", "bytes"},
    {"hbm_size_bytes", "", "HBM size", "bytes"},
    {"hbm_bandwidth_ratio", "bw", "HBM bandwidth", "ratio"},
    {"power_watts", "power", "power", "watts"},
    {"temperature_celsius", "temp", "temperature, hottest of chip and HBM", "celsius"},
    {"hbm_temperature_celsius", "hbm-temp", "HBM temperature", "celsius"},
    {"aicore_frequency_hertz", "freq", "AI Core frequency", "hertz"},
    {"hccs_bytes_per_second", "hccs", "HCCS, both directions", "bytes_per_second"},
    {"roce_bytes_per_second", "roce", "RoCE, both directions", "bytes_per_second"},
    {"pcie_bytes_per_second", "pcie", "PCIe, both directions", "bytes_per_second"},
}};

struct Recipe {
  std::string_view metric;
  std::string_view label;
  std::string_view value;
  Source source;
};
constexpr double kFlitBytes = 20;
// A channel's own samples first, then what is read all the time through DCMI.
constexpr std::array<Recipe, 18> kRecipes = {{
    {"atlas_npu_utilization_ratio", "unit", "aicore", {Measure::kUtilization}},
    {"atlas_npu_utilization_ratio", "unit", "npu", {Measure::kUtilization, 1}},
    {"atlas_npu_hbm_used_bytes", "", "", {Measure::kHbmUsed}},
    {"atlas_npu_ddr_used_bytes", "", "", {Measure::kHbmUsed, 1}},
    {"atlas_npu_hbm_size_bytes", "", "", {Measure::kHbmSize}},
    {"atlas_npu_ddr_size_bytes", "", "", {Measure::kHbmSize, 1}},
    {"atlas_npu_hbm_bandwidth_utilization_ratio", "", "", {Measure::kHbmBandwidth}},
    {"atlas_npu_power_watts", "scope", "chip", {Measure::kPower}},
    {"atlas_npu_power_watts", "scope", "card", {Measure::kPower, 1}},
    {"atlas_npu_temperature_celsius", "sensor", "chip", {Measure::kTemperature}},
    {"atlas_npu_temperature_celsius", "sensor", "hbm", {Measure::kHbmTemperature}},
    {"atlas_npu_frequency_hertz", "domain", "aicore", {Measure::kFrequency}},
    {"atlas_npu_hccs_bandwidth_bytes_per_second", "link", "all", {Measure::kHccs}},
    {"atlas_npu_hccs_flits_total", "", "", {Measure::kHccs, 1, true, kFlitBytes}},
    {"atlas_npu_network_port_bandwidth_bytes_per_second", "layer", "roce", {Measure::kRoce}},
    {"atlas_npu_network_port_bandwidth_bytes_per_second", "layer", "nic", {Measure::kRoce, 1}},
    {"atlas_npu_network_bytes_total", "layer", "mac", {Measure::kRoce, 2, true}},
    {"atlas_npu_pcie_bandwidth_bytes_per_second", "stat", "avg", {Measure::kPcie}},
}};

// Three digits and a prefix.
std::string Compact(double value, double base) {
  constexpr std::array<char, 6> kPrefixes = {' ', 'K', 'M', 'G', 'T', 'P'};
  size_t i = 0;
  while (std::fabs(value) >= 999.5 && i + 1 < kPrefixes.size()) {
    value /= base;
    ++i;
  }
  std::string number = i == 0          ? fmt::format("{:.0f}", value)
                       : value < 9.995 ? fmt::format("{:.2f}", value)
                       : value < 99.95 ? fmt::format("{:.1f}", value)
                                       : fmt::format("{:.0f}", value);
  return i == 0 ? number : number + kPrefixes[i];
}

}  // namespace

const MeasureInfo& InfoOf(Measure measure) { return kInfos[static_cast<size_t>(measure)]; }

std::string ShortText(Measure measure, double value) {
  if (!std::isfinite(value)) return "-";
  std::string_view unit = InfoOf(measure).unit;
  // Values of a faulty driver must not widen the column.
  if (std::fabs(value) > 1e18) return "?";
  if (unit == "ratio") return fmt::format("{:.0f}%", value * 100);
  if (unit == "watts") return fmt::format("{:.0f}W", value);
  if (unit == "celsius") return fmt::format("{:.0f}C", value);
  return Compact(value, unit == "bytes" ? 1024 : 1000);
}

std::optional<Source> SourceOf(const v1::SeriesInfo& series) {
  for (const Recipe& recipe : kRecipes) {
    if (series.metric() != recipe.metric) continue;
    if (recipe.label.empty()) return recipe.source;
    auto label = series.labels().find(std::string(recipe.label));
    if (label != series.labels().end() && label->second == recipe.value) return recipe.source;
  }
  return std::nullopt;
}

}  // namespace profd::client::top
