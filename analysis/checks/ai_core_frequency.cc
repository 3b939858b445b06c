#include <algorithm>
#include <map>
#include <string>

#include "analysis/checks/check.h"

namespace profd::analysis {
namespace {

struct Slowed {
  uint64_t calls = 0;
  int64_t ns = 0;
  double lost = 0;     // sum of what is missing of the nominal frequency, as a share
  double lost_ns = 0;
  double sum_mhz = 0;
  double least_mhz = 0;
  double most_mhz = 0;
};

// Samples in MHz; null: none were recorded.
const Series* FrequencyOf(const Rank& rank, double* to_mhz) {
  for (const auto& series : rank.hardware) {
    if (series->count == 0 || !series->IsCoreClock()) continue;
    *to_mhz = series->name.starts_with("AI Core Freq") ? 1 : 1e-6;
    return series.get();
  }
  return nullptr;
}

// The least while it ran; each sample holds until the next.
std::optional<double> LeastIn(const Series& series, const Execution& each) {
  auto it = std::ranges::upper_bound(series.points, each.start_ns, {}, &Series::Point::t_ns);
  std::optional<double> least;
  if (it != series.points.begin()) least = std::prev(it)->value;
  for (; it != series.points.end() && it->t_ns < each.end_ns; ++it) least = std::min(least.value_or(it->value), it->value);
  return least;
}

// What was recorded beside it: the reasons, as far as the driver reports them, and the maxima of power and temperature.
TranslatedText ReasonsOf(const CheckInput& input) {
  TranslatedText text;
  for (const auto& series : input.rank.hardware) {
    const bool reason = series->name.starts_with("throttle_reason") && series->max > 0;
    const bool state = series->name.starts_with("power_watts") || series->name.starts_with("temperature_celsius");
    if (series->count == 0 || (!reason && !state)) continue;
    const size_t at = series->name.find_last_of(' ');
    const std::string_view label = at == std::string::npos ? std::string_view() : std::string_view(series->name).substr(at + 1);
    const bool power = series->name.starts_with("power");
    if (reason) {
      text += Translate({"; throttled ({}) in {:.0f} % of the samples", "；{1:.0f} % 的采样中处于降频（{0}）"}, label, series->sum / static_cast<double>(series->count) * 100);
    } else if (power) {
      text += Translate({"; power {} at most {:.0f} {}", "；功率 {} 最高 {:.0f} {}"}, label, series->max, series->unit);
    } else {
      text += Translate({"; temperature {} at most {:.0f} {}", "；温度 {} 最高 {:.0f} {}"}, label, series->max, series->unit);
    }
  }
  return text;
}

}  // namespace

std::optional<Finding> CheckAiCoreFrequency(const CheckInput& input) {
  const Rank& rank = input.rank;
  double to_mhz = 1;
  const Series* series = FrequencyOf(rank, &to_mhz);
  if (series == nullptr || rank.core_mhz <= 0) return std::nullopt;
  std::map<TextId, Slowed> slowed;
  for (const Execution& each : rank.executions) {
    const Operator& op = rank.operators[static_cast<size_t>(each.op)];
    // Tables of operators may have another kind of core than the timeline.
    const std::string_view core = rank.TextOf(each.task == kNoText ? op.core : each.task);
    const bool counts = (core == "AI_CORE" || core == "MIX_AIC") && input.IsInStep(each.start_ns, each.end_ns);
    const auto least = counts ? LeastIn(*series, each) : std::nullopt;
    if (!least) continue;
    const double mhz = *least * to_mhz;
    Slowed& of = slowed[op.name];
    const int64_t ns = each.end_ns - each.start_ns;
    const double lost = std::max(0.0, rank.core_mhz - mhz) / rank.core_mhz;
    of.least_mhz = of.calls == 0 ? mhz : std::min(of.least_mhz, mhz);
    of.most_mhz = std::max(of.most_mhz, mhz);
    ++of.calls;
    of.ns += ns;
    of.lost += lost;
    of.lost_ns += lost * static_cast<double>(ns);
    of.sum_mhz += mhz;
  }
  const double limit = input.limits.At("ai_core_frequency", "decrease");
  std::vector<std::pair<TextId, Slowed>> found;
  double lost_ns = 0;
  for (const auto& [name, of] : slowed) {
    if (!Reaches(of.lost / static_cast<double>(of.calls), limit)) continue;
    found.emplace_back(name, of);
    lost_ns += of.lost_ns;
  }
  if (found.empty()) return std::nullopt;
  std::ranges::stable_sort(found, std::ranges::greater(), [](const auto& each) { return std::pair(each.second.ns, each.second.lost / static_cast<double>(each.second.calls)); });
  Finding finding;
  finding.priority = Priority::kHigh;
  finding.cost_ms = CostOf(input, lost_ns / 1e6);
  finding.step = input.StepNumber();
  finding.title = Text("The AI Core runs below its nominal frequency", "AI Core 运行频率低于标称频率");
  finding.evidence = Translate({"{:operator} ran at a frequency {:.0f} % or more below the nominal {:.0f} MHz", "{} 个算子运行时的频率比标称值低 {:.0f} % 以上（标称 {:.0f} MHz）"}, Counted{found.size()},
                         limit * 100, rank.core_mhz);
  finding.evidence += ReasonsOf(input);
  finding.advice = {Text("Check the temperature of the device and its power limit: profctl top shows both, with the causes of throttling.",
                         "检查器件的温度和功耗上限：profctl top 会显示二者以及降频原因。")};
  finding.columns = {"name", "calls", "total_us", "decrease", "mean_mhz", "max_mhz", "min_mhz"};
  for (const auto& [name, of] : found) {
    const auto calls = static_cast<double>(of.calls);
    finding.rows.push_back({rank.TextOf(name), of.calls, static_cast<double>(of.ns) / 1000, of.lost / calls, of.sum_mhz / calls, of.most_mhz, of.least_mhz});
  }
  return finding;
}

}  // namespace profd::analysis
