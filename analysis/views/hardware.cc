// The hardware's counters: in all, in each step, and while each of the longest operators ran.
#include <algorithm>
#include <map>
#include <numeric>

#include "analysis/views/views.h"

namespace profd::analysis {
namespace {

constexpr size_t kMostStepMeans = 200'000;  // of all counters: it keeps documents readable
constexpr size_t kMostOperators = 10;
constexpr size_t kMostExecutions = 100'000;  // that are looked at, spread over all

}  // namespace

std::vector<int32_t> LongestOperators(const Rank& rank) {
  const std::vector<ExecutionTimes> times = TimesOf(rank);
  std::vector<int32_t> order(times.size());
  std::iota(order.begin(), order.end(), 0);
  std::ranges::stable_sort(order, std::greater<>(), [&times](int32_t op) { return times[static_cast<size_t>(op)].total_ns; });
  if (order.size() > kMostOperators) order.resize(kMostOperators);
  return order;
}

namespace {

// Executions of some operators, by start.
std::vector<Execution> ExecutionsOf(const Rank& rank, const std::vector<int32_t>& operators) {
  std::vector<Execution> kept;
  for (const Execution& each : rank.executions) {
    if (std::ranges::find(operators, each.op) != operators.end()) kept.push_back(each);
  }
  const size_t every = kept.size() / kMostExecutions + 1;
  if (every > 1) {
    size_t to = 0;
    for (size_t from = 0; from < kept.size(); from += every) kept[to++] = kept[from];
    kept.resize(to);
  }
  std::ranges::stable_sort(kept, {}, &Execution::start_ns);
  return kept;
}

std::optional<double> MeanIn(const Series& series, const Interval& span) { return series.IsCoreClock() ? series.MeanByTime(span) : series.Mean(span); }

// Over the complete run. What holds until the next sample is known from the first one on, to the end of what else was recorded.
double MeanInAll(const Rank& rank, const Series& series) {
  const double of_samples = series.sum / static_cast<double>(series.count);
  if (!series.IsCoreClock() || series.points.empty()) return of_samples;
  Interval all{series.points.front().t_ns, series.points.back().t_ns};
  for (const Step& step : rank.steps) all.end_ns = std::max(all.end_ns, step.end_ns);
  for (const std::optional<Interval>& recorded : {rank.recorded, rank.span}) {
    if (recorded) all.end_ns = std::max(all.end_ns, recorded->end_ns);
  }
  return series.MeanByTime(all).value_or(of_samples);
}

// The mean while each of them ran, by operator: of the samples taken meanwhile, or, as most executions are shorter than
// what lies between two samples, of the last sample before the end.
Json WhileRunning(const Rank& rank, const Series& series, const std::vector<Execution>& executions,
                  const std::vector<int32_t>& operators) {
  std::map<int32_t, std::pair<double, double>> sums;  // value times ns, and ns
  size_t point = 0;
  for (const Execution& each : executions) {
    while (point < series.points.size() && series.points[point].t_ns <= each.end_ns) ++point;
    if (point == 0) continue;
    const double ns = std::max(static_cast<double>(each.end_ns - each.start_ns), 1.0);
    const double value = MeanIn(series, {each.start_ns, each.end_ns}).value_or(series.points[point - 1].value);
    sums[each.op].first += value * ns;
    sums[each.op].second += ns;
  }
  Json list = Json::array();
  for (const int32_t op : operators) {
    const auto found = sums.find(op);
    if (found == sums.end()) continue;
    list.push_back({{"operator", TextOrNull(rank, rank.operators[static_cast<size_t>(op)].name)},
                    {"mean", found->second.first / found->second.second}});
  }
  return list;
}

}  // namespace

size_t HardwareStepsOf(const Rank& rank) {
  const auto counters = static_cast<size_t>(std::ranges::count_if(rank.hardware, [](const auto& series) { return series->count > 0; }));
  return std::min(rank.steps.size(), kMostStepMeans / std::max<size_t>(counters, 1));
}

Json HardwareView(const Rank& rank) {
  const size_t steps = HardwareStepsOf(rank);
  const std::vector<int32_t> operators = LongestOperators(rank);
  const std::vector<Execution> executions = ExecutionsOf(rank, operators);
  Json list = Json::array();
  for (const auto& series : rank.hardware) {
    if (series->count == 0) continue;
    Json json = {{"name", series->name}, {"device", series->device}, {"unit", series->unit}, {"count", series->count},
                 {"min", series->min}, {"mean", MeanInAll(rank, *series)}, {"max", series->max}};
    json["by_step"] = Json::array();
    for (const Step& step : std::span(rank.steps).first(steps)) {
      json["by_step"].push_back({{"step", step.number}, {"mean", OrNull(MeanIn(*series, {step.start_ns, step.end_ns}))}});
    }
    json["by_operator"] = WhileRunning(rank, *series, executions, operators);
    list.push_back(std::move(json));
  }
  return list;
}

}  // namespace profd::analysis
