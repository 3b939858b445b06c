// Two runs beside each other: what takes longer now, and how much of a step's difference it is.
#include <algorithm>
#include <cmath>
#include <map>

#include "analysis/views/views.h"

namespace profd::analysis {
namespace {

// Means over the ranks of a run of what one step, or all where there are no steps, takes in each.
struct Figures {
  double step_ms = 0;
  std::map<std::string, double> parts;  // computing, ...
  std::map<std::string, double> types;
  std::map<std::string, double> operators;
  std::map<std::string, double> communication;
  std::map<std::string, double> memory_mb;  // peak by component
};

std::string Named(const Rank& rank, TextId id) {
  const std::string_view text = rank.TextOf(id);
  return text.empty() ? "(unknown)" : std::string(text);
}

void AddRank(const Rank& rank, double weight, Figures* figures) {
  const double per_step = weight / StepsOf(rank);
  const Json overall = OverallView(rank);
  if (overall.is_object()) {
    for (const char* part : {"computing_ms", "uncovered_communication_ms", "overlapped_ms", "free_ms"}) {
      figures->parts[part] += overall[part].get<double>() * per_step;
    }
    figures->step_ms += overall["e2e_ms"].get<double>() * per_step;
  }
  const std::vector<ExecutionTimes> times = TimesOf(rank);
  for (size_t i = 0; i < times.size(); ++i) {
    if (times[i].count == 0) continue;
    const Operator& op = rank.operators[i];
    const double ms = Ms(times[i].total_ns) * per_step;
    figures->types[Named(rank, op.type)] += ms;
    figures->operators[Named(rank, op.name)] += ms;
  }
  for (const Collective& each : rank.collectives) figures->communication[Named(rank, each.type)] += each.elapse_ms * per_step;
  for (const auto& [component, samples] : rank.memory) {
    double peak = 0;
    for (const MemorySample& sample : samples) peak = std::max(peak, sample.allocated.value_or(sample.reserved.value_or(0)));
    figures->memory_mb[component] += peak * weight;
  }
}

Figures FiguresOf(const Run& run) {
  Figures figures;
  for (const auto& rank : run.ranks) AddRank(*rank, 1 / static_cast<double>(run.ranks.size()), &figures);
  return figures;
}

void AddDifferences(std::string_view what, const std::map<std::string, double>& run, const std::map<std::string, double>& baseline,
                    double of_step, std::vector<Json>* list) {
  std::map<std::string, std::pair<double, double>> both;
  for (const auto& [name, value] : run) both[name].first = value;
  for (const auto& [name, value] : baseline) both[name].second = value;
  for (const auto& [name, values] : both) {
    const double difference = values.first - values.second;
    const bool of_time = what != "memory";
    list->push_back({{"what", what}, {"name", name}, {"run", values.first}, {"baseline", values.second},
                     {"difference", difference}, {"unit", of_time ? "ms per step" : "MB"},
                     {"share_of_difference", of_time && of_step != 0 ? Json(difference / of_step) : Json()}});
  }
}

}  // namespace

Json CompareView(const Run& run, const Run& baseline) {
  const Figures now = FiguresOf(run);
  const Figures then = FiguresOf(baseline);
  const double step = now.step_ms - then.step_ms;
  std::vector<Json> list;
  AddDifferences("time", now.parts, then.parts, step, &list);
  AddDifferences("operator_type", now.types, then.types, step, &list);
  AddDifferences("operator", now.operators, then.operators, step, &list);
  AddDifferences("communication", now.communication, then.communication, step, &list);
  AddDifferences("memory", now.memory_mb, then.memory_mb, step, &list);
  std::ranges::stable_sort(list, std::greater<>(), [](const Json& each) { return std::abs(each["difference"].get<double>()); });
  Json json = {{"baseline", baseline.name}, {"run", run.name}, {"baseline_step_ms", then.step_ms}, {"run_step_ms", now.step_ms},
               {"difference_ms", step}};
  json["differences"] = list;
  return json;
}

}  // namespace profd::analysis
