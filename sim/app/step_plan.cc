#include "sim/app/step_plan.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "sim/noise.h"

namespace profd::sim::app {
namespace {

constexpr int64_t kCompileNs = 20'000'000;
constexpr int64_t kAicpuFactor = 20;
constexpr int64_t kLowOccupancyFactor = 8;
constexpr int64_t kRetransmissionFactor = 5;
constexpr int64_t kGcSteps = 4;
constexpr uint64_t kBatchNormBytes = 2048;
constexpr uint64_t kMostRows = 4096;
constexpr int64_t kGetNextNs = 50'000;
const std::vector<acl::Tensor> kNoTensors;

constexpr int64_t kMostReductions = 5000;  // that tags distinguish

const char* FunctionOf(std::string_view what) {
  if (what == "allReduce") return "HcclAllReduce";
  if (what == "alltoall") return "HcclAlltoAll";
  return what == "send" ? "HcclSend" : "HcclRecv";
}

class Planner {
 public:
  Planner(const Job& job, uint32_t rank, int64_t step)
      : job_(job), rank_(rank), position_(PositionOf(job, rank)), step_(step) {
    // The layers of this stage: as even as it goes, the first stages have the rest.
    std::vector<std::pair<const Layer*, uint32_t>> all;
    for (const Layer& layer : job.layers) {
      for (uint32_t i = 0; i < layer.count; ++i) all.emplace_back(&layer, i);
    }
    const size_t stages = job.pipeline_parallel, stage = position_.stage;
    const size_t begin = all.size() * stage / stages, end = all.size() * (stage + 1) / stages;
    layers_.assign(all.begin() + static_cast<ptrdiff_t>(begin),
                   all.begin() + static_cast<ptrdiff_t>(end));
  }

  std::vector<Action> Plan() && {
    LoadBatch();
    if (job_.graph) GetNext();
    Add(Action::kPush, "forward");
    for (uint32_t i = 0; i < job_.microbatches; ++i) Forward();
    Add(Action::kPop, "forward");
    Add(Action::kPush, "backward");
    for (uint32_t i = 0; i < job_.microbatches; ++i) Backward(i + 1 == job_.microbatches);
    Add(Action::kPop, "backward");
    Add(Action::kPush, "optimizer");
    Wait(kCompute, kCommunicate);
    for (const Operator& op : job_.optimizer) Launch(op, op.name, op.forward_ns);
    Add(Action::kPop, "optimizer");
    for (int64_t i = 0; i < Number(kMemoryStorm); ++i) {
      Add(Action::kAllocate, "storm").bytes = 1u << 20;
    }
    if (Number(kGcGaps) > 0 && step_ % kGcSteps == kGcSteps - 1) {
      Add(Action::kPause, "gc").duration_ns = Number(kGcGaps) * 1'000'000;
    }
    Wait(kCompute, kLink);
    if (job_.graph) {
      Trace(acl::kIterationEnd);
      Trace(acl::kModelEnd);
    }
    Add(Action::kSynchronize, "loss").stream = kCompute;
    return std::move(actions_);
  }

 private:
  int64_t Number(Problem problem) const { return job_.problems[problem]; }
  Action& Add(Action::Kind kind, std::string name) {
    Action& action = actions_.emplace_back();
    action.kind = kind;
    action.name = std::move(name);
    return action;
  }
  void Wait(Stream stream, Stream other) {
    Action& action = Add(Action::kWait, "");
    action.stream = stream;
    action.other = other;
  }

  void LoadBatch() {
    // The loader works one step ahead: what is late is waited for.
    if (Number(kSlowDataLoader) > 0) {
      Add(Action::kPause, "dataloader").duration_ns = Number(kSlowDataLoader) * 1'000'000;
    }
    if (job_.batch_bytes > 0 && position_.stage == 0)
      Add(Action::kCopy, "batch").bytes = job_.batch_bytes;
  }

  void Trace(uint16_t tag, Stream stream = kCompute) {
    Action& action = Add(Action::kTrace, "");
    action.stream = stream;
    action.tag = tag;
  }

  // Out of the queue on the device, by the AI CPU; the graph begins with it.
  void GetNext() {
    Trace(acl::kModelStart);
    Trace(acl::kGetNextStart);
    Action& action = Add(Action::kLaunch, "GetNext");
    action.type = "GetNext";
    action.task_type = prof::kTaskAicpu;
    action.duration_ns = kGetNextNs;
    action.tensors = &kNoTensors;
    Trace(acl::kGetNextEnd);
    Trace(acl::kForwardStart);
  }

