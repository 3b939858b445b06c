// Two runs beside each other: what takes longer now, and how much of the difference it is.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <tuple>

#include "analysis/views/views.h"

namespace profd::analysis {
namespace {

// A mean over those ranks that know it.
struct RankMean {
  double sum = 0;
  double ranks = 0;
  void Add(double value) {
    sum += value;
    ++ranks;
  }
  std::optional<double> Get() const { return ranks > 0 ? std::optional(sum / ranks) : std::nullopt; }
};

// What a name has not, that was not executed; of a table that no rank has, nothing is known.
struct Table {
  std::map<std::string, double> sums;
  double ranks = 0;
  std::optional<double> Of(const std::string& name) const {
    if (ranks == 0) return std::nullopt;
    const auto found = sums.find(name);
    return found == sums.end() ? 0 : found->second / ranks;
  }
};

// Means over the ranks of a run of what one step, or all that was recorded, takes in each.
struct Figures {
  RankMean whole_ms;
  std::map<std::string, RankMean> parts;  // computing, ...
  Table types;
  Table operators;
  Table communication;
  std::map<std::string, RankMean> memory_mb;  // peak by component
};

std::string Named(const Rank& rank, TextId id) {
  const std::string_view text = rank.TextOf(id);
  return text.empty() ? "(unknown)" : std::string(text);
}

void AddParts(const Shares& shares, Figures* figures) {
  figures->parts["computing_ms"].Add(shares.computing);
  figures->parts["uncovered_communication_ms"].Add(shares.uncovered);
  figures->parts["overlapped_ms"].Add(shares.overlapped());
  figures->parts["free_ms"].Add(shares.free);
}

void AddMemory(const Rank& rank, Figures* figures) {
  for (const auto& [component, samples] : rank.memory) {
    std::optional<double> peak;
    for (const MemorySample& sample : samples) {
      const std::optional<double> mb = sample.allocated ? sample.allocated : sample.reserved;
      if (mb) peak = std::max(peak.value_or(0), *mb);
    }
    if (peak) figures->memory_mb[component].Add(*peak);
  }
}

// `step_or_null`: all that was recorded is compared.
void AddRank(const Rank& rank, const MeanStep* step_or_null, Figures* figures) {
  const std::optional<Overall> overall = OverallOf(rank);
  double of_computing = 1;
  double of_communication = 1;
  if (step_or_null != nullptr) {
    figures->whole_ms.Add(step_or_null->total_ms);
    of_computing = of_communication = StepsOf(rank);
    if (step_or_null->shares) {
      const Shares& mean = *step_or_null->shares;
      AddParts(mean, figures);
      // A dump may reach far beyond its steps: so many steps took as long.
      const bool from_intervals = rank.source == "dump" || rank.shares.empty() || rank.shares_of_intervals;
      if (from_intervals && overall && mean.computing > 0) of_computing = overall->shares.computing / mean.computing;
      if (from_intervals && overall && mean.communication > 0) of_communication = overall->shares.communication / mean.communication;
    }
  } else if (overall) {
    figures->whole_ms.Add(overall->e2e_ms);
    AddParts(overall->shares, figures);
  }
  const std::vector<ExecutionTimes> times = TimesOf(rank);
  if (std::ranges::any_of(times, [](const ExecutionTimes& each) { return each.count > 0; })) {
    ++figures->types.ranks;
    ++figures->operators.ranks;
  }
  for (size_t i = 0; i < times.size(); ++i) {
    if (times[i].count == 0) continue;
    const Operator& op = rank.operators[i];
    const double ms = Ms(times[i].total_ns) / of_computing;
    figures->types.sums[Named(rank, op.type)] += ms;
    figures->operators.sums[Named(rank, op.name)] += ms;
  }
  // Without communication there are no operations of it; else they may only not be recorded.
  if (!rank.collectives.empty() || (overall && overall->shares.communication <= 0)) ++figures->communication.ranks;
  for (const Collective& each : rank.collectives) figures->communication.sums[Named(rank, each.type)] += each.elapse_ms / of_communication;
}

std::vector<std::optional<MeanStep>> StepsIn(const Run& run) {
  std::vector<std::optional<MeanStep>> steps;
  for (const auto& rank : run.ranks) steps.push_back(MeanWholeStepOf(*rank));
  return steps;
}

bool HasSteps(const std::vector<std::optional<MeanStep>>& steps) {
  return std::ranges::any_of(steps, [](const auto& each) { return each.has_value(); });
}

// Of steps, ranks without them say nothing.
Figures FiguresOf(const Run& run, const std::vector<std::optional<MeanStep>>& steps, bool of_steps) {
  Figures figures;
  for (size_t i = 0; i < run.ranks.size(); ++i) {
    AddMemory(*run.ranks[i], &figures);
    if (of_steps && !steps[i]) continue;
    AddRank(*run.ranks[i], of_steps ? &*steps[i] : nullptr, &figures);
  }
  return figures;
}

struct Row {
  std::string_view what;
  std::string_view unit;
  // Of what all times are a part; none: it is no part of it.
  std::optional<double> difference;
};

void AddDifference(const Row& row, const std::string& name, const std::optional<double>& run, const std::optional<double>& baseline, std::vector<Json>* list) {
  const std::optional<double> difference = run && baseline ? std::optional(*run - *baseline) : std::nullopt;
  const bool is_part = difference && row.difference && *row.difference != 0;
  list->push_back({{"what", row.what}, {"name", name}, {"run", OrNull(run)}, {"baseline", OrNull(baseline)}, {"difference", OrNull(difference)},
                   {"unit", row.unit}, {"share_of_difference", is_part ? Json(*difference / *row.difference) : Json()}});
}

void AddDifferences(const Row& row, const Table& run, const Table& baseline, std::vector<Json>* list) {
  std::map<std::string, double> names = run.sums;
  names.insert(baseline.sums.begin(), baseline.sums.end());
  for (const auto& [name, value] : names) AddDifference(row, name, run.Of(name), baseline.Of(name), list);
}

void AddDifferences(const Row& row, const std::map<std::string, RankMean>& run, const std::map<std::string, RankMean>& baseline, std::vector<Json>* list) {
  std::map<std::string, RankMean> names = run;
  names.insert(baseline.begin(), baseline.end());
  const auto of = [](const std::map<std::string, RankMean>& values, const std::string& name) {
    const auto found = values.find(name);
    return found == values.end() ? std::nullopt : found->second.Get();
  };
  for (const auto& [name, value] : names) AddDifference(row, name, of(run, name), of(baseline, name), list);
}

}  // namespace

Json CompareView(const Run& run, const Run& baseline) {
  const std::vector<std::optional<MeanStep>> steps_now = StepsIn(run);
  const std::vector<std::optional<MeanStep>> steps_then = StepsIn(baseline);
  const bool of_steps = HasSteps(steps_now) && HasSteps(steps_then);
  const Figures now = FiguresOf(run, steps_now, of_steps);
  const Figures then = FiguresOf(baseline, steps_then, of_steps);
  const std::optional<double> ms_now = now.whole_ms.Get();
  const std::optional<double> ms_then = then.whole_ms.Get();
  std::optional<double> difference;
  if (ms_now && ms_then) difference = *ms_now - *ms_then;
  const std::string_view unit = of_steps ? "ms per step" : "ms";
  std::vector<Json> list;
  AddDifferences({"time", unit, difference}, now.parts, then.parts, &list);
  AddDifferences({"operator_type", unit, difference}, now.types, then.types, &list);
  AddDifferences({"operator", unit, difference}, now.operators, then.operators, &list);
  AddDifferences({"communication", unit, difference}, now.communication, then.communication, &list);
  AddDifferences({"memory", "MB", std::nullopt}, now.memory_mb, then.memory_mb, &list);
  // What only one side knows is behind all others.
  std::ranges::stable_sort(list, std::greater<>(), [](const Json& each) {
    return each["difference"].is_null() ? -1.0 : std::abs(each["difference"].get<double>());
  });
  Json json = {{"baseline", baseline.name}, {"run", run.name}, {"of", of_steps ? "step" : "run"}, {"note", nullptr}};
  for (const auto& [name, of, ms] : {std::tuple("baseline_step_ms", true, ms_then), {"run_step_ms", true, ms_now},
                                     {"baseline_ms", false, ms_then}, {"run_ms", false, ms_now}}) {
    json[name] = of == of_steps ? OrNull(ms) : Json();
  }
  if (!of_steps) {
    const bool neither = !HasSteps(steps_now) && !HasSteps(steps_then);
    json["note"] = fmt::format("{} has steps: the runs are compared as wholes", neither ? "neither run" : HasSteps(steps_now) ? "only the run" : "only the baseline");
  }
  json["difference_ms"] = !ms_now && !ms_then ? Json(0.0) : OrNull(difference);
  json["differences"] = list;
  return json;
}

}  // namespace profd::analysis
