#include "analysis/checks/check.h"

#include <array>
#include <cmath>
#include <unordered_map>

#include "analysis/views/views.h"

namespace profd::analysis {
namespace {

constexpr auto kChecks = std::to_array<Check>({
    {"overall_summary", Dimension::kOverall, {"operators or step_trace_time.csv", "算子或 step_trace_time.csv"}, {"where the time went: computing, communication, free", "时间花在何处：计算、通信、空闲"}, false, CheckOverall},
    {"slow_rank", Dimension::kOverall, {"several ranks", "多个 rank"}, {"ranks that compute, communicate or wait longer than others", "计算、通信或等待时间长于其他 rank 的 rank"}, true, CheckSlowRank},
    {"slow_link", Dimension::kOverall, {"communication.json of several ranks", "多个 rank 的 communication.json"}, {"bandwidth of SDMA and RDMA by step and rank", "各 step、rank 的 SDMA 与 RDMA 带宽"}, true, CheckSlowLink},
    {"environment", Dimension::kOverall, {"variables in profiler_metadata.json", "profiler_metadata.json 中的环境变量"}, {"variables that slow a training down", "影响训练性能的环境变量"}, false, CheckEnvironment},
    {"stage_imbalance", Dimension::kOverall, {"several ranks that send to each other", "互相发送数据的多个 rank"}, {"stages of a pipeline with more work than others", "负载高于其他阶段的流水线阶段"}, true, CheckStageImbalance},
    {"wait_for_rank", Dimension::kOverall, {"communication of several ranks", "多个 rank 的通信"}, {"a rank that the others wait for", "被其他 rank 等待的 rank"}, true, CheckWaitForRank},
    {"expert_imbalance", Dimension::kOverall, {"all-to-all communication of several ranks", "多个 rank 的 all-to-all 通信"}, {"ranks whose experts have more work than others", "专家负载高于其他 rank 的 rank"}, true, CheckExpertImbalance},
    {"bandwidth_imbalance", Dimension::kOverall, {"communication.json or communication_matrix.json of several ranks", "多个 rank 的 communication.json 或 communication_matrix.json"}, {"ranks and links with less bandwidth than the others", "带宽低于其他的 rank 与链路"}, true, CheckBandwidthImbalance},
    {"kernel_compare", Dimension::kComparison, {"operators of the run and of --baseline, or of several ranks", "本次与 --baseline 的算子，或多个 rank 的算子"}, {"operators by type, beside those of the other run or rank", "按类型与另一次运行或 rank 对比算子"}, true, CheckKernelCompare},
    {"api_compare", Dimension::kComparison, {"framework operators of the run and of --baseline, or of several ranks", "本次与 --baseline 的框架算子，或多个 rank 的框架算子"}, {"what the host spends on framework operators, beside the other run or rank", "与另一次运行或 rank 对比主机侧框架算子耗时"}, true, CheckApiCompare},
    {"ai_core_frequency", Dimension::kComputation, {"AI Core frequency and operators", "AI Core 频率与算子"}, {"operators that ran while the AI Core was slower than it should be", "AI Core 降频期间执行的算子"}, false, CheckAiCoreFrequency},
    {"aicpu", Dimension::kComputation, {"operators", "算子"}, {"operators on the AI CPU", "在 AI CPU 上执行的算子"}, false, CheckAiCpu},
    {"dynamic_shape", Dimension::kComputation, {"OP State", "OP State"}, {"no operator was compiled for a static shape", "没有算子按静态 shape 编译"}, false, CheckDynamicShape},
    {"operator_no_bound", Dimension::kComputation, {"PipeUtilization counters", "PipeUtilization 计数"}, {"operators that no unit bounds", "无任何单元成为瓶颈的算子"}, false, CheckOperatorNoBound},
    {"block_dim", Dimension::kComputation, {"block dim, and the device's numbers of cores", "block dim 与设备核数"}, {"operators that leave cores without work", "未用满核的算子"}, false, CheckBlockDim},
    {"ai_core_performance", Dimension::kComputation, {"PipeUtilization counters and shapes", "PipeUtilization 计数与 shape"}, {"what limits matrix multiplications, attention and vector operators", "矩阵乘、注意力与向量算子的瓶颈"}, false, CheckAiCorePerformance},
    {"hardware_throttle", Dimension::kComputation, {"npu_state in the dump", "转储中的 npu_state"}, {"the device lowers its clock, with the reasons", "设备降频及其原因"}, false, CheckThrottle},
    {"hardware_hbm", Dimension::kComputation, {"npu_state in the dump and operators", "转储中的 npu_state 与算子"}, {"operators that wait for HBM", "等待 HBM 的算子"}, false, CheckHbm},
    {"hardware_other_process", Dimension::kComputation, {"npu_state in the dump", "转储中的 npu_state"}, {"other processes on the same NPU", "同一 NPU 上的其他进程"}, false, CheckOtherProcess},
    {"synchronize_stream", Dimension::kSchedule, {"API calls", "API 调用"}, {"launches that wait for the stream each time", "每次下发都等待流同步"}, false, CheckSynchronizeStream},
    {"gc", Dimension::kSchedule, {"events or marked ranges of garbage collection", "垃圾回收事件或区间标记"}, {"collections of Python's garbage", "Python 垃圾回收"}, false, CheckGc},
    {"conjectured_gc", Dimension::kSchedule, {"free time and API calls", "空闲时间与 API 调用"}, {"long gaps in which the host called nothing", "主机无任何调用的长空隙"}, false, CheckConjecturedGc},
    {"operator_dispatch", Dimension::kSchedule, {"API calls or marked ranges", "API 调用或区间标记"}, {"operators that are compiled while training", "训练中编译的算子"}, false, CheckOperatorDispatch},
    {"sync_batch_norm", Dimension::kSchedule, {"framework operators", "框架算子"}, {"SyncBatchNorm in its slow form", "低效形式的 SyncBatchNorm"}, false, CheckSyncBatchNorm},
    {"affinity_api", Dimension::kSchedule, {"framework operators; call stacks say where", "框架算子；调用栈给出位置"}, {"sequences of framework operators that the NPU has one API for", "可由一个 NPU 接口替代的框架算子序列"}, false, CheckAffinityApi},
    {"fusible_operators", Dimension::kSchedule, {"operators; transfers need PipeUtilization counters", "算子；搬运需要 PipeUtilization 计数"}, {"sequences of operators that repeat and could be one", "重复出现且可融合的算子序列"}, false, CheckFusibleOperators},
    {"host_cpu", Dimension::kSchedule, {"host_pressure in the dump and operators", "转储中的 host_pressure 与算子"}, {"the host has no CPU free while the device waits", "设备等待时主机无空闲 CPU"}, false, CheckHostCpu},
    {"host_memory", Dimension::kSchedule, {"host_pressure in the dump and operators", "转储中的 host_pressure 与算子"}, {"the host is short of memory while the device waits", "设备等待时主机内存不足"}, false, CheckHostMemory},
    {"host_storage", Dimension::kSchedule, {"host_pressure in the dump and operators", "转储中的 host_pressure 与算子"}, {"checkpoints, dumps or data being read while the device is free", "设备空闲时写检查点、转储或读数据"}, false, CheckHostStorage},
    {"host_affinity", Dimension::kSchedule, {"a process and the NUMA node of its device in the dump", "转储中的进程及其设备的 NUMA 节点"}, {"a process that may run on CPUs far from its NPU", "进程可运行在远离其 NPU 的 CPU 上"}, false, CheckHostAffinity},
    {"hardware_pcie", Dimension::kSchedule, {"pcie or npu_state in the dump", "转储中的 pcie 或 npu_state"}, {"copies between host and device that fill PCIe, and its errors", "占满 PCIe 的主机与设备间拷贝，及 PCIe 错误"}, false, CheckPcie},
    {"host_profiling", Dimension::kSchedule, {"profd among the watched processes, or operators recorded by profd", "被监视的进程中有 profd，或由 profd 采集的算子"}, {"what recording itself takes of the node's CPUs", "采集本身占用的节点 CPU"}, false, CheckProfiling},
    {"packet", Dimension::kCommunication, {"communication.json", "communication.json"}, {"communication in small packets", "小包通信"}, false, CheckPacket},
    {"bandwidth_contention", Dimension::kCommunication, {"communication.json and operators", "communication.json 与算子"}, {"communication that is slow beside matrix multiplications", "与矩阵乘并行时变慢的通信"}, false, CheckBandwidthContention},
    {"byte_alignment", Dimension::kCommunication, {"tasks of collectives", "集合通信的任务"}, {"collectives that move data in sizes that do not fit", "搬运大小未对齐的集合通信"}, false, CheckByteAlignment},
    {"retransmission", Dimension::kCommunication, {"communication.json of all ranks", "全部 rank 的 communication.json"}, {"RDMA that repeats packets", "RDMA 重传"}, true, CheckRetransmission},
    {"hardware_hccs", Dimension::kCommunication, {"npu_state in the dump", "转储中的 npu_state"}, {"HCCS links that repeat data or lose lanes", "重传数据或丢失通道的 HCCS 链路"}, false, CheckHccs},
    {"hardware_roce", Dimension::kCommunication, {"npu_state, roce or nic in the dump", "转储中的 npu_state、roce 或 nic"}, {"RoCE ports that send again, are paused or drop", "重发、被暂停或丢包的 RoCE 端口"}, false, CheckRoce},
    {"memory", Dimension::kMemory, {"API calls", "API 调用"}, {"time spent in taking and freeing memory of the device", "申请与释放设备内存的耗时"}, false, CheckMemory},
    {"dataloader", Dimension::kDataloader, {"framework operators, or MindData's queues", "框架算子或 MindData 队列"}, {"a slow data loader or input pipeline", "数据加载慢"}, false, CheckDataloader},
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
  if (Reaches(share, limits.At("priority", "high"))) return Priority::kHigh;
  return Reaches(share, limits.At("priority", "medium")) ? Priority::kMedium : Priority::kLow;
}

bool Reaches(double share, double limit) {
  constexpr double kRounded = 1e-9;
  return share >= limit - kRounded;
}

double StepLengthMs(const CheckInput& input) {
  const std::vector<Step>& steps = input.rank.steps;
  const Step* const step = input.step != nullptr ? input.step : steps.empty() ? nullptr : &steps.back();
  return step == nullptr ? 0 : Ms(step->end_ns - step->start_ns);
}

double PerStep(const Rank& rank, double ms) { return ms / StepsOf(rank); }

Sides SidesOf(const CheckInput& input, bool (*has)(const Rank& rank)) {
  const auto has_not = [has](const Rank* rank) { return !has(*rank); };
  const auto has_steps = [](const Rank* rank) { return HasSteps(*rank); };
  Sides sides{input.compared, input.compared_with};
  std::erase_if(sides.mine, has_not);
  std::erase_if(sides.other, has_not);
  sides.of_steps = std::ranges::any_of(sides.mine, has_steps) && std::ranges::any_of(sides.other, has_steps);
  const auto divisor = [&](std::vector<const Rank*>* ranks) {
    if (!sides.of_steps) return static_cast<double>(ranks->size());
    double steps = 0;
    std::erase_if(*ranks, std::not_fn(has_steps));
    for (const Rank* rank : *ranks) steps += StepsOf(*rank);
    return steps;
  };
  sides.mine_per = divisor(&sides.mine);
  sides.other_per = divisor(&sides.other);
  return sides;
}

std::optional<double> ComparedCost(const CheckInput& input, const Sides& sides, double slower_ms) {
  return sides.of_steps || !HasSteps(input.run) ? std::optional(slower_ms) : std::nullopt;
}

bool IsInSteps(const Rank& rank, int64_t start_ns) {
  return !rank.recorded || (start_ns >= rank.recorded->start_ns && start_ns < rank.recorded->end_ns);
}

Calls CallsOf(const CheckInput& input, const std::function<bool(std::string_view name)>& is_one) {
  const Rank& rank = input.rank;
  Calls calls;
  std::unordered_map<TextId, bool> known;  // each name is looked at once
  for (const Slice& slice : rank.slices) {
    const auto [it, is_new] = known.try_emplace(slice.name, false);
    if (is_new) it->second = is_one(rank.TextOf(slice.name));
    if (!it->second || !input.IsInStep(slice.start_ns, slice.end_ns)) continue;
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
      if (part.name == transport) sum.Add(part);
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

std::string NameOf(const Rank& rank) { return RankName(rank); }

}  // namespace profd::analysis
