// Whether the training waits for its input, and for which part of the pipeline (analysis 4.3). The rules have changed
// between releases of MindInsight; both generations are given, today's is the default.
#include <fmt/format.h>

#include <algorithm>
#include <numeric>
#include <set>
#include <utility>

#include "analysis/views/views.h"

namespace profd::analysis {
namespace {

using Queue = Pipeline::Queue;

enum class Generation { kCurrent, kFirst };

uint64_t Empty(const Queue& queue) { return static_cast<uint64_t>(std::ranges::count(queue.sizes, 0.0)); }
uint64_t Full(const Queue& queue) {
  return queue.capacity ? static_cast<uint64_t>(std::ranges::count(queue.sizes, static_cast<double>(*queue.capacity))) : 0;
}
double EmptyPart(const Queue& queue) {
  return queue.sizes.empty() ? 0 : static_cast<double>(Empty(queue)) / static_cast<double>(queue.sizes.size());
}

double MeanOf(const std::vector<double>& values) {
  return values.empty() ? 0 : std::accumulate(values.begin(), values.end(), 0.0) / static_cast<double>(values.size());
}

struct Stage {
  std::string_view name;
  bool warns = false;
};

// Limits of the host's queue being empty, as a part of the steps.
constexpr double kOftenEmpty = 0.3;
constexpr double kOftenEmptyFirst = 0.7;
constexpr double kMostlyEmptyFirst = 0.95;

std::vector<Stage> StagesNow(const Pipeline& pipeline) {
  if (!pipeline.host) return {};
  const bool host = EmptyPart(*pipeline.host) > kOftenEmpty;
  const bool chip = pipeline.device && Empty(*pipeline.device) > 0;
  const std::string_view last = pipeline.device ? "get_next" : "fpbp";
  std::vector<Stage> stages = {{"data_process", host}};
  stages.push_back({"device_queue_warning", !host && !chip});
  if (pipeline.device) stages.push_back({"data_transmission", !host && chip});
  stages.push_back({last, false});
  return stages;
}

std::vector<Stage> FirstStages(const Pipeline& pipeline) {
  if (!pipeline.host) return {};
  const double empty = EmptyPart(*pipeline.host);
  if (!pipeline.device) return {{"data_process", empty > kOftenEmptyFirst}, {"fpbp", false}};
  const bool chip = Empty(*pipeline.device) > 0;
  const bool host = chip && empty > kOftenEmptyFirst;
  const bool between = chip && !host && empty < kMostlyEmptyFirst;
  return {{"data_process", host}, {"device_queue_op", between}, {"tdt", between}, {"get_next", false}};
}

std::string NameOf(const Pipeline::Operator& op) { return fmt::format("{} {}", op.type, op.id); }

// Children that have a queue, through those that have none. Each once: files are not trusted to hold a tree.
std::vector<const Pipeline::Operator*> FedBy(const Pipeline& pipeline, const Pipeline::Operator& op) {
  std::vector<const Pipeline::Operator*> fed;
  std::vector<const Pipeline::Operator*> open = {&op};
  std::set<int64_t> seen = {op.id};
  while (!open.empty()) {
    const std::vector<int64_t>& children = open.back()->children;
    open.pop_back();
    for (const int64_t id : children) {
      const auto child = std::ranges::find(pipeline.operators, id, &Pipeline::Operator::id);
      if (child == pipeline.operators.end() || !seen.insert(id).second) continue;
      (child->Use() ? fed : open).push_back(&*child);
    }
  }
  return fed;
}

bool IsBottleneckNow(const Pipeline::Operator& op, const std::vector<const Pipeline::Operator*>& fed) {
  constexpr double kDifference = 0.1;
  constexpr double kLeaf = 0.6;
  const double own = *op.Use();
  if (fed.empty()) return own < kLeaf;
  return std::ranges::any_of(fed, [own](const Pipeline::Operator* child) { return *child->Use() - own > kDifference; });
}

constexpr double kHigh = 0.8;
constexpr double kLow = 0.2;

std::vector<const Pipeline::Operator*> FirstBottlenecks(const Pipeline& pipeline,
                                                        const std::vector<const Pipeline::Operator*>& with_queue) {
  std::vector<const Pipeline::Operator*> found;
  const auto all = [&](const auto& rule) { return std::ranges::all_of(with_queue, rule); };
  const bool all_low = all([](const Pipeline::Operator* op) { return *op->Use() < kLow; });
  if (all([](const Pipeline::Operator* op) { return *op->Use() >= kHigh; })) {
    const auto root = std::ranges::find_if(pipeline.operators, [](const Pipeline::Operator& op) { return !op.parent; });
    if (root != pipeline.operators.end()) found.push_back(&*root);
    return found;
  }
  for (const Pipeline::Operator* op : with_queue) {
    const std::vector<const Pipeline::Operator*> fed = FedBy(pipeline, *op);
    const bool fed_well = !fed.empty() && std::ranges::all_of(fed, [](const auto* child) { return *child->Use() >= kHigh; });
    if (all_low ? fed.empty() : *op->Use() < kLow && fed_well) found.push_back(op);
  }
  return found;
}

std::vector<const Pipeline::Operator*> Bottlenecks(const Pipeline& pipeline, Generation generation) {
  std::vector<const Pipeline::Operator*> with_queue;
  for (const Pipeline::Operator& op : pipeline.operators) {
    if (op.Use()) with_queue.push_back(&op);
  }
  if (with_queue.empty()) return {};
  if (generation == Generation::kFirst) return FirstBottlenecks(pipeline, with_queue);
  std::vector<const Pipeline::Operator*> found;
  for (const Pipeline::Operator* op : with_queue) {
    if (IsBottleneckNow(*op, FedBy(pipeline, *op))) found.push_back(op);
  }
  return found;
}

std::string AdviceFor(const Pipeline::Operator& op) {
  const std::string name = NameOf(op);
  if (op.type.starts_with("Generator")) {
    return name + ": raise num_parallel_workers, look at the script that generates, or read from MindRecord";
  }
  if (op.type.starts_with("Map")) return name + ": raise num_parallel_workers; where it runs Python, look at the script";
  if (op.type.starts_with("Batch")) return name + ": change prefetch_size";
  // It has one worker, whatever the program sets.
  if (op.type.starts_with("Shuffle")) return name + ": lower buffer_size, or shuffle where the data is read (shuffle=True)";
  return name + ": raise num_parallel_workers";
}

Json Verdict(const Pipeline& pipeline, Generation generation) {
  const std::vector<Stage> stages = generation == Generation::kCurrent ? StagesNow(pipeline) : FirstStages(pipeline);
  const auto operators = Bottlenecks(pipeline, generation);
  Json json;
  json["bottleneck"] = nullptr;
  json["stages"] = Json::array();
  for (const Stage& stage : stages) {
    json["stages"].push_back({{"stage", stage.name}, {"name", PipelineStageName(stage.name)},
                              {"status", stage.warns ? "warning" : "normal"}});
    // That only the host's queue is in order is not a bottleneck.
    if (stage.warns && stage.name != "device_queue_warning" && json["bottleneck"].is_null()) json["bottleneck"] = stage.name;
  }
  // Without logs of the queues the operators say it.
  if (stages.empty() && !operators.empty()) json["bottleneck"] = "data_process";
  json["bottleneck_name"] = json["bottleneck"].is_null() ? Json() : Json(PipelineStageName(json["bottleneck"].get<std::string>()));
  json["bottleneck_operator"] = operators.empty() ? Json() : Json(NameOf(*operators.front()));
  json["bottleneck_operators"] = Json::array();
  json["suggestions"] = Json::array();
  for (const Pipeline::Operator* op : operators) {
    json["bottleneck_operators"].push_back(NameOf(*op));
    json["suggestions"].push_back(AdviceFor(*op));
  }
  return json;
}

// Of all samples together; null: there are none.
Json CpuJson(const std::optional<Pipeline::CpuUse>& use, bool samples) {
  if (!use || (use->user.empty() && use->sys.empty())) return nullptr;
  Json json = {{"user_percent", MeanOf(use->user)}, {"sys_percent", MeanOf(use->sys)}};
  if (samples) {
    json["user"] = use->user;
    json["sys"] = use->sys;
  }
  return json;
}

// The process leaves little of the host's CPUs (analysis 4.3).
bool IsBusy(const Pipeline& pipeline) {
  constexpr double kMuchPercent = 80;
  return pipeline.cpu && MeanOf(pipeline.cpu->user) + MeanOf(pipeline.cpu->sys) > kMuchPercent;
}

Json QueueJson(std::string_view name, const Queue& queue) {
  return {{"queue", name},
          {"capacity", OrNull(queue.capacity)},
          {"empty", Empty(queue)},
          {"full", queue.capacity ? Json(Full(queue)) : Json()},
          {"total", queue.sizes.size()},
          {"mean_size", MeanOf(queue.sizes)},
          {"sizes", queue.sizes}};
}

}  // namespace

std::string_view PipelineStageName(std::string_view stage) {
  static constexpr std::pair<std::string_view, std::string_view> kNames[] = {
      {"data_process", "Data processing"},
      {"data_transmission", "Transfer to the device"},
      {"device_queue_warning", "Host queue keeps up"},
      {"device_queue_op", "Transfer to the device"},
      {"tdt", "Transfer to the device (TDT)"},
      {"get_next", "Fetch on the device"},
      {"fpbp", "Forward and backward"},
  };
  for (const auto& [id, name] : kNames) {
    if (id == stage) return name;
  }
  return stage;
}

Json DataPipelineView(const Rank& rank) {
  const Pipeline& pipeline = rank.pipeline;
  if (pipeline.empty()) return nullptr;
  Json json = Verdict(pipeline, Generation::kCurrent);
  json["rules"] = "current";
  json["rules_1_0"] = Verdict(pipeline, Generation::kFirst);
  json["queues"] = Json::array();
  if (pipeline.host) json["queues"].push_back(QueueJson("host", *pipeline.host));
  if (pipeline.device) json["queues"].push_back(QueueJson("device", *pipeline.device));
  json["times"] = Json::array();
  const std::pair<std::string_view, const std::vector<double>*> times[] = {
      {"get_next", &pipeline.get_next_ms}, {"get", &pipeline.get_ms}, {"push", &pipeline.push_ms}, {"total", &pipeline.total_ms}};
  for (const auto& [what, values] : times) {
    if (!values->empty()) json["times"].push_back({{"what", what}, {"mean_ms", MeanOf(*values)}, {"values", *values}});
  }
  json["cpu"] = CpuJson(pipeline.cpu, true);
  if (!json["cpu"].is_null()) json["cpu"]["processors"] = OrNull(pipeline.processors);
  if (IsBusy(pipeline)) {
    json["suggestions"].push_back("The process uses more than 80 % of the host's CPUs: lower num_parallel_workers where queues are "
                                  "full, or give it more CPUs");
  }
  json["operators"] = Json::array();
  for (const Pipeline::Operator& op : pipeline.operators) {
    json["operators"].push_back({{"id", op.id}, {"type", op.type}, {"workers", op.workers},
                                 {"queue_length", OrNull(op.queue_length)}, {"queue_mean", OrNull(op.Mean())},
                                 {"queue_use", OrNull(op.Use())}, {"sizes", op.queue_sizes},
                                 {"parent", OrNull(op.parent)}, {"children", op.children},
                                 {"cpu", CpuJson(op.cpu, false)}});
  }
  return json;
}

}  // namespace profd::analysis
