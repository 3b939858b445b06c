// The hardware's counters: in all, in each step, and while each of the longest operators ran.
#include <algorithm>
#include <iterator>

#include "analysis/views/views.h"

namespace profd::analysis {
namespace {

constexpr size_t kMostStepMeans = 200'000;  // of all counters: it keeps documents readable
constexpr size_t kMostExecutions = 100'000;  // that are looked at, spread over all

// One execution of one of some operators.
struct Ran {
  Interval time;
  size_t place = 0;  // of its operator among them
};

std::vector<Ran> ExecutionsOf(const Rank& rank, const std::vector<std::vector<int32_t>>& operators) {
  std::vector<size_t> places(rank.operators.size(), operators.size());
  for (size_t place = 0; place < operators.size(); ++place) {
    for (const int32_t op : operators[place]) places[static_cast<size_t>(op)] = place;
  }
  std::vector<Ran> kept;
  for (const Execution& each : rank.executions) {
    const size_t place = places[static_cast<size_t>(each.op)];
    if (place < operators.size()) kept.push_back({{each.start_ns, each.end_ns}, place});
  }
  const size_t every = kept.size() / kMostExecutions + 1;
  if (every > 1) {
    size_t to = 0;
    for (size_t from = 0; from < kept.size(); from += every) kept[to++] = kept[from];
    kept.resize(to);
  }
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
Json WhileRunning(const Rank& rank, const Series& series, const std::vector<Ran>& executions,
                  const std::vector<std::vector<int32_t>>& operators) {
  std::vector<std::pair<double, double>> sums(operators.size());  // value times ns, and ns
  for (const Ran& each : executions) {
    const auto behind = std::ranges::upper_bound(series.points, each.time.end_ns, {}, &Series::Point::t_ns);
    if (behind == series.points.begin()) continue;
    const double ns = std::max(static_cast<double>(each.time.end_ns - each.time.start_ns), 1.0);
    const double value = MeanIn(series, each.time).value_or(std::prev(behind)->value);
    sums[each.place].first += value * ns;
    sums[each.place].second += ns;
  }
  Json list = Json::array();
  for (size_t place = 0; place < operators.size(); ++place) {
    if (sums[place].second <= 0) continue;
    const Operator& op = rank.operators[static_cast<size_t>(operators[place].front())];
    list.push_back({{"operator", TextOrNull(rank, op.name)}, {"mean", sums[place].first / sums[place].second}});
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
  const std::vector<std::vector<int32_t>> operators = LongestOperators(rank);
  const std::vector<Ran> executions = ExecutionsOf(rank, operators);
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
