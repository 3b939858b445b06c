#include "sim/app/job.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "sim/table_reader.h"

namespace profd::sim::app {
namespace {

constexpr std::array<std::string_view, kProblems> kNames = {
    "aicpu_operators",  "dynamic_shapes",  "sync_streams",     "gc_gaps",       "small_packets",
    "contention",       "retransmission",  "slow_rank",        "slow_link",     "memory_storm",
    "slow_data_loader", "sync_batch_norm", "unfused_patterns", "low_occupancy", "frequency_loss"};
static_assert(!kNames.back().empty(), "each problem has a name");

struct Core {
  std::string_view name;
  uint32_t task_type;
};
constexpr std::array<Core, 5> kCores = {{{"aicore", prof::kTaskAicore},
                                         {"aivec", prof::kTaskAivec},
                                         {"mix_aic", prof::kTaskMixAic},
                                         {"mix_aiv", prof::kTaskMixAiv},
                                         {"aicpu", prof::kTaskAicpu}}};

constexpr double kMostUs = 60e6;
constexpr double kMostMb = 1e6;
constexpr size_t kLongestName = 200;

// Names go into the ground truth as they are.
std::string Name(TableReader& reader, std::string_view key, std::string fallback) {
  std::string name = reader.String(key, std::move(fallback));
  const bool plain = std::ranges::all_of(name, [](char c) {
    return static_cast<unsigned char>(c) >= ' ' && c != '"' && c != '\\';
  });
  if (!plain || name.size() > kLongestName) {
    reader.Fail(
        fmt::format("'{}' must be at most {} characters without quotes", key, kLongestName));
  }
  return name;
}

int64_t Us(TableReader& reader, std::string_view key, double fallback) {
  return std::llround(reader.Number(key, fallback, 0, kMostUs) * 1e3);
}
uint64_t Mb(TableReader& reader, std::string_view key) {
  return static_cast<uint64_t>(reader.Number(key, 0, 0, kMostMb) * 1e6);
}
uint32_t Count(TableReader& reader, std::string_view key, uint32_t fallback, uint32_t least,
               uint32_t most) {
  return static_cast<uint32_t>(reader.Int(key, fallback, least, most));
}

// shapes = [[32, 64], [64, 128], [32, 128]]: the last is the output's.
Status ReadShapes(const toml::table& table, TableReader& reader, Operator* op) {
  const toml::node* const node = table.get("shapes");
  if (node == nullptr) return Status::Ok();
  const toml::array* const shapes = node->as_array();
  if (shapes == nullptr || shapes->size() > acl::kMaxTensors) {
    reader.Fail(*node, fmt::format("'shapes' must be at most {} lists", acl::kMaxTensors));
    return reader.status();
  }
  for (const toml::node& element : *shapes) {
    const toml::array* const shape = element.as_array();
    acl::Tensor tensor{op->tensors.size() + 1 == shapes->size(), 2, 1, {}};
    if (shape == nullptr || shape->empty() || shape->size() > std::size(tensor.shape)) {
      reader.Fail(*node, "a shape must be 1 to 8 numbers");
      return reader.status();
    }
    for (size_t i = 0; i < shape->size(); ++i) {
      const auto size = (*shape)[i].value<int64_t>();
      if (!size || *size < 1 || *size > UINT32_MAX) reader.Fail(*node, "a size must be above 0");
      tensor.shape[i] = static_cast<uint32_t>(size.value_or(1));
    }
    op->tensors.push_back(tensor);
  }
  return reader.status();
}

Status ReadOperator(const toml::table& table, std::vector<Operator>* operators) {
  TableReader reader(table, " of an operator");
  reader.CheckKeys({"name", "type", "function", "core", "cores", "us", "backward_us", "shapes"});
  Operator op;
  op.type = Name(reader, "type", "");
  op.name = Name(reader, "name", op.type);
  op.function = Name(reader, "function", "aclnn" + op.type);
  if (op.type.empty()) reader.Fail("an operator needs a 'type'");
  const std::string core = reader.String("core", "aicore");
  const auto* const found = std::ranges::find(kCores, core, &Core::name);
  if (found == kCores.end()) {
    reader.Fail(fmt::format("unknown core '{}' (aicore, aivec, mix_aic, mix_aiv, aicpu)", core));
  } else {
    op.task_type = found->task_type;
  }
  op.block_dim = Count(reader, "cores", 24, 1, 128);
  op.forward_ns = Us(reader, "us", 0);
  op.backward_ns = Us(reader, "backward_us", 0);
  RETURN_IF_ERROR(ReadShapes(table, reader, &op));
  operators->push_back(std::move(op));
  return reader.status();
}

template <class Read>
Status ForEach(const toml::table& table, std::string_view key, TableReader& reader, Read read) {
  const toml::node* const node = table.get(key);
  if (node == nullptr) return Status::Ok();
  if (!node->is_array_of_tables()) {
    reader.Fail(*node, fmt::format("'{}' must be tables", key));
    return reader.status();
  }
  for (const toml::node& element : *node->as_array()) RETURN_IF_ERROR(read(*element.as_table()));
  return Status::Ok();
}

Status ReadLayer(const toml::table& table, std::vector<Layer>* layers) {
  TableReader reader(table, " of a layer");
  reader.CheckKeys({"name", "count", "gradient_mb", "tensor_mb", "expert_mb", "operator"});
  Layer layer;
  layer.name = Name(reader, "name", "layer");
  layer.count = Count(reader, "count", 1, 1, 10'000);
  layer.gradient_bytes = Mb(reader, "gradient_mb");
  layer.tensor_bytes = Mb(reader, "tensor_mb");
  layer.expert_bytes = Mb(reader, "expert_mb");
  RETURN_IF_ERROR(ForEach(table, "operator", reader, [&](const toml::table& op) {
    return ReadOperator(op, &layer.operators);
  }));
  layers->push_back(std::move(layer));
  return reader.status();
}

Status ReadProblems(const toml::table& root, TableReader& top, Job* job) {
  const toml::node* const node = root.get("problems");
  if (node == nullptr) return Status::Ok();
  if (!node->is_table()) {
    top.Fail(*node, "'problems' must be a table");
    return top.status();
  }
  TableReader reader(*node->as_table(), " of problems");
  reader.CheckKeys({kNames.begin(), kNames.end()});
  for (unsigned i = 0; i < kProblems; ++i) {
    // A percentage of the clock that is left is divided by.
    const int64_t most = i == kFrequencyLoss || i == kRetransmission ? 90 : 100'000;
    job->problems[i] = reader.Int(kNames[i], 0, 0, most);
  }
  return reader.status();
}

Result<Job> FromTable(const toml::table& root) {
  TableReader top(root, "");
  top.CheckKeys({"name", "framework", "mode", "steps", "seed", "data_parallel", "tensor_parallel",
                 "pipeline_parallel", "microbatches", "activation_mb", "link_gb_s",
                 "link_latency_us", "launch_us", "truth", "host_threads", "data_ms", "batch_mb", "layer",
                 "optimizer", "problems"});
  Job job;
  job.name = Name(top, "name", job.name);
  job.framework = Name(top, "framework", job.framework);
  const std::string mode = top.String("mode", "eager");
  if (mode != "eager" && mode != "graph") top.Fail(fmt::format("'mode' must be eager or graph, not '{}'", mode));
  job.graph = mode == "graph";
  job.steps = top.Int("steps", job.steps, 1, 1'000'000'000);
  job.seed = static_cast<uint64_t>(top.Int("seed", 1, 0, INT64_MAX));
  job.data_parallel = Count(top, "data_parallel", 1, 1, kMaxRanks);
  job.tensor_parallel = Count(top, "tensor_parallel", 1, 1, kMaxRanks);
  job.pipeline_parallel = Count(top, "pipeline_parallel", 1, 1, kMaxRanks);
  job.microbatches = Count(top, "microbatches", 1, 1, 1024);
  job.activation_bytes = Mb(top, "activation_mb");
  job.bytes_per_ns = top.Number("link_gb_s", job.bytes_per_ns, 0.001, 1e4);
  job.link_latency_ns = Us(top, "link_latency_us", 10);
  job.launch_ns = Us(top, "launch_us", 3);
  job.truth = top.Bool("truth", true);
  job.host_threads = Count(top, "host_threads", 0, 0, 64);
  job.data_ns = std::llround(top.Number("data_ms", 0, 0, 3.6e6) * 1e6);
  job.batch_bytes = Mb(top, "batch_mb");
  RETURN_IF_ERROR(top.status());
  if (job.ranks() > kMaxRanks) top.Fail(fmt::format("more than {} ranks", kMaxRanks));
  RETURN_IF_ERROR(ForEach(root, "layer", top,
                          [&](const toml::table& layer) { return ReadLayer(layer, &job.layers); }));
  RETURN_IF_ERROR(ForEach(root, "optimizer", top,
                          [&](const toml::table& op) { return ReadOperator(op, &job.optimizer); }));
  RETURN_IF_ERROR(ReadProblems(root, top, &job));
  size_t layers = 0;
  for (const Layer& layer : job.layers) layers += layer.count;
  if (layers < job.pipeline_parallel) top.Fail("fewer layers than stages of the pipeline");
  RETURN_IF_ERROR(top.status());
  return job;
}

}  // namespace

Result<Job> ParseJob(std::string_view toml_text) { return ParseToml(toml_text, FromTable); }

Result<Job> LoadJob(const std::string& path) { return ParseFile(path, ParseJob); }

}  // namespace profd::sim::app
