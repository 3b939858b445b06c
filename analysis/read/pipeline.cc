// What MindData leaves (analysis 4.3): the queue on the chip, the queue on the host, and the queues between the
// operators of the pipeline.
#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include <algorithm>
#include <array>
#include <cmath>
#include <map>
#include <utility>
#include <vector>

#include "analysis/read/csv_file.h"
#include "analysis/read/each_record.h"
#include "analysis/read/readers.h"
#include "base/text.h"

namespace profd::analysis {
namespace {

namespace fs = std::filesystem;
using Json = nlohmann::json;

constexpr uint64_t kMostBytes = uint64_t{1} << 30;

// Its file's text, in the directory or its `data`; none: there is no such file.
std::optional<std::string> TextOf(const fs::path& directory, const std::string& name, const ReadContext& context) {
  for (const fs::path& place : {directory, directory / "data"}) {
    const fs::path file = place / name;
    std::error_code error;
    if (!fs::is_regular_file(file, error)) continue;
    Result<std::string> text = ReadWhole(file, kMostBytes);
    if (text.ok()) return std::move(*text);
    context.AddProblem(file, text.status());
  }
  return std::nullopt;
}

// Rows of node, start and end (us), size of the queue; what is before them is a table's head, which has as many words.
BadLines ReadChipQueue(std::string_view text, Pipeline* pipeline) {
  BadLines bad;
  uint64_t number = 0;
  for (std::string_view line; NextLine(&text, &line);) {
    ++number;
    const std::string_view node = NextToken(&line);
    if (node != "GetNext_dequeue_wait") {
      for (int i = 0; i < 3 && !node.empty(); ++i) {
        if (!NextToken(&line).empty()) continue;
        bad.Add(number);
        break;
      }
      continue;
    }
    double start = 0;
    double end = 0;
    double size = 0;
    if (!ParseNumber(NextToken(&line), &start) || !ParseNumber(NextToken(&line), &end) ||
        !ParseNumber(NextToken(&line), &size) || !std::isfinite(end - start) || end < start || !std::isfinite(size)) {
      bad.Add(number);
      continue;
    }
    if (!pipeline->device) pipeline->device.emplace();
    pipeline->device->sizes.push_back(size);
    pipeline->get_next_ms.push_back((end - start) / 1000);
  }
  return bad;
}

using StepValues = std::vector<std::pair<int64_t, double>>;

// By step, as MindInsight shows them: workers may write steps in another order.
std::vector<double> InOrder(StepValues values) {
  std::ranges::stable_sort(values, {}, &StepValues::value_type::first);
  std::vector<double> sorted;
  sorted.reserve(values.size());
  for (const auto& [step, value] : values) sorted.push_back(value);
  return sorted;
}

// "0 <sub> <step> <ms>" is a time (0 get, 1 push, 2 total), "1 <capacity> <step> <size>" the queue.
BadLines ReadHostQueue(std::string_view text, Pipeline* pipeline) {
  pipeline->host.emplace();
  StepValues sizes;
  std::array<StepValues, 3> times;  // by sub
  BadLines bad;
  uint64_t number = 0;
  for (std::string_view line; NextLine(&text, &line);) {
    ++number;
    if (Trim(line).empty()) continue;
    int64_t kind = 0;
    int64_t sub = 0;
    int64_t step = 0;
    double value = 0;
    if (!ParseNumber(NextToken(&line), &kind) || !ParseNumber(NextToken(&line), &sub) ||
        !ParseNumber(NextToken(&line), &step) || !ParseNumber(NextToken(&line), &value) || !std::isfinite(value)) {
      bad.Add(number);
      continue;
    }
    if (kind == 1) {
      pipeline->host->capacity = sub;
      sizes.emplace_back(step, value);
    } else if (kind == 0 && sub >= 0 && sub <= 2) {
      times[static_cast<size_t>(sub)].emplace_back(step, value);
    }
  }
  pipeline->host->sizes = InOrder(std::move(sizes));
  pipeline->get_ms = InOrder(std::move(times[0]));
  pipeline->push_ms = InOrder(std::move(times[1]));
  pipeline->total_ms = InOrder(std::move(times[2]));
  return bad;
}

std::vector<int64_t> Ints(const Json& list) {
  std::vector<int64_t> values;
  if (!list.is_array()) return values;
  for (const Json& each : list) {
    if (each.is_number_integer()) values.push_back(each.get<int64_t>());
  }
  return values;
}

std::vector<double> Numbers(const Json& list) {
  std::vector<double> values;
  if (!list.is_array()) return values;
  for (const Json& each : list) {
    if (each.is_number()) values.push_back(each.get<double>());
  }
  return values;
}

int64_t IntOr(const Json& object, const char* name, int64_t otherwise) {
  const auto found = object.find(name);
  return found != object.end() && found->is_number_integer() ? found->get<int64_t>() : otherwise;
}

// Null: it has no list op_info.
Json WithOperators(std::string_view text, std::string_view where, const ReadContext& context) {
  Json json = Json::parse(text, nullptr, false);
  const auto list = json.is_object() ? json.find("op_info") : json.end();
  if (list != json.end() && list->is_array()) return json;
  context.AddProblem(where, "no JSON with op_info");
  return nullptr;
}

void ReadOperatorsJson(std::string_view text, std::string_view where, const ReadContext& context, Pipeline* pipeline) {
  const Json json = WithOperators(text, where, context);
  if (json.is_null()) return;
  if (json.contains("sampling_interval")) pipeline->sampling_ms = IntOr(json, "sampling_interval", 0);
  for (const Json& each : json["op_info"]) {
    if (!each.is_object()) continue;
    Pipeline::Operator& op = pipeline->operators.emplace_back();
    op.id = IntOr(each, "op_id", -1);
    const auto type = each.find("op_type");
    if (type != each.end() && type->is_string()) op.type = type->get<std::string>();
    op.workers = IntOr(each, "num_workers", 0);
    if (const auto children = each.find("children"); children != each.end()) op.children = Ints(*children);
    const auto metrics = each.find("metrics");
    if (metrics == each.end() || !metrics->is_object()) continue;
    const auto queue = metrics->find("output_queue");
    if (queue == metrics->end() || !queue->is_object()) continue;
    if (const auto sizes = queue->find("size"); sizes != queue->end()) op.queue_sizes = Numbers(*sizes);
    if (queue->contains("length")) op.queue_length = IntOr(*queue, "length", 0);
  }
}

// Use of the host's CPUs, of the process (-1) and of each operator.
void ReadCpuUse(std::string_view text, std::string_view where, const ReadContext& context, Pipeline* pipeline) {
  const Json json = WithOperators(text, where, context);
  if (json.is_null()) return;
  if (json.contains("cpu_processor_num")) pipeline->processors = IntOr(json, "cpu_processor_num", 0);
  for (const Json& each : json["op_info"]) {
    const auto metrics = each.is_object() ? each.find("metrics") : each.end();
    if (metrics == each.end() || !metrics->is_object()) continue;
    Pipeline::CpuUse use;
    if (const auto user = metrics->find("user_utilization"); user != metrics->end()) use.user = Numbers(*user);
    if (const auto sys = metrics->find("sys_utilization"); sys != metrics->end()) use.sys = Numbers(*sys);
    const int64_t id = IntOr(each, "op_id", INT64_MIN);
    const auto op = std::ranges::find(pipeline->operators, id, &Pipeline::Operator::id);
    if (id == -1) {
      pipeline->cpu = std::move(use);
    } else if (op != pipeline->operators.end()) {
      op->cpu = std::move(use);
    }
  }
}

// As MindInsight has parsed it: lists are JSON in a field.
void ReadOperatorsCsv(const fs::path& path, const ReadContext& context, Pipeline* pipeline) {
  EachRecord(path, {}, context, [pipeline](const CsvFile& header) {
    const int id = header.Column({"op_id"});
    const int type = header.Column({"op_type"});
    const int workers = header.Column({"num_workers"});
    const int sizes = header.Column({"output_queue_size"});
    const int length = header.Column({"output_queue_length"});
    const int children = header.Column({"children_id"});
    const int interval = header.Column({"sample_interval"});
    return [=](const CsvFile& record) {
      Pipeline::Operator op;
      if (!ParseNumber(record.Field(id), &op.id)) return false;
      op.type = std::string(record.Field(type));
      op.workers = record.Integer(workers).value_or(0);
      op.queue_sizes = Numbers(Json::parse(record.Field(sizes), nullptr, false));
      op.children = Ints(Json::parse(record.Field(children), nullptr, false));
      if (const auto ms = record.Integer(interval)) pipeline->sampling_ms = *ms;
      if (!op.queue_sizes.empty()) op.queue_length = record.Integer(length);
      pipeline->operators.push_back(std::move(op));
      return true;
    };
  });
}

// Breadth first from the root; an operator without a queue is passed over, to its children.
void TieOperators(Pipeline* pipeline) {
  std::ranges::stable_sort(pipeline->operators, {}, &Pipeline::Operator::id);
  std::map<int64_t, Pipeline::Operator*> by_id;
  for (Pipeline::Operator& op : pipeline->operators) by_id.emplace(op.id, &op);
  for (Pipeline::Operator& op : pipeline->operators) {
    std::erase_if(op.children, [&](int64_t child) { return !by_id.contains(child) || child == op.id; });
    for (const int64_t child : op.children) {
      Pipeline::Operator* found = by_id.at(child);
      if (!found->parent) found->parent = op.id;
    }
  }
}

}  // namespace

void ReadPipeline(const fs::path& directory, int device, const ReadContext& context, Rank* rank) {
  Pipeline& pipeline = rank->pipeline;
  const std::string chip = fmt::format("minddata_aicpu_{}.txt", device);
  const std::string host = fmt::format("device_queue_profiling_{}.txt", device);
  const std::string iterator = fmt::format("dataset_iterator_profiling_{}.txt", device);
  const auto report = [&context](const BadLines& bad, const fs::path& path) {
    if (bad.count() > 0) context.AddProblem(path, bad.Text());
  };
  if (const auto text = TextOf(directory, chip, context)) {
    report(ReadChipQueue(*text, &pipeline), directory / chip);
  }
  if (const auto text = TextOf(directory, host, context)) {
    report(ReadHostQueue(*text, &pipeline), directory / host);
  } else if (const auto other = TextOf(directory, iterator, context)) {
    report(ReadHostQueue(*other, &pipeline), directory / iterator);
    pipeline.host_is_iterator = true;
  }
  const std::string raw = fmt::format("pipeline_profiling_{}.json", device);
  const fs::path parsed = directory / fmt::format("minddata_pipeline_raw_{}.csv", device);
  std::error_code error;
  if (const auto text = TextOf(directory, raw, context)) ReadOperatorsJson(*text, (directory / raw).string(), context, &pipeline);
  if (pipeline.operators.empty() && fs::is_regular_file(parsed, error)) ReadOperatorsCsv(parsed, context, &pipeline);
  const std::string cpu = fmt::format("minddata_cpu_utilization_{}.json", device);
  if (const auto text = TextOf(directory, cpu, context)) {
    ReadCpuUse(*text, (directory / cpu).string(), context, &pipeline);
  }
  TieOperators(&pipeline);
}

}  // namespace profd::analysis
