// What the device executed, by type and by name (analysis 4.2), and what bounds each operator.
#include <algorithm>
#include <map>
#include <numeric>
#include <set>
#include <tuple>
#include <utility>

#include "analysis/views/views.h"

namespace profd::analysis {
namespace {

using Times = ExecutionTimes;

// All with one name, type and kind of core, whatever their shapes are.
struct NamedOperator {
  Operator op;
  std::vector<int32_t> places;  // in Rank::operators, one for each shape
  Times times;

  bool shapes_differ() const { return places.size() > 1; }
};

void AddAll(const std::vector<double>& values, std::vector<double>* sums) {
  for (size_t i = 0; i < values.size(); ++i) Rank::AddTo(sums, i, values[i]);
}

// Those that were executed, by their first.
std::vector<NamedOperator> NamedOperators(const Rank& rank) {
  const std::vector<Times> times = TimesOf(rank);
  std::vector<NamedOperator> named;
  std::map<std::tuple<TextId, TextId, TextId>, size_t> known;
  for (size_t i = 0; i < times.size(); ++i) {
    if (times[i].count == 0) continue;
    const Operator& op = rank.operators[i];
    const auto [it, is_new] = known.try_emplace({op.name, op.type, op.core}, named.size());
    if (is_new) {
      named.push_back({op, {static_cast<int32_t>(i)}, times[i]});
      continue;
    }
    NamedOperator& of = named[it->second];
    of.times.Add(times[i]);
    of.places.push_back(static_cast<int32_t>(i));
    AddAll(op.ratio_ns, &of.op.ratio_ns);
    of.op.counted_ns += op.counted_ns;
  }
  return named;
}

std::vector<NamedOperator> LongestFirst(const Rank& rank) {
  std::vector<NamedOperator> named = NamedOperators(rank);
  std::ranges::stable_sort(named, std::greater<>(), [](const NamedOperator& each) { return each.times.total_ns; });
  return named;
}

Json TimesJson(Json json, const Times& times, int64_t all_ns) {
  json["count"] = times.count;
  json["total_ms"] = Ms(times.total_ns);
  json["share"] = all_ns <= 0 ? 0.0 : static_cast<double>(times.total_ns) / static_cast<double>(all_ns);
  json["min_ms"] = Ms(times.min_ns);
  json["mean_ms"] = times.MeanMs();
  json["max_ms"] = Ms(times.max_ns);
  return json;
}

Json NamedJson(const Rank& rank, const NamedOperator& each, int64_t all_ns) {
  return TimesJson({{"name", TextOrNull(rank, each.op.name)}, {"type", TextOrNull(rank, each.op.type)}, {"core", TextOrNull(rank, each.op.core)}},
                   each.times, all_ns);
}

int64_t AllOf(const std::vector<NamedOperator>& named) {
  return std::accumulate(named.begin(), named.end(), int64_t{0}, [](int64_t sum, const NamedOperator& each) { return sum + each.times.total_ns; });
}

std::string_view KindOf(std::string_view core) {
  constexpr std::pair<std::string_view, std::string_view> kKinds[] = {
      {"HCCL", "communication"}, {"COMMUNICATION", "communication"}, {"MIX", "mixed"},   {"AI_CPU", "ai_cpu"},
      {"AICPU", "ai_cpu"},       {"AI_VECTOR_CORE", "vector"},       {"VECTOR", "vector"}, {"AIV", "vector"},
      {"AI_CORE", "ai_core"},    {"AICORE", "ai_core"},              {"AIC", "ai_core"},   {"KERNEL_AICORE", "ai_core"}};
  for (const auto& [begin, kind] : kKinds) {
    if (core.starts_with(begin)) return kind;
  }
  return "other";
}

// A unit that is busy for more than this part of the time bounds the operator (analysis 1.3).
constexpr double kBound = 0.8;

// The unit of a counter: "mac" of "aic_mac", without what is not a unit.
std::string_view UnitOf(std::string_view ratio) {
  for (const std::string_view prefix : {"aic_", "aiv_"}) {
    if (ratio.starts_with(prefix)) ratio.remove_prefix(prefix.size());
  }
  for (const std::string_view unit : {"mac", "vec", "scalar", "mte1", "mte2", "mte3", "fixpipe"}) {
    if (ratio == unit) return unit;
  }
  return {};
}

Json BoundOf(const Rank& rank, const Operator& op) {
  if (op.counted_ns <= 0) return nullptr;
  double most = 0;
  std::string_view unit;
  for (size_t i = 0; i < op.ratio_ns.size(); ++i) {
    const std::string_view its = UnitOf(rank.ratio_names[i]);
    const double ratio = op.Ratio(i);
    if (its.empty() || ratio <= most) continue;
    most = ratio;
    unit = its;
  }
  if (most <= 0) return nullptr;
  return most > kBound ? Json(unit) : Json("none");
}

Json RatiosOf(const Rank& rank, const Operator& op) {
  Json json = Json::object();
  if (op.counted_ns <= 0) return json;
  for (size_t i = 0; i < op.ratio_ns.size(); ++i) json[rank.ratio_names[i]] = op.Ratio(i);
  return json;
}

}  // namespace

Json OperatorKindsView(const Rank& rank) {
  const std::vector<NamedOperator> named = NamedOperators(rank);
  struct OfKind {
    Times times;
    std::set<TextId> types;
    uint64_t operators = 0;
  };
  std::map<std::string_view, OfKind> kinds;
  for (const NamedOperator& each : named) {
    OfKind& kind = kinds[KindOf(rank.TextOf(each.op.core))];
    kind.times.Add(each.times);
    kind.types.insert(each.op.type);
    ++kind.operators;
  }
  std::vector<std::pair<std::string_view, OfKind>> sorted(kinds.begin(), kinds.end());
  std::ranges::stable_sort(sorted, std::greater<>(), [](const auto& each) { return each.second.times.total_ns; });
  const int64_t all = AllOf(named);
  Json list = Json::array();
  for (const auto& [name, kind] : sorted) {
    Json json = TimesJson({{"kind", name}}, kind.times, all);
    json["types"] = kind.types.size();
    json["operators"] = kind.operators;
    list.push_back(std::move(json));
  }
  return list;
}

namespace {

// The busiest of some units; empty: none was counted.
struct Busiest {
  std::string_view unit;
  double ratio = 0;
};
Busiest BusiestOf(const Rank& rank, const Operator& op, std::initializer_list<std::string_view> units) {
  Busiest most;
  for (size_t i = 0; i < op.ratio_ns.size(); ++i) {
    const std::string_view its = UnitOf(rank.ratio_names[i]);
    if (its.empty() || std::ranges::find(units, its) == units.end()) continue;
    const double ratio = op.Ratio(i);
    if (most.unit.empty() || ratio > most.ratio) most = {its, ratio};
  }
  return most;
}

Json UnitJson(const Busiest& busiest) {
  return busiest.unit.empty() ? Json() : Json{{"unit", busiest.unit}, {"of_peak", busiest.ratio}};
}

}  // namespace

// A unit that is busy all the time works at its peak, so the busy share of the busiest one is how near an operator is to
// what the chip can do for it.
Json RooflineView(const Rank& rank) {
  const std::vector<NamedOperator> named = LongestFirst(rank);
  const int64_t all = AllOf(named);
  Json list = Json::array();
  for (const NamedOperator& each : named) {
    const Busiest compute = BusiestOf(rank, each.op, {"mac", "vec"});
    const Busiest memory = BusiestOf(rank, each.op, {"mte2", "mte3", "mte1", "fixpipe"});
    const double most = std::min(1.0, std::max(compute.ratio, memory.ratio));
    if (most <= 0) continue;
    const std::string_view limit = most <= kBound ? "none" : compute.ratio >= memory.ratio ? "compute" : "memory";
    Json json = NamedJson(rank, each, all);
    json["compute"] = UnitJson(compute);
    json["memory"] = UnitJson(memory);
    json["limit"] = limit;
    json["of_peak"] = most;
    json["at_peak_ms"] = Ms(each.times.total_ns) * most;
    list.push_back(std::move(json));
  }
  return list.empty() ? Json() : list;
}

Json OperatorTypesView(const Rank& rank) {
  const std::vector<NamedOperator> named = NamedOperators(rank);
  struct OfType {
    Times times;
    uint64_t operators = 0;
    double means_ms = 0;
  };
  std::map<std::pair<TextId, TextId>, OfType> types;  // and core
  for (const NamedOperator& each : named) {
    OfType& type = types[{each.op.type, each.op.core}];
    type.times.Add(each.times);
    ++type.operators;
    type.means_ms += each.times.MeanMs();
  }
  std::vector<std::pair<std::pair<TextId, TextId>, OfType>> sorted(types.begin(), types.end());
  std::ranges::stable_sort(sorted, std::greater<>(), [](const auto& each) { return each.second.times.total_ns; });
  const int64_t all = AllOf(named);
  Json list = Json::array();
  for (const auto& [key, type] : sorted) {
    Json json = TimesJson({{"type", TextOrNull(rank, key.first)}, {"core", TextOrNull(rank, key.second)}}, type.times, all);
    json["kind"] = KindOf(rank.TextOf(key.second));
    // As MindInsight counts: how many operators have the type, and the mean of each of them added up.
    json["operators"] = type.operators;
    json["execution_time_ms"] = type.means_ms;
    list.push_back(std::move(json));
  }
  return list;
}

Json OperatorsView(const Rank& rank) {
  const std::vector<NamedOperator> named = LongestFirst(rank);
  const int64_t all = AllOf(named);
  Json list = Json::array();
  for (const NamedOperator& each : named) {
    const Operator& op = each.op;
    Json json = NamedJson(rank, each, all);
    json["kind"] = KindOf(rank.TextOf(op.core));
    json["input_shapes"] = each.shapes_differ() ? Json() : TextOrNull(rank, op.input_shapes);
    json["output_shapes"] = each.shapes_differ() ? Json() : TextOrNull(rank, op.output_shapes);
    json["input_types"] = TextOrNull(rank, op.input_types);
    json["bound"] = BoundOf(rank, op);
    json["ratios"] = RatiosOf(rank, op);
    list.push_back(std::move(json));
  }
  return list;
}

std::vector<std::vector<int32_t>> LongestOperators(const Rank& rank) {
  constexpr size_t kMost = 10;
  std::vector<NamedOperator> named = LongestFirst(rank);
  std::vector<std::vector<int32_t>> longest;
  for (size_t i = 0; i < std::min(named.size(), kMost); ++i) longest.push_back(std::move(named[i].places));
  return longest;
}

Json CpuOperatorsView(const Rank& rank) {
  Json list = Json::array();
  for (size_t i = 0; i < rank.cpu_operators.size(); ++i) {
    const CpuOperator& op = rank.cpu_operators[i];
    list.push_back({{"serial_number", i + 1}, {"type", TextOrNull(rank, op.type)}, {"total_ms", op.total_ms},
                    {"dispatch_ms", op.dispatch_ms}, {"run_start", op.run_start}, {"run_end", op.run_end}});
  }
  return list;
}

Json TimelineView(const Rank& rank) {
  std::set<int32_t> streams;
  std::set<TextId> names;
  if (rank.sums) {
    ExecutionTimes all;
    for (size_t i = 0; i < rank.sums->operators.size(); ++i) {
      if (rank.sums->operators[i].count == 0) continue;
      names.insert(rank.operators[i].name);
      all.Add(rank.sums->operators[i]);
    }
    return {{"streams", rank.sums->streams}, {"operators", names.size()}, {"executions", rank.sums->executions}, {"total_ms", Ms(all.total_ns)}};
  }
  int64_t total = 0;
  for (const Execution& each : rank.executions) {
    streams.insert(each.lane);
    names.insert(rank.operators[static_cast<size_t>(each.op)].name);
    total += each.end_ns - each.start_ns;
  }
  return {{"streams", streams.size()}, {"operators", names.size()}, {"executions", rank.executions.size()}, {"total_ms", Ms(total)}};
}

}  // namespace profd::analysis
