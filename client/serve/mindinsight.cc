#include "client/serve/mindinsight.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <map>
#include <set>
#include <span>

#include "analysis/views/views.h"
#include "base/text.h"

namespace profd::client {
namespace {

using analysis::Rank;

// MindInsight's four decimals.
double Rounded(double value) { return std::round(value * 1e4) / 1e4; }
double NumberOf(const Json& object, const char* name) {
  const auto found = object.find(name);
  return found != object.end() && found->is_number() ? found->get<double>() : 0;
}

struct RankQuery {
  const WebRequest& request;
  const analysis::Run& run;
  const Rank& rank;
  Json body;

  std::string Parameter(const std::string& name) const {
    const auto found = request.query.find(name);
    return found == request.query.end() ? std::string() : found->second;
  }
};

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

// "input_0": {"format": ..., "data_type": ..., "shape": ...} and so on, of lists with ';' between; a scalar's shape is empty.
void AddTensors(std::string_view what, std::string_view shapes, std::string_view types, std::string_view formats, Json* info) {
  const auto next = [](std::string_view* list) {
    const size_t end = std::min(list->find(';'), list->size());
    const std::string_view first = list->substr(0, end);
    list->remove_prefix(std::min(end + 1, list->size()));
    return first;
  };
  int64_t tensors = 0;
  for (const std::string_view list : {shapes, types, formats}) {
    if (!list.empty()) tensors = std::max<int64_t>(tensors, std::ranges::count(list, ';') + 1);
  }
  const bool typed = !types.empty();
  const bool formatted = !formats.empty();
  for (int64_t number = 0; number < tensors; ++number) {
    Json& tensor = (*info)[fmt::format("{}_{}", what, number)];
    if (formatted) tensor["format"] = next(&formats);
    if (typed) tensor["data_type"] = next(&types);
    tensor["shape"] = next(&shapes);
  }
}
Json TensorsOf(const Rank& rank, const analysis::Operator& op) {
  Json info = Json::object();
  AddTensors("input", rank.TextOf(op.input_shapes), rank.TextOf(op.input_types), rank.TextOf(op.input_formats), &info);
  AddTensors("output", rank.TextOf(op.output_shapes), rank.TextOf(op.output_types), rank.TextOf(op.output_formats), &info);
  return info;
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
      line.push_back(Part("", at, start - at));
      line.push_back(Part(reduce["name"].get<std::string>(), start, NumberOf(reduce, "duration_ms")));
      at = start + NumberOf(reduce, "duration_ms");
    }
    line.push_back(Part("", at, total - at));
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

// `type` is one of these, or left out.
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

// Operators of the AI CPU are not in it: their times are on a clock of their own.
Json TimelineEvents(const RankQuery& asked) {
  constexpr size_t kMostEvents = 200'000;
  constexpr int kReducePid = 10'000;  // analysis 4.4
  const Rank& rank = asked.rank;
  const int64_t begin = analysis::BeginOf(rank);
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

// Rows as MindInsight filters, sorts and cuts them (analysis 4.2).
struct Listing {
  std::vector<std::string> columns;
  std::vector<Json> rows;  // each a list

  size_t Column(const std::string& name) const {
    return static_cast<size_t>(std::ranges::find(columns, name) - columns.begin());
  }
};

std::string Lower(std::string text) {
  std::ranges::transform(text, text.begin(), [](unsigned char c) { return static_cast<char>(std::tolower(c)); });
  return text;
}
std::string TextOf(const Json& value) { return value.is_string() ? value.get<std::string>() : value.dump(); }

bool Passes(const Json& value, const Json& rule) {
  if (!rule.is_object()) return true;
  const auto among = [&value](const Json& list) {
    return list.is_array() && std::ranges::any_of(list, [&value](const Json& each) { return TextOf(each) == TextOf(value); });
  };
  if (rule.contains("in") && !among(rule["in"])) return false;
  if (rule.contains("not_in") && among(rule["not_in"])) return false;
  const auto partial = rule.find("partial_match_str_in");
  if (partial == rule.end() || !partial->is_array()) return true;
  return std::ranges::any_of(*partial, [&value](const Json& each) {
    return Lower(TextOf(value)).find(Lower(TextOf(each))) != std::string::npos;
  });
}

// Analysis 4.2; none: it is something else.
std::optional<int64_t> IntIn(const Json& object, const char* name, int64_t otherwise, int64_t least, int64_t most) {
  const auto found = object.find(name);
  if (found == object.end()) return otherwise;
  if (!found->is_number_integer() || *found < least || *found > most) return std::nullopt;
  return found->get<int64_t>();
}
std::optional<int64_t> LimitOf(const Json& group) { return IntIn(group, "limit", 10, 1, 100); }
std::optional<int64_t> OffsetOf(const Json& group) { return IntIn(group, "offset", 0, 0, 1'000'000); }

std::string FaultOfGroup(const RankQuery& asked) {
  const auto group = asked.body.find("group_condition");
  if (group == asked.body.end() || group->is_null()) return "";
  if (!group->is_object()) return "group_condition is not an object";
  if (!LimitOf(*group)) return "limit of group_condition is not a number from 1 to 100";
  return OffsetOf(*group) ? "" : "offset of group_condition is not a number from 0 to 1000000";
}

Json Answer(Listing listing, const Json& body) {
  const Json none = Json::object();
  const auto part = [&](const char* name) -> const Json& {
    const auto found = body.find(name);
    return found != body.end() && found->is_object() ? *found : none;
  };
  for (const auto& [name, rule] : part("filter_condition").items()) {
    const size_t column = listing.Column(name);
    if (column == listing.columns.size()) continue;
    std::erase_if(listing.rows, [&rule = rule, column](const Json& row) { return !Passes(row[column], rule); });
  }
  const Json& sort = part("sort_condition");
  const size_t by = sort.contains("name") ? listing.Column(TextOf(sort["name"])) : listing.columns.size();
  if (by < listing.columns.size()) {
    const bool down = !sort.contains("type") || sort["type"] != "ascending";
    std::ranges::stable_sort(listing.rows, [by, down](const Json& a, const Json& b) { return down ? b[by] < a[by] : a[by] < b[by]; });
  }
  const size_t size = listing.rows.size();
  const Json& group = part("group_condition");
  if (!group.empty()) {
    const auto limit = static_cast<size_t>(LimitOf(group).value_or(1));
    const size_t begin = std::min(static_cast<size_t>(OffsetOf(group).value_or(0)) * limit, size);
    const size_t end = std::min(begin + limit, size);
    listing.rows = {listing.rows.begin() + static_cast<std::ptrdiff_t>(begin), listing.rows.begin() + static_cast<std::ptrdiff_t>(end)};
  }
  return {{"col_name", listing.columns}, {"object", listing.rows}, {"size", size}};
}

Listing OperatorTypes(const Rank& rank) {
  Listing made{{"op_type", "execution_time", "execution_frequency", "percent"}, {}};
  const Json types = analysis::OperatorTypesView(rank);
  double total = 0;
  for (const Json& type : types) total += NumberOf(type, "execution_time_ms");
  for (const Json& type : types) {
    const double time = NumberOf(type, "execution_time_ms");
    made.rows.push_back(
        Json::array({type["type"], time, type["operators"], total > 0 ? std::round(time / total * 1e4) / 100 : 0}));
  }
  return made;
}

Listing OperatorDetails(const Rank& rank) {
  Listing made{{"op_name", "op_type", "avg_execution_time", "subgraph", "full_op_name", "op_info"}, {}};
  std::map<std::pair<std::string_view, std::string_view>, const analysis::Operator*> tensors;  // by name and type; null: they differ
  for (const analysis::Operator& op : rank.operators) {
    const auto [it, is_new] = tensors.try_emplace({rank.TextOf(op.name), rank.TextOf(op.type)}, &op);
    if (!is_new) it->second = nullptr;
  }
  const auto text = [](const Json& value) { return value.is_null() ? std::string() : value.get<std::string>(); };
  for (const Json& op : analysis::OperatorsView(rank)) {
    const std::string full = text(op["name"]);
    Json info = Json::object();
    const auto found = tensors.find({full, text(op["type"])});
    if (found != tensors.end() && found->second != nullptr) info = TensorsOf(rank, *found->second);
    made.rows.push_back(Json::array({full.substr(full.rfind('/') + 1), op["type"], op["mean_ms"], full.substr(0, full.find('/')), full, std::move(info)}));
  }
  return made;
}

Listing CpuOperators(const Rank& rank) {
  Listing made{{"serial_number", "op_type", "total_time", "dispatch_time", "run_start", "run_end"}, {}};
  for (const Json& op : analysis::CpuOperatorsView(rank)) {
    made.rows.push_back(Json::array({op["serial_number"], op["type"], op["total_ms"], op["dispatch_ms"], op["run_start"], op["run_end"]}));
  }
  return made;
}

Listing CpuOperatorTypes(const Rank& rank) {
  std::map<std::string, std::pair<double, int64_t>> types;  // ms, times
  double all_ms = 0;
  for (const Json& op : analysis::CpuOperatorsView(rank)) {
    auto& [ms, times] = types[op["type"].is_string() ? op["type"].get<std::string>() : ""];
    ms += NumberOf(op, "total_ms");
    all_ms += NumberOf(op, "total_ms");
    ++times;
  }
  Listing made{{"op_type", "execution_time", "execution_frequency", "percent"}, {}};
  for (const auto& [type, sum] : types) {
    made.rows.push_back(Json::array({type, sum.first, sum.second, all_ms > 0 ? std::round(sum.first / all_ms * 1e4) / 100 : 0}));
  }
  return made;
}

struct OperatorKind {
  std::string_view name;
  Listing (*list)(const Rank& rank);
};
constexpr auto kOperatorKinds = std::to_array<OperatorKind>({
    {"aicore_type", OperatorTypes},
    {"aicore_detail", OperatorDetails},
    {"aicpu_type", CpuOperatorTypes},
    {"aicpu_detail", CpuOperators},
});

// Null: there is no such kind.
const OperatorKind* KindOf(const RankQuery& asked) {
  const auto type = asked.body.find("op_type");
  if (type == asked.body.end()) return kOperatorKinds.data();
  const auto found = std::ranges::find(kOperatorKinds, TextOf(*type), &OperatorKind::name);
  return found == kOperatorKinds.end() ? nullptr : &*found;
}

std::string FaultOfSearch(const RankQuery& asked) {
  return KindOf(asked) != nullptr ? FaultOfGroup(asked) : "op_type is not one of aicore_type, aicore_detail, aicpu_type, aicpu_detail";
}

Json SearchOperators(const RankQuery& asked) {
  const OperatorKind* kind = KindOf(asked);
  return kind == nullptr ? Json() : Answer(kind->list(asked.rank), asked.body);
}

// An operator of the input pipeline; those without a queue are passed over, to their children.
struct PipelineRow {
  const analysis::Pipeline::Operator* op = nullptr;
  std::optional<int64_t> parent;
  std::vector<int64_t> children;
};

// Breadth first from the root, which is there in any case.
std::vector<PipelineRow> PipelineRows(const analysis::Pipeline& pipeline) {
  std::vector<PipelineRow> rows;
  std::set<int64_t> seen;
  const auto find = [&pipeline](int64_t id) { return std::ranges::find(pipeline.operators, id, &analysis::Pipeline::Operator::id); };
  const auto root = find(0);
  if (root == pipeline.operators.end()) return rows;
  rows.push_back({&*root, std::nullopt, {}});
  seen.insert(0);
  for (size_t i = 0; i < rows.size(); ++i) {
    std::vector<int64_t> below = rows[i].op->children;
    for (size_t k = 0; k < below.size(); ++k) {
      const auto child = find(below[k]);
      if (child == pipeline.operators.end() || !seen.insert(child->id).second) continue;
      if (!child->queue_length && child->queue_sizes.empty()) {
        below.insert(below.begin() + static_cast<std::ptrdiff_t>(k) + 1, child->children.begin(), child->children.end());
        continue;
      }
      rows[i].children.push_back(child->id);
      rows.push_back({&*child, rows[i].op->id, {}});
    }
  }
  return rows;
}

Json SearchPipeline(const RankQuery& asked) {
  const auto filter = asked.body.find("filter_condition");
  const bool details = filter != asked.body.end() && filter->is_object() && filter->value("is_display_op_detail", Json()) == Json(true);
  Listing made{{"op_id", "op_type", "num_workers", "output_queue_size", "output_queue_average_size", "output_queue_length",
                "output_queue_usage_rate", "sample_interval", "parent_id", "children_id"}, {}};
  const analysis::Pipeline& pipeline = asked.rank.pipeline;
  for (const auto& [op, parent, children] : PipelineRows(pipeline)) {
    const bool queue = op->queue_length || !op->queue_sizes.empty();
    made.rows.push_back(Json::array({op->id, op->type, op->workers, queue ? Json(op->queue_sizes) : Json(), analysis::OrNull(op->Mean()), analysis::OrNull(op->queue_length),
                                     analysis::OrNull(op->Use()), analysis::OrNull(pipeline.sampling_ms), analysis::OrNull(parent), children.empty() ? Json() : Json(children)}));
  }
  Json answer = Answer(std::move(made), asked.body);
  if (details) return answer;
  // Without the workers and the samples.
  const auto cut = [](Json* list) { list->erase(list->begin() + 2, list->begin() + 4); };
  cut(&answer["col_name"]);
  for (Json& row : answer["object"]) cut(&row);
  return answer;
}

Json PipelineQueue(const RankQuery& asked) {
  const auto named = [](const analysis::Pipeline::Operator& op) { return Json{{"op_id", op.id}, {"op_type", op.type}, {"num_workers", op.workers}}; };
  const std::vector<PipelineRow> rows = PipelineRows(asked.rank.pipeline);
  const auto current = std::ranges::find_if(rows, [&asked](const PipelineRow& row) { return std::to_string(row.op->id) == asked.Parameter("op_id"); });
  if (current == rows.end()) return {{"current_op", Json::object()}, {"parent_op", Json::object()}, {"queue_info", Json::object()}};
  const auto parent = std::ranges::find_if(rows, [&current](const PipelineRow& row) { return row.op->id == current->parent; });
  Json made = {{"current_op", named(*current->op)}, {"parent_op", nullptr}, {"queue_info", nullptr}};
  if (parent == rows.end()) return made;
  const analysis::Pipeline::Operator& op = *current->op;
  made["parent_op"] = named(*parent->op);
  made["queue_info"] = {{"output_queue_size", op.queue_sizes}, {"output_queue_average_size", analysis::OrNull(op.Mean())}, {"output_queue_length", analysis::OrNull(op.queue_length)},
                        {"output_queue_usage_rate", analysis::OrNull(op.Use())}, {"sample_interval", analysis::OrNull(asked.rank.pipeline.sampling_ms)}};
  return made;
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
    {"minddata-pipeline/queue", "GET", PipelineQueue},
    {"minddata-pipeline/op-queue", "POST", SearchPipeline, FaultOfGroup},
    {"ops/search", "POST", SearchOperators, FaultOfSearch},
});

}  // namespace

std::optional<WebAnswer> AnswerAsMindInsight(std::string_view path, const WebRequest& request, const analysis::Run& run) {
  const auto found = std::ranges::find(kPaths, path, &Path::name);
  if (found == kPaths.end()) return std::nullopt;
  if (request.method != found->method) return WebAnswer{405, "text/plain", fmt::format("{} only\n", found->method)};
  Json body = request.body.empty() ? Json(Json::object()) : Json::parse(request.body, nullptr, false);
  if (!body.is_object()) return WebAnswer{400, "text/plain", "the body is not a JSON object\n"};
  const auto parameter = request.query.find("device_id");
  std::string device = parameter == request.query.end() ? "" : parameter->second;
  if (body.contains("device_id")) device = TextOf(body["device_id"]);
  // Where no rank has a number of a device, each number is the first one's.
  const bool by_device = !device.empty() && std::ranges::any_of(run.ranks, [](const auto& each) { return each->device.has_value(); });
  const Rank* rank = by_device ? nullptr : run.ranks.front().get();
  for (const auto& each : run.ranks) {
    if (each->device && std::to_string(*each->device) == device) rank = each.get();
  }
  if (rank == nullptr) return WebAnswer{404, "text/plain", fmt::format("there is no device {}\n", device)};
  const RankQuery asked{request, run, *rank, std::move(body)};
  if (const std::string fault = found->fault == nullptr ? "" : found->fault(asked); !fault.empty()) return WebAnswer{400, "text/plain", fault + "\n"};
  return WebAnswer{200, "application/json", JsonText(found->answer(asked), false)};
}

}  // namespace profd::client
