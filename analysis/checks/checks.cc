#include "analysis/checks/check.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cctype>
#include <cmath>
#include <unordered_map>

namespace profd::analysis {
namespace {

constexpr auto kChecks = std::to_array<Check>({
    {"overall_summary", Dimension::kOverall, "operators or step_trace_time.csv", "where the time went: computing, communication, free", false, CheckOverall},
    {"slow_rank", Dimension::kOverall, "several ranks", "ranks that compute, communicate or wait longer than others", true, CheckSlowRank},
    {"slow_link", Dimension::kOverall, "communication.json of several ranks", "bandwidth of SDMA and RDMA by rank", true, CheckSlowLink},
    {"environment", Dimension::kOverall, "variables in profiler_metadata.json", "variables that slow a training down", false, CheckEnvironment},
    {"stage_imbalance", Dimension::kOverall, "several ranks that send to each other", "stages of a pipeline with more work than others", true, CheckStageImbalance},
    {"wait_for_rank", Dimension::kOverall, "communication of several ranks", "a rank that the others wait for", true, CheckWaitForRank},
    {"expert_imbalance", Dimension::kOverall, "all-to-all communication of several ranks", "ranks whose experts have more work than others", true, CheckExpertImbalance},
    {"kernel_compare", Dimension::kComparison, "operators of the run and of --baseline, or of several ranks", "operators by type, beside those of the other run or rank", true, CheckKernelCompare},
    {"api_compare", Dimension::kComparison, "framework operators of the run and of --baseline, or of several ranks", "what the host spends on framework operators, beside the other run or rank", true, CheckApiCompare},
    {"ai_core_frequency", Dimension::kComputation, "AI Core frequency and operators", "operators that ran while the AI Core was slower than it should be", false, CheckAiCoreFrequency},
    {"aicpu", Dimension::kComputation, "operators", "operators on the AI CPU", false, CheckAiCpu},
    {"dynamic_shape", Dimension::kComputation, "OP State", "no operator was compiled for a static shape", false, CheckDynamicShape},
    {"operator_no_bound", Dimension::kComputation, "PipeUtilization counters", "operators that no unit bounds", false, CheckOperatorNoBound},
    {"block_dim", Dimension::kComputation, "block dim, and the device's numbers of cores", "operators that leave cores without work", false, CheckBlockDim},
    {"ai_core_performance", Dimension::kComputation, "PipeUtilization counters and shapes", "what limits matrix multiplications, attention and vector operators", false, CheckAiCorePerformance},
    {"hardware_throttle", Dimension::kComputation, "npu_state in the dump", "the device lowers its clock, with the reasons", false, CheckThrottle},
    {"hardware_hbm", Dimension::kComputation, "npu_state in the dump and operators", "operators that wait for HBM", false, CheckHbm},
    {"hardware_other_process", Dimension::kComputation, "npu_state in the dump", "other processes on the same NPU", false, CheckOtherProcess},
    {"synchronize_stream", Dimension::kSchedule, "API calls", "launches that wait for the stream each time", false, CheckSynchronizeStream},
    {"gc", Dimension::kSchedule, "events of garbage collection", "collections of Python's garbage", false, CheckGc},
    {"conjectured_gc", Dimension::kSchedule, "free time and API calls", "long gaps in which the host called nothing", false, CheckConjecturedGc},
    {"operator_dispatch", Dimension::kSchedule, "API calls", "operators that are compiled while training", false, CheckOperatorDispatch},
    {"sync_batch_norm", Dimension::kSchedule, "framework operators", "SyncBatchNorm in its slow form", false, CheckSyncBatchNorm},
    {"affinity_api", Dimension::kSchedule, "framework operators; call stacks say where", "sequences of framework operators that the NPU has one API for", false, CheckAffinityApi},
    {"fusible_operators", Dimension::kSchedule, "operators; transfers need PipeUtilization counters", "sequences of operators that repeat and could be one", false, CheckFusibleOperators},
    {"host_cpu", Dimension::kSchedule, "host_pressure in the dump and operators", "the host has no CPU free while the device waits", false, CheckHostCpu},
    {"host_memory", Dimension::kSchedule, "host_pressure in the dump and operators", "the host is short of memory while the device waits", false, CheckHostMemory},
    {"host_storage", Dimension::kSchedule, "host_pressure in the dump and operators", "checkpoints, dumps or data being read while the device is free", false, CheckHostStorage},
    {"hardware_pcie", Dimension::kSchedule, "pcie or npu_state in the dump", "copies between host and device that fill PCIe, and its errors", false, CheckPcie},
    {"host_profiling", Dimension::kSchedule, "profd among the watched processes", "what recording itself takes of the node's CPUs", false, CheckProfiling},
    {"packet", Dimension::kCommunication, "communication.json", "communication in small packets", false, CheckPacket},
    {"bandwidth_contention", Dimension::kCommunication, "communication.json and operators", "communication that is slow beside matrix multiplications", false, CheckBandwidthContention},
    {"byte_alignment", Dimension::kCommunication, "tasks of collectives", "collectives that move data in sizes that do not fit", false, CheckByteAlignment},
    {"retransmission", Dimension::kCommunication, "communication.json of all ranks", "RDMA that repeats packets", true, CheckRetransmission},
    {"hardware_hccs", Dimension::kCommunication, "npu_state in the dump", "HCCS links that repeat data or lose lanes", false, CheckHccs},
    {"hardware_roce", Dimension::kCommunication, "npu_state, roce or nic in the dump", "RoCE ports that send again, are paused or drop", false, CheckRoce},
    {"memory", Dimension::kMemory, "API calls", "time spent in taking and freeing memory of the device", false, CheckMemory},
    {"dataloader", Dimension::kDataloader, "framework operators", "a slow data loader", false, CheckDataloader},
});

}  // namespace

std::span<const Check> Checks() { return kChecks; }

std::string_view PriorityWord(Priority priority) {
  constexpr std::string_view kWords[] = {"high", "medium", "low", "info"};
  return kWords[static_cast<size_t>(priority)];
}

std::string_view DimensionWord(Dimension dimension) {
  constexpr std::string_view kWords[] = {"overall", "comparison", "computation", "schedule", "communication", "memory", "dataloader"};
  return kWords[static_cast<size_t>(dimension)];
}

Priority PriorityOf(double ms, double step_ms, const Limits& limits) {
  const double share = step_ms > 0 ? ms / step_ms : 0;
  if (share >= limits.At("priority", "high")) return Priority::kHigh;
  return share >= limits.At("priority", "medium") ? Priority::kMedium : Priority::kLow;
}

double LastStepMs(const Rank& rank) {
  return rank.steps.empty() ? 0 : Ms(rank.steps.back().end_ns - rank.steps.back().start_ns);
}

double PerStep(const Rank& rank, double ms) {
  const size_t steps = std::max(rank.steps.size(), rank.shares.size());
  return steps == 0 ? ms : ms / static_cast<double>(steps);
}

Calls CallsOf(const Rank& rank, const std::function<bool(std::string_view name)>& is_one) {
  Calls calls;
  std::unordered_map<TextId, bool> known;  // each name is looked at once
  for (const Slice& slice : rank.slices) {
    const auto [it, is_new] = known.try_emplace(slice.name, false);
    if (is_new) it->second = is_one(rank.TextOf(slice.name));
    if (!it->second) continue;
    ++calls.count;
    calls.ns += slice.end_ns - slice.start_ns;
    if (!calls.first_ns) calls.first_ns = slice.start_ns;
  }
  return calls;
}

Transport SumOf(const Rank& rank, std::string_view transport) {
  Transport sum{.name = std::string(transport)};
  for (const Collective& each : rank.collectives) {
    for (const Transport& part : each.transports) {
      if (part.name != transport) continue;
      sum.size_mb += part.size_mb;
      sum.time_ms += part.time_ms;
    }
  }
  return sum;
}

double SpeedOf(const Transport& sum) { return sum.time_ms > 0 ? sum.size_mb / sum.time_ms : 0; }

std::string_view ApiOf(std::string_view name) {
  const size_t at = name.find('@');
  return at == std::string_view::npos ? name : name.substr(at + 1);
}

Json RatioOf(double mine, double other) {
  if (other == 0) return mine == 0 ? Json(1) : Json();
  return std::round(mine / other * 1e4) / 1e4;
}

bool ShapesAreDynamic(const Rank& rank) { return !rank.op_states.empty() && !rank.op_states.contains("static"); }

std::string LowerOf(std::string_view text) {
  std::string lower(text);
  std::ranges::transform(lower, lower.begin(), [](unsigned char c) { return static_cast<char>(std::tolower(c)); });
  return lower;
}

std::string NameOf(const Rank& rank) { return RankName(rank); }

}  // namespace profd::analysis
