#include "client/serve/mindinsight.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <map>
#include <span>

#include "analysis/views/views.h"
#include "base/text.h"
#include "client/serve/error_answer.h"
#include "client/serve/mindinsight_lists.h"
#include "dump/json_depth.h"

namespace profd::client {
namespace {

using analysis::Rank;
using mindinsight::FaultOfPipelineQueue;
using mindinsight::FaultOfPipelineSearch;
using mindinsight::FaultOfSearch;
using mindinsight::NumberOf;
using mindinsight::PipelineQueue;
using mindinsight::RankQuery;
using mindinsight::Rounded;
using mindinsight::SearchOperators;
using mindinsight::SearchPipeline;
using mindinsight::TensorsOf;
using mindinsight::TextOf;

Json Devices(const RankQuery& asked) {
  Json list = Json::array();
  for (const auto& rank : asked.run.ranks) {
    if (rank->device) list.push_back(std::to_string(*rank->device));
  }
  return list;
}

// The step that `type` names, 0 the average; null: there is none.
Json StepOf(const RankQuery& asked, const std::string& type) {
  int64_t number = 0;
  if (!type.empty() && !ParseNumber(std::string_view(type), &number)) return nullptr;
  if (number == 0) return analysis::StepAverageView(asked.rank);
  for (Json& step : analysis::StepsView(asked.rank)) {
    if (step["step"] == number) return std::move(step);
  }
  return nullptr;
}

Json Part(std::string_view name, double start, double duration) {
  return {{"name", name}, {"start", Rounded(start)}, {"duration", Rounded(duration)}};
}

constexpr std::string_view kDigits = "0123456789";

// Of a reduce: "stream_36" of "stream_36_parallel_0" and of "stream_36_0_AllReduce-op4542", "Reduce_0" of "Reduce_0_3".
std::string_view StreamOf(std::string_view reduce) {
  constexpr std::string_view kStream = "stream_";
  const size_t end = reduce.starts_with(kStream) ? reduce.find_first_not_of(kDigits, kStream.size()) : std::string_view::npos;
  return reduce.substr(0, end != std::string_view::npos ? end : reduce.rfind('_'));
}
// Its number; of what has none, its name.
Json NumberOfStream(std::string_view stream) {
  int64_t number = 0;
  return ParseNumber(stream.substr(stream.find_last_not_of(kDigits) + 1), &number) ? Json(number) : Json(stream);
}

// [total], its parts, then a line per stream: gaps without a name and reduces in turn, from forward to the end.
Json GraphOf(const Json& step) {
  const double total = NumberOf(step, "total_ms");
  const double interval = NumberOf(step, "iteration_interval_ms");
  const double fp_and_bp = NumberOf(step, "fp_and_bp_ms");
  Json graph = Json::array({Json::array({Part("", 0, total)})});
  graph.push_back(Json::array({Part("iteration_interval", 0, interval), Part("fp_and_bp", interval, fp_and_bp),
                               Part("tail", interval + fp_and_bp, NumberOf(step, "tail_ms"))}));
  std::map<std::string, std::vector<Json>> streams;
  for (const Json& reduce : step["reduces"]) {
    const std::string name = reduce["name"].get<std::string>();
    streams[std::string(StreamOf(name))].push_back(reduce);
  }
  for (const auto& [stream, reduces] : streams) {
    Json line = Json::array();
    double at = interval;
    for (const Json& reduce : reduces) {
      const double start = NumberOf(reduce, "start_ms");
      line.push_back(Part("", at, std::max(start - at, 0.0)));
      line.push_back(Part(reduce["name"].get<std::string>(), start, NumberOf(reduce, "duration_ms")));
      at = std::max(at, start + NumberOf(reduce, "duration_ms"));
    }
    line.push_back(Part("", at, std::max(total - at, 0.0)));
    graph.push_back(std::move(line));
  }
  return graph;
}

std::string Percent(double part, double total) { return fmt::format("{:.2f}%", total > 0 ? part / total * 100 : 0); }

Json StepSummary(const RankQuery& asked, const Json& step) {
  const double total = NumberOf(step, "total_ms");
  Json summary = {{"total_time", Rounded(total)}};
  for (const auto& [name, field] : {std::pair("iteration_interval", "iteration_interval_ms"), std::pair("fp_and_bp", "fp_and_bp_ms"),
                                    std::pair("tail", "tail_ms")}) {
    summary[name] = Rounded(NumberOf(step, field));
    summary[std::string(name) + "_percent"] = Percent(NumberOf(step, field), total);
  }
  summary["total_steps"] = asked.rank.steps.size();
  return summary;
}

std::string FaultOfStep(const RankQuery& asked) {
  const std::string type = asked.Parameter("type");
  // Without steps there is no average either.
  return type.empty() || type == "0" || !StepOf(asked, type).is_null() ? "" : fmt::format("there is no step {}", type);
}

Json TrainingTrace(const RankQuery& asked) {
  const Json step = StepOf(asked, asked.Parameter("type"));
  const size_t size = asked.rank.steps.size();
  if (step.is_null()) return {{"size", size}, {"training_trace_graph", Json::array()}, {"summary", Json::object()}, {"point_info", Json::object()}};
  const Json points = analysis::StepPointsView(asked.rank);
  Json info = Json::object();
  if (points.is_object()) info = {{"fp_start", points["fp_start"]}, {"bp_end", points["bp_end"]}};
  return {{"size", size}, {"training_trace_graph", GraphOf(step)}, {"summary", StepSummary(asked, step)}, {"point_info", std::move(info)}};
}

// `type` is one of `types`, or left out.
std::string FaultOfType(const RankQuery& asked, std::span<const std::string_view> types) {
  const std::string type = asked.Parameter("type");
  return type.empty() || std::ranges::find(types, type) != types.end() ? "" : fmt::format("type is not one of {}", fmt::join(types, ", "));
}
std::string FaultOfTime(const RankQuery& asked) {
  return FaultOfType(asked, std::to_array<std::string_view>({"iteration_interval", "fp_and_bp", "tail"}));
}
std::string FaultOfQueue(const RankQuery& asked) { return FaultOfType(asked, std::to_array<std::string_view>({"get_next", "device_queue"})); }

Json TargetTime(const RankQuery& asked) {
  const std::string type = asked.Parameter("type").empty() ? "iteration_interval" : asked.Parameter("type");
  Json values = Json::array();
  const std::string field = type + "_ms";
  for (const Json& step : analysis::StepsView(asked.rank)) {
    if (step.contains(field) && step[field].is_number()) values.push_back(Rounded(step[field].get<double>()));
  }
  const Json average = analysis::StepAverageView(asked.rank);
  Json summary = average.is_null() ? Json(Json::object()) : StepSummary(asked, average);
  return {{"size", values.size()}, {"info", {{type, std::move(values)}}}, {"summary", std::move(summary)}};
}

Json QueueOf(const Json& pipeline, std::string_view name) {
  if (pipeline.is_object()) {
    for (const Json& queue : pipeline["queues"]) {
      if (queue["queue"] == name) return queue;
    }
  }
  return nullptr;
}

Json QueueInfo(const RankQuery& asked) {
  const bool chip = asked.Parameter("type") != "device_queue";
  const Json queue = QueueOf(analysis::DataPipelineView(asked.rank), chip ? "device" : "host");
  if (queue.is_null()) return {{"size", 0}, {"info", {{"queue", Json::array()}}}, {"summary", {{"queue_summary", Json::object()}}}};
  Json summary = {{"empty_queue", queue["empty"]}};
  if (!queue["full"].is_null()) summary["full_queue"] = queue["full"];
  return {{"size", queue["total"]}, {"info", {{"queue", queue["sizes"]}}}, {"summary", {{"queue_summary", std::move(summary)}}}};
}

Json MindDataOp(const RankQuery& asked) {
  const bool chip = asked.Parameter("type") != "device_queue";
  const analysis::Pipeline& pipeline = asked.rank.pipeline;
  const auto mean = [](const std::vector<double>& values) {
    double sum = 0;
    for (const double value : values) sum += value;
    return values.empty() ? 0 : sum / static_cast<double>(values.size());
  };
  if (chip) {
    return {{"size", pipeline.get_next_ms.size()}, {"info", {{"get_next", pipeline.get_next_ms}}},
            {"summary", {{"time_summary", {{"avg_cost", fmt::format("{}", mean(pipeline.get_next_ms))}}}}}};
  }
  return {{"size", pipeline.total_ms.size()},
          {"info", {{"total_cost", pipeline.total_ms}, {"push_cost", pipeline.push_ms}, {"get_cost", pipeline.get_ms}}},
          {"summary", {{"time_summary", {{"avg_cost", mean(pipeline.total_ms)}, {"get_cost", mean(pipeline.get_ms)},
                                         {"push_cost", mean(pipeline.push_ms)}}}}}};
}

Json ProcessSummary(const RankQuery& asked) {
  const Json pipeline = analysis::DataPipelineView(asked.rank);
  Json summary = Json::object();
  if (!pipeline.is_object()) return summary;
  for (const Json& stage : pipeline["rules_1_0"]["stages"]) summary[stage["stage"].get<std::string>()] = {{"status", stage["status"]}};
  const Json chip = QueueOf(pipeline, "device");
  if (!chip.is_null()) {
    summary["get_next_queue_info"] = {{"summary", {{"empty_batch_count", chip["empty"]}, {"total_batch", chip["total"]}}}};
  }
  const Json host = QueueOf(pipeline, "host");
  if (!host.is_null()) {
    summary["device_queue_info"] = {{"summary", {{"empty_batch_count", host["empty"]}, {"full_batch_count", host["full"]},
                                                 {"total_batch", host["total"]}}}};
  }
  return summary;
}

Json Propose(const RankQuery& asked) {
  Json made = Json::object();
  const Json average = analysis::StepAverageView(asked.rank);
  if (average.is_object() && NumberOf(average, "iteration_interval_ms") > 0.5) {
    made["step_trace-proposer_type_label"] = {"data processing to graph execution can be improved"};
    made["step_trace-iter_interval"] = {fmt::format("{:.4f}", NumberOf(average, "iteration_interval_ms"))};
  }
  const Json pipeline = analysis::DataPipelineView(asked.rank);
  if (pipeline.is_object() && !pipeline["suggestions"].empty()) made["minddata_pipeline-general"] = pipeline["suggestions"];
  return made;
}

Json TimelineSummary(const RankQuery& asked) {
  const Json timeline = analysis::TimelineView(asked.rank);
  return {{"total_time", NumberOf(timeline, "total_ms") * 1000}, {"num_of_streams", timeline["streams"]},
          {"num_of_ops", timeline["operators"]}, {"op_exe_times", timeline["executions"]}};
}

// Where the first operator starts (analysis 4.2); without one where anything does.
int64_t TimeZeroOf(const Rank& rank) {
  int64_t first = INT64_MAX;
  for (const analysis::Execution& each : rank.executions) {
    const bool counts = !rank.TextOf(rank.operators[static_cast<size_t>(each.op)].name).starts_with("assign");
    if (counts) first = std::min(first, each.start_ns);
  }
  return first == INT64_MAX ? analysis::BeginOf(rank) : first;
}

// Operators of the AI CPU are not in it: their times are on a clock of their own.
Json TimelineEvents(const RankQuery& asked) {
  constexpr size_t kMostEvents = 200'000;
  constexpr int kReducePid = 10'000;  // analysis 4.4
  const Rank& rank = asked.rank;
  const int64_t begin = TimeZeroOf(rank);
  Json events = Json::array();
  size_t most = kMostEvents / 2;  // of reduces; the rest is for executions
  const auto add = [&](std::string_view name, std::string_view thread, const analysis::Interval& span, int pid, Json args) {
    if (events.size() == most) return;
    events.push_back({{"name", name}, {"ph", "X"}, {"tid", NumberOfStream(thread)}, {"ts", static_cast<double>(span.start_ns - begin) / 1000},
                      {"dur", static_cast<double>(span.end_ns - span.start_ns) / 1000}, {"pid", pid}, {"args", std::move(args)}});
  };
  for (const analysis::Step& step : rank.steps) {
    for (const analysis::Reduce& reduce : step.reduces) {
      const std::string_view name = rank.TextOf(reduce.name);
      add(name, StreamOf(name), {reduce.start_ns, reduce.end_ns}, kReducePid, Json::object());
    }
  }
  most = kMostEvents;
  for (const analysis::Execution& each : rank.executions) {
    if (events.size() == most) break;
    const analysis::Operator& op = rank.operators[static_cast<size_t>(each.op)];
    const std::string_view full = rank.TextOf(op.name);
    Json args = {{"type", rank.TextOf(op.type)}, {"fullname", full}};
    args.update(TensorsOf(rank, op));
    add(full.substr(full.rfind('/') + 1), rank.lanes[static_cast<size_t>(each.lane)].name, {each.start_ns, each.end_ns}, rank.device.value_or(0), std::move(args));
  }
  return events;
}

struct Path {
  std::string_view name;
  std::string_view method;
  Json (*answer)(const RankQuery& asked);
  std::string (*fault)(const RankQuery& asked) = nullptr;  // what cannot be answered, and why; empty: it can
};
constexpr auto kPaths = std::to_array<Path>({
    {"devices", "GET", Devices},
    {"training-trace/graph", "GET", TrainingTrace, FaultOfStep},
    {"training-trace/target-time-info", "GET", TargetTime, FaultOfTime},
    {"queue_info", "GET", QueueInfo, FaultOfQueue},
    {"minddata_op", "GET", MindDataOp, FaultOfQueue},
    {"process_summary", "GET", ProcessSummary},
    {"summary/propose", "GET", Propose},
    {"timeline-summary", "GET", TimelineSummary},
    {"timeline", "GET", TimelineEvents},
    {"minddata-pipeline/queue", "GET", PipelineQueue, FaultOfPipelineQueue},
    {"minddata-pipeline/op-queue", "POST", SearchPipeline, FaultOfPipelineSearch},
    {"ops/search", "POST", SearchOperators, FaultOfSearch},
});

}  // namespace

std::optional<WebAnswer> AnswerAsMindInsight(std::string_view path, const WebRequest& request, const analysis::Run& run) {
  const auto found = std::ranges::find(kPaths, path, &Path::name);
  if (found == kPaths.end()) return std::nullopt;
  if (request.method != found->method) return ErrorAnswer(405, "invalid_argument", fmt::format("{} only", found->method));
  // Values of a body are printed and compared on the stack.
  constexpr int kMaxNesting = 16;
  if (NestsTooDeep(request.body, kMaxNesting)) return ErrorAnswer(400, "invalid_argument", "the body nests too deep");
  Json body = request.body.empty() ? Json(Json::object()) : Json::parse(request.body, nullptr, false);
  if (!body.is_object()) return ErrorAnswer(400, "invalid_argument", "the body is not a JSON object");
  const auto parameter = request.query.find("device_id");
  std::string device = parameter == request.query.end() ? "" : parameter->second;
  if (body.contains("device_id") && !body["device_id"].is_null()) device = TextOf(body["device_id"]);
  // Where no rank has a number of a device, each number is the first one's.
  const bool by_device = !device.empty() && std::ranges::any_of(run.ranks, [](const auto& each) { return each->device.has_value(); });
  std::vector<const Rank*> named;
  for (const auto& each : run.ranks) {
    if (by_device && each->device && std::to_string(*each->device) == device) named.push_back(each.get());
  }
  if (!by_device) named.push_back(run.ranks.front().get());
  if (named.empty()) return ErrorAnswer(404, "not_found", fmt::format("there is no device {}", device));
  if (named.size() > 1) {
    return ErrorAnswer(400, "invalid_argument", fmt::format("{} ranks have the device {}; name the run of one of them, /api/runs has those", named.size(), device));
  }
  const RankQuery asked{request, run, *named.front(), std::move(body)};
  if (const std::string fault = found->fault == nullptr ? "" : found->fault(asked); !fault.empty()) return ErrorAnswer(400, "invalid_argument", fault);
  return WebAnswer{200, "application/json", JsonText(found->answer(asked), false)};
}

}  // namespace profd::client
