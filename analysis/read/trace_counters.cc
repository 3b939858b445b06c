#include "analysis/read/trace_counters.h"

#include <fmt/format.h>

#include <algorithm>
#include <memory>

#include "base/text.h"

namespace profd::analysis {

bool TraceCounters::Take(int64_t process, std::string_view name, std::span<const std::pair<std::string, double>> numbers, int64_t t_ns) {
  constexpr size_t kMaxSeries = 4096;
  const auto accelerator = std::ranges::find(numbers, "acc_id", &std::pair<std::string, double>::first);
  const std::string of = accelerator == numbers.end() ? std::string(name) : fmt::format("Acc {:.0f}/{}", accelerator->second, name);
  for (const auto& [unit, value] : numbers) {
    if (unit == "acc_id") continue;
    const auto [it, is_new] = series_.try_emplace({process, fmt::format("{}\n{}", of, unit)}, rank_.hardware.size());
    if (is_new) {
      if (rank_.hardware.size() >= kMaxSeries) {
        series_.erase(it);
        return false;
      }
      Series& series = *rank_.hardware.emplace_back(std::make_shared<Series>());
      const size_t open = unit.find('(');
      const bool has_unit = open != std::string::npos && unit.ends_with(')');
      series.name = has_unit ? of + " " + unit.substr(0, open) : of;
      series.unit = has_unit ? unit.substr(open + 1, unit.size() - open - 2) : unit == "value" ? "" : unit;
      series.device = rank_.device.value_or(-1);
    }
    rank_.hardware[it->second]->Add(t_ns, value);
  }
  return true;
}

std::optional<int> TraceCounters::DeviceOf(int64_t process) const {
  constexpr std::string_view kNpu = "NPU";
  constexpr int64_t kDeviceBits = 0x1f;
  const auto found = labels_.find(process);
  if (found == labels_.end() || !found->second.starts_with(kNpu)) return std::nullopt;
  const std::string_view label = found->second;
  int device = static_cast<int>(process & kDeviceBits);
  if (label.size() > kNpu.size()) (void)ParseNumber(label.substr(kNpu.size() + 1), &device);
  return device;
}

void TraceCounters::Finish() {
  for (const auto& [key, index] : series_) {
    Series& series = *rank_.hardware[index];
    series.Sort();
    // What has another label is the host's.
    if (labels_.contains(key.first)) series.device = DeviceOf(key.first).value_or(-1);
  }
}

}  // namespace profd::analysis
