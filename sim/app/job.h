// A training job as a TOML file describes it: model, ranks, host, problems. Reference:
// sim/README.md.
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "base/status.h"
#include "sim/ascendcl/ascendcl.h"

namespace profd::sim::app {

struct Operator {
  std::string name;
  std::string type;
  std::string function;
  uint32_t task_type = prof::kTaskAicore;
  uint32_t block_dim = 24;
  int64_t forward_ns = 0;
  int64_t backward_ns = 0;  // 0: none
  std::vector<acl::Tensor> tensors;
};

struct Layer {
  std::string name;
  uint32_t count = 1;           // name_0, name_1, ...
  uint64_t gradient_bytes = 0;  // all-reduced by the data-parallel ranks in the backward
  uint64_t tensor_bytes = 0;    // all-reduced by the tensor-parallel ranks in both directions
  uint64_t expert_bytes = 0;    // all-to-all before and after it, by the data-parallel ranks
  std::vector<Operator> operators;
};

// Each with its number; 0 is off. kProblems has their names.
enum Problem : unsigned {
  kAicpuOperators,   // so many operators of a step run on the AI CPU, 20 times as long
  kDynamicShapes,    // so many operators of a step are compiled anew, 20 ms of the host each
  kSyncStreams,      // the host waits for the stream after every n-th operator
  kGcGaps,           // ms that the host stands still in every fourth step
  kSmallPackets,     // each all-reduce is so many
  kContention,       // % that communication beside the computation takes longer
  kRetransmission,   // % of the communications that take five times as long
  kSlowRank,         // % that the last rank's kernels take longer
  kSlowLink,         // % that communication of the first two ranks takes longer
  kMemoryStorm,      // so many allocations and releases in a step
  kSlowDataLoader,   // ms that each batch is late
  kSyncBatchNorm,    // so many small all-reduces in the forward of a step
  kUnfusedPatterns,  // vector operators are so many small ones
  kLowOccupancy,     // so many operators of a step run on one core, 8 times as long
  kFrequencyLoss,    // % of the clock that is lost in the second half of the job
  kProblems,
};

struct Job {
  std::string name = "job";
  std::string framework = "pytorch";
  bool graph = false;  // the step is one graph, loaded once
  int64_t steps = 10;
  uint64_t seed = 1;
  uint32_t data_parallel = 1;
  uint32_t tensor_parallel = 1;
  uint32_t pipeline_parallel = 1;
  uint32_t microbatches = 1;
  uint64_t activation_bytes = 0;  // between two stages of the pipeline
  double bytes_per_ns = 25;       // of a link
  int64_t link_latency_ns = 10'000;
  int64_t launch_ns = 3'000;  // of the host per operator
  bool truth = true;          // each rank writes what it did, line by line
  uint32_t host_threads = 0;  // that do nothing of the job, but mark
  int64_t data_ns = 0;        // the loader's, per batch; overlaps the step before
  uint64_t batch_bytes = 0;   // copied to the device
  std::vector<Layer> layers;
  std::vector<Operator> optimizer;
  std::array<int64_t, kProblems> problems{};

  uint32_t ranks() const { return data_parallel * tensor_parallel * pipeline_parallel; }
};

inline constexpr uint32_t kMaxRanks = 64;

// All errors carry the place in the text ("line 7: ...").
Result<Job> ParseJob(std::string_view toml_text);
Result<Job> LoadJob(const std::string& path);

}  // namespace profd::sim::app
