#include "analysis/views/views.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>

#include "base/text.h"

namespace profd::analysis {
namespace {

constexpr auto kViews = std::to_array<View>({
    {"overall", OverallView, "computing, communication and free time, end to end"},
    {"steps", StepsView, "each training step and its parts"},
    {"step_average", StepAverageView, "the mean over complete steps"},
    {"step_points", StepPointsView, "where forward starts and backward ends"},
    {"step_distribution", StepDistributionView, "how the lengths of steps spread, and outliers"},
    {"operator_kinds", OperatorKindsView, "operators by kind of core: AI Core, vector, mixed, AI CPU"},
    {"operator_types", OperatorTypesView, "operators by type and kind of core"},
    {"operators", OperatorsView, "operators by name, with counters and what bounds them", true},
    {"roofline", RooflineView, "how near operators are to the peak of the units that bound them", true},
    {"ai_cpu", CpuOperatorsView, "operators of the AI CPU, where they have a log of their own"},
    {"data_pipeline", DataPipelineView, "queues of the input pipeline and its bottleneck"},
    {"timeline", TimelineView, "streams, operators and executions in numbers"},
    {"communication", CommunicationView, "operations of communication and their speed"},
    {"links", LinksView, "traffic between ranks by link"},
    {"memory", MemoryView, "memory by component, its peak and who held it"},
    {"hardware", HardwareView, "counters of the hardware, by step and by operator", true},
    {"marks", MarksView, "marks and ranges of the application"},
    {"environment", EnvironmentView, "variables of the training process, as its profiler kept them"},
});

// Those that do not need what may have been left out of a rank of many.
const ViewNames kWithoutDetails = {"overall", "steps", "step_average", "step_distribution", "step_points", "communication", "links", "environment"};

Json OverallJson(double e2e_ms, const Shares& shares) {
  return {{"e2e_ms", e2e_ms}, {"computing_ms", shares.computing}, {"communication_ms", shares.communication},
          {"uncovered_communication_ms", shares.uncovered}, {"overlapped_ms", shares.overlapped()}, {"free_ms", shares.free}};
}

}  // namespace

std::span<const View> Views() { return kViews; }

double NumberOf(const Json& object, const char* name) {
  const auto found = object.find(name);
  return found != object.end() && found->is_number() ? found->get<double>() : 0;
}

void ReserveFields(size_t fields, Json* object) { object->get_ref<Json::object_t&>().reserve(fields); }

Json TextOrNull(const Rank& rank, TextId id) {
  const std::string_view text = rank.TextOf(id);
  return text.empty() ? Json() : Json(text);
}

int64_t BeginOf(const Rank& rank) {
  if (rank.sums) return rank.sums->begin_ns;
  int64_t begin = INT64_MAX;
  for (const Step& step : rank.steps) begin = std::min(begin, step.start_ns);
  for (const Execution& each : rank.executions) begin = std::min(begin, each.start_ns);
  for (const Slice& each : rank.slices) begin = std::min(begin, each.start_ns);
  for (const Mark& each : rank.marks) begin = std::min(begin, each.start_ns);
  begin = std::min(begin, rank.first_call_ns.value_or(INT64_MAX));
  if (begin != INT64_MAX) return begin;
  for (const auto& series : rank.hardware) {
    if (!series->points.empty()) begin = std::min(begin, series->points.front().t_ns);
  }
  for (const auto& [name, samples] : rank.memory) {
    for (const MemorySample& each : samples) begin = std::min(begin, each.t_ns);
  }
  return begin == INT64_MAX ? 0 : begin;
}

std::optional<Overall> OverallOf(const Rank& rank) {
  if (rank.overall) return rank.overall;
  if (rank.sums) return rank.sums->has_overall ? std::optional(Overall{rank.sums->e2e_ms, rank.sums->overall}) : std::nullopt;
  std::optional<Interval> span = rank.span;
  if (!span) span = exporting::operators::ExtentOf(rank.overlap);
  Shares all;
  if (!span) {
    // Only sums that another tool had made.
    if (rank.shares.empty()) return std::nullopt;
    for (const auto& [step, shares] : rank.shares) all.Add(shares);
    return Overall{all.whole(), all};
  }
  const auto of = [&](OverlapKind kind) { return MsWithin(rank.overlap[kind], *span); };
  int64_t total_ns = span->end_ns - span->start_ns;
  if (rank.recorded && !rank.span) {  // of recordings one after another the time between them is not free, but not known
    total_ns = 0;
    for (const OverlapKind kind : {OverlapKind::kComputing, OverlapKind::kNotOverlapped, OverlapKind::kFree}) {
      for (const Interval& each : rank.overlap[kind]) total_ns += each.end_ns - each.start_ns;
    }
  }
  const double total = Ms(total_ns);
  all.computing = of(OverlapKind::kComputing);
  all.communication = of(OverlapKind::kCommunication);
  all.uncovered = of(OverlapKind::kNotOverlapped);
  all.free = Ms(std::llround((total - all.computing - all.uncovered) * 1e6));  // what is 0 is not a little below it
  return Overall{total, all};
}

bool LacksOperators(const Run& run) {
  return std::ranges::all_of(run.ranks, [](const auto& rank) { return rank->source == "dump" && !OverallOf(*rank); });
}

Json OverallView(const Rank& rank) {
  const std::optional<Overall> overall = OverallOf(rank);
  return overall ? OverallJson(overall->e2e_ms, overall->shares) : Json();
}

Json EnvironmentView(const Rank& rank) {
  return rank.environment.empty() ? Json() : Json(rank.environment);
}

Json RankJson(const Rank& rank, const ViewNames& only) {
  Json json = {{"rank", OrNull(rank.rank)}, {"device", OrNull(rank.device)},
               {"host", HostOf(rank)}, {"source", rank.source}, {"path", rank.path}};
  ReserveFields(json.size() + kViews.size() + 1, &json);
  for (const View& view : kViews) {
    if (!only.empty() && !only.contains(view.name)) continue;
    json[std::string(view.name)] = rank.details_left_out && !kWithoutDetails.contains(view.name) ? Json() : view.make(rank);
  }
  return json;
}

Json RunJson(const Run& run, const ViewNames& only) {
  Json json = Json::object();
  constexpr size_t kFields = 8;
  ReserveFields(kFields, &json);
  json["run"] = {{"name", run.name}, {"inputs", run.inputs}};
  json["ranks"] = Json::array();
  for (const auto& rank : run.ranks) json["ranks"].push_back(RankJson(*rank, only));
  json["problems"] = ProblemsJson(run, nullptr);
  return json;
}

Json ProblemsJson(const std::vector<Problem>& problems) {
  Json list = Json::array();
  for (const Problem& problem : problems) list.push_back({{"where", problem.where}, {"what", problem.what}});
  return list;
}

Json ProblemsJson(const Run& run, const Run* baseline_or_null) {
  std::vector<Problem> problems = run.problems;
  if (baseline_or_null != nullptr) problems.insert(problems.end(), baseline_or_null->problems.begin(), baseline_or_null->problems.end());
  for (const auto& rank : run.ranks) {
    const size_t steps = HardwareStepsOf(*rank);
    if (rank->hardware.empty() || steps == rank->steps.size()) continue;
    problems.push_back({rank->path, fmt::format("means of the hardware's counters are of the first {} of {} steps", steps, rank->steps.size())});
  }
  return ProblemsJson(problems);
}

}  // namespace profd::analysis