  void Launch(const Operator& op, const std::string& name, int64_t duration_ns) {
    const int64_t parts =
        op.task_type == prof::kTaskAivec ? std::max<int64_t>(1, Number(kUnfusedPatterns)) : 1;
    for (int64_t part = 0; part < parts; ++part) {
      const int64_t number = launched_++;
      // Spread over the step by their number.
      if (number < Number(kDynamicShapes)) {
        Add(Action::kPause, "compile " + op.type).duration_ns = kCompileNs;
      }
      Action& action =
          Add(Action::kLaunch, parts == 1 ? name : fmt::format("{}_part{}", name, part));
      action.type = op.type;
      action.function = op.function;
      action.task_type = op.task_type;
      action.block_dim = op.block_dim;
      action.tensors = &op.tensors;
      if (number < Number(kDynamicShapes)) action.rows = RowsNow(number);
      action.duration_ns = Duration(duration_ns / parts, number);
      if (number < Number(kAicpuOperators)) {
        action.task_type = prof::kTaskAicpu;
        action.duration_ns *= kAicpuFactor;
      } else if (number < Number(kAicpuOperators) + Number(kLowOccupancy)) {
        action.block_dim = 1;
        action.duration_ns *= kLowOccupancyFactor;
      }
      if (Number(kSyncStreams) > 0 && launched_ % Number(kSyncStreams) == 0) {
        Add(Action::kSynchronize, "item").stream = kCompute;
      }
    }
  }

  // Another shape in each step is what makes it be compiled.
  uint32_t RowsNow(int64_t number) const {
    const uint64_t hash = Hash(job_.seed, static_cast<uint64_t>(step_), static_cast<uint64_t>(number), 7);
    return 1 + static_cast<uint32_t>(hash % kMostRows);
  }

  // With up to 2 % of noise, and what makes this rank or this half of the job slower.
  int64_t Duration(int64_t nominal_ns, int64_t number) const {
    double ns = static_cast<double>(nominal_ns);
    const uint64_t hash =
        Hash(job_.seed, rank_, static_cast<uint64_t>(step_), static_cast<uint64_t>(number));
    ns *= 1 + 0.02 * Unit(hash);
    if (rank_ + 1 == job_.ranks()) ns *= 1 + static_cast<double>(Number(kSlowRank)) / 100;
    if (step_ >= job_.steps / 2) ns /= 1 - static_cast<double>(Number(kFrequencyLoss)) / 100;
    return static_cast<int64_t>(ns);
  }

  void Communicate(const char* what, const std::string& name, uint64_t bytes, const GroupOf& group,
                   Stream stream) {
    if (group.members < 2) return;
    const bool splits = std::string_view(what) == "allReduce" && Number(kSmallPackets) > 1;
    const int64_t parts = splits ? Number(kSmallPackets) : 1;
    const bool reduces = job_.graph && std::string_view(what) == "allReduce";
    for (int64_t part = 0; part < parts; ++part) {
      const auto tag = static_cast<uint16_t>(acl::kReduceStart + 2 * reduced_);
      if (reduces) Trace(tag, stream);
      Action& action =
          Add(Action::kCommunication, fmt::format("hcom_{}__{}_{}", what, name, communicated_++));
      action.type = fmt::format("hcom_{}_", what);
      action.function = FunctionOf(what);
      action.stream = stream;
      action.bytes = bytes / static_cast<uint64_t>(parts);
      action.group = group;
      action.duration_ns = Transfer(action.bytes, group, stream);
      if (!reduces) continue;
      Trace(tag + 1, stream);
      reduced_ = (reduced_ + 1) % kMostReductions;
    }
  }

  // The same on all members: as long as the links need.
  int64_t Transfer(uint64_t bytes, const GroupOf& group, Stream stream) const {
    const double share = 2.0 * (group.members - 1) / group.members;
    double ns = static_cast<double>(bytes) * share / job_.bytes_per_ns;
    // What the computation beside it leaves of the memory's bandwidth.
    if (stream == kCommunicate) ns *= 1 + static_cast<double>(Number(kContention)) / 100;
    // Rank 0 and 1 are in the first group of each kind.
    if (group.name.ends_with("_0")) ns *= 1 + static_cast<double>(Number(kSlowLink)) / 100;
    const uint64_t hash =
        Hash(job_.seed, static_cast<uint64_t>(step_), static_cast<uint64_t>(communicated_), 5);
    if (static_cast<int64_t>(hash % 100) < Number(kRetransmission)) ns *= kRetransmissionFactor;
    return static_cast<int64_t>(ns) + job_.link_latency_ns;
  }

