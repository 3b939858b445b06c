#include "analysis/store/pipeline_json.h"

#include "analysis/store/numbers.h"

namespace profd::analysis {
namespace {

Json QueueJson(const std::optional<Pipeline::Queue>& queue) {
  if (!queue) return nullptr;
  return {{"capacity", OrNull(queue->capacity)}, {"sizes", queue->sizes}};
}

Json CpuJson(const std::optional<Pipeline::CpuUse>& cpu) {
  if (!cpu) return nullptr;
  return {{"user", cpu->user}, {"sys", cpu->sys}};
}

template <class T>
std::optional<T> ValueOf(const Json& json, const char* name) {
  const auto found = json.find(name);
  return found == json.end() ? std::nullopt : NumberIn<T>(*found);
}

template <class T>
std::vector<T> ListOf(const Json& json, const char* name) {
  std::vector<T> values;
  const auto found = json.find(name);
  if (found == json.end() || !found->is_array()) return values;
  for (const Json& each : *found) {
    if (const auto value = NumberIn<T>(each)) values.push_back(*value);
  }
  return values;
}

std::optional<Pipeline::Queue> QueueOf(const Json& json, const char* name) {
  const auto found = json.find(name);
  if (found == json.end() || !found->is_object()) return std::nullopt;
  return Pipeline::Queue{ValueOf<int64_t>(*found, "capacity"), ListOf<double>(*found, "sizes")};
}

std::optional<Pipeline::CpuUse> CpuOf(const Json& json) {
  const auto found = json.find("cpu");
  if (found == json.end() || !found->is_object()) return std::nullopt;
  return Pipeline::CpuUse{ListOf<double>(*found, "user"), ListOf<double>(*found, "sys")};
}

Pipeline::Operator OperatorOf(const Json& json) {
  Pipeline::Operator op;
  op.id = ValueOf<int64_t>(json, "id").value_or(0);
  const auto type = json.find("type");
  if (type != json.end() && type->is_string()) op.type = type->get<std::string>();
  op.workers = ValueOf<int64_t>(json, "workers").value_or(0);
  op.queue_length = ValueOf<int64_t>(json, "queue_length");
  op.queue_sizes = ListOf<double>(json, "queue_sizes");
  op.parent = ValueOf<int64_t>(json, "parent");
  op.children = ListOf<int64_t>(json, "children");
  op.cpu = CpuOf(json);
  return op;
}

}  // namespace

Json PipelineJson(const Pipeline& pipeline) {
  Json json = {{"host", QueueJson(pipeline.host)},         {"device", QueueJson(pipeline.device)},
               {"host_is_iterator", pipeline.host_is_iterator ? 1 : 0}, {"get_next_ms", pipeline.get_next_ms},
               {"get_ms", pipeline.get_ms},                {"push_ms", pipeline.push_ms},
               {"total_ms", pipeline.total_ms},          {"processors", OrNull(pipeline.processors)},
               {"cpu", CpuJson(pipeline.cpu)},             {"sampling_ms", OrNull(pipeline.sampling_ms)}};
  json["operators"] = Json::array();
  for (const Pipeline::Operator& op : pipeline.operators) {
    json["operators"].push_back({{"id", op.id}, {"type", op.type}, {"workers", op.workers}, {"queue_length", OrNull(op.queue_length)},
                                 {"queue_sizes", op.queue_sizes}, {"parent", OrNull(op.parent)}, {"children", op.children},
                                 {"cpu", CpuJson(op.cpu)}});
  }
  return json;
}

Pipeline PipelineOf(std::string_view text) {
  Pipeline pipeline;
  const Json json = Json::parse(text, nullptr, false);
  if (!json.is_object()) return pipeline;
  pipeline.host = QueueOf(json, "host");
  pipeline.device = QueueOf(json, "device");
  pipeline.host_is_iterator = ValueOf<int64_t>(json, "host_is_iterator").value_or(0) != 0;
  pipeline.get_next_ms = ListOf<double>(json, "get_next_ms");
  pipeline.get_ms = ListOf<double>(json, "get_ms");
  pipeline.push_ms = ListOf<double>(json, "push_ms");
  pipeline.total_ms = ListOf<double>(json, "total_ms");
  pipeline.processors = ValueOf<int64_t>(json, "processors");
  pipeline.cpu = CpuOf(json);
  pipeline.sampling_ms = ValueOf<int64_t>(json, "sampling_ms");
  const auto operators = json.find("operators");
  if (operators == json.end() || !operators->is_array()) return pipeline;
  for (const Json& each : *operators) {
    if (each.is_object()) pipeline.operators.push_back(OperatorOf(each));
  }
  return pipeline;
}

}  // namespace profd::analysis