  void Link(bool to_next, bool forward) {
    const bool there = to_next ? position_.stage + 1 < job_.pipeline_parallel : position_.stage > 0;
    if (!there) return;
    const bool sends = to_next == forward;
    if (sends) Wait(kLink, kCompute);
    Communicate(sends ? "send" : "receive", "pp", job_.activation_bytes,
                LinkGroup(job_, rank_, to_next, forward), kLink);
    if (!sends) Wait(kCompute, kLink);
  }

  void Forward() {
    Link(false, true);
    int64_t norms = Number(kSyncBatchNorm);
    for (const auto& [layer, index] : layers_) {
      const std::string prefix = fmt::format("{}_{}/", layer->name, index);
      Exchange(*layer, prefix);
      for (const Operator& op : layer->operators) Launch(op, prefix + op.name, op.forward_ns);
      Exchange(*layer, prefix);
      ReduceTensor(*layer, prefix);
      if (norms-- > 0) Collective("allReduce", "syncbn", kBatchNormBytes, ExpertGroup(job_, rank_));
    }
    Link(true, true);
  }

  void Backward(bool last) {
    Link(true, false);
    for (auto it = layers_.rbegin(); it != layers_.rend(); ++it) {
      const Layer& layer = *it->first;
      const std::string prefix = fmt::format("{}_{}/", layer.name, it->second);
      for (auto op = layer.operators.rbegin(); op != layer.operators.rend(); ++op) {
        if (op->backward_ns > 0) Launch(*op, prefix + op->name + "_grad", op->backward_ns);
      }
      ReduceTensor(layer, prefix);
      if (job_.graph && last && it + 1 == layers_.rend()) Trace(acl::kBackwardEnd);
      if (!last || layer.gradient_bytes == 0) continue;
      // Overlaps the backward of the layers before it.
      Wait(kCommunicate, kCompute);
      Communicate("allReduce", prefix.substr(0, prefix.size() - 1), layer.gradient_bytes,
                  DataGroup(job_, rank_), kCommunicate);
    }
    Link(false, false);
  }

  // The computation that follows needs its result.
  void Collective(const char* what, const std::string& name, uint64_t bytes, const GroupOf& group) {
    if (bytes > 0) Communicate(what, name, bytes, group, kCompute);
  }
  void Exchange(const Layer& layer, const std::string& prefix) {
    Collective("alltoall", prefix.substr(0, prefix.size() - 1), layer.expert_bytes,
               ExpertGroup(job_, rank_));
  }
  void ReduceTensor(const Layer& layer, const std::string& prefix) {
    Collective("allReduce", prefix.substr(0, prefix.size() - 1), layer.tensor_bytes,
               TensorGroup(job_, rank_));
  }

  const Job& job_;
  const uint32_t rank_;
  const RankPosition position_;
  const int64_t step_;
  std::vector<std::pair<const Layer*, uint32_t>> layers_;
  std::vector<Action> actions_;
  int64_t launched_ = 0;
  int64_t communicated_ = 0;
  int64_t reduced_ = 0;
};

}  // namespace

RankPosition PositionOf(const Job& job, uint32_t rank) {
  return {rank % job.tensor_parallel, rank / job.tensor_parallel % job.data_parallel,
          rank / job.tensor_parallel / job.data_parallel};
}

GroupOf DataGroup(const Job& job, uint32_t rank) {
  const RankPosition position = PositionOf(job, rank);
  return {fmt::format("dp_{}", position.stage * job.tensor_parallel + position.tensor), job.data_parallel,
          position.data};
}

GroupOf ExpertGroup(const Job& job, uint32_t rank) {
  // One group has one stream, as the vendor's communicators do.
  GroupOf group = DataGroup(job, rank);
  group.name.replace(0, 2, "ep");
  return group;
}

GroupOf TensorGroup(const Job& job, uint32_t rank) {
  return {fmt::format("tp_{}", rank / job.tensor_parallel), job.tensor_parallel,
          PositionOf(job, rank).tensor};
}

GroupOf LinkGroup(const Job& job, uint32_t rank, bool to_next, bool forward) {
  const RankPosition position = PositionOf(job, rank);
  const uint32_t first = to_next ? position.stage : position.stage - 1;
  return {fmt::format("pp_{}_{}_{}", forward ? "forward" : "backward",
                      position.data * job.tensor_parallel + position.tensor, first),
          2, to_next ? 0u : 1u};
}

std::vector<Action> PlanStep(const Job& job, uint32_t rank, int64_t step) {
  return Planner(job, rank, step).Plan();
}

}  // namespace profd::sim::app
