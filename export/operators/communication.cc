// The tasks of communication that a device ran, and the operations they make (operator-data b.5).
#include "export/operators/communication.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <unordered_map>
#include <utility>

#include "base/text.h"
#include "export/operators/model.h"
#include "export/operators/numbers.h"

namespace profd::exporting::operators {
namespace {

constexpr uint32_t kMasterApi = 0x10001;
constexpr uint32_t kRdmaPayload = 1;

uint64_t TaskKey(const auto& task) {
  return uint64_t{task.stream} << 32 | uint64_t{task.batch} << 16 | task.task;
}

// Collects the tasks of one device, then makes operations of them.
class Maker {
 public:
  Maker(const Model& model, int device, int64_t begin_ns) : model_(model), device_(device), begin_ns_(begin_ns) {
    const std::vector<CommunicationHostTask>& tasks = model.host_tasks.communication;
    for (size_t i = 0; i < tasks.size(); ++i) {
      if (tasks[i].device == device) by_key_.emplace_back(TaskKey(tasks[i]), static_cast<int32_t>(i));
    }
    std::ranges::stable_sort(by_key_, {}, &std::pair<uint64_t, int32_t>::first);
  }

  // Rows of one key in the order they ran.
  void Add(const TaskRow& row) {
    const auto [begin, end] = EqualRange(by_key_, TaskKey(row), &std::pair<uint64_t, int32_t>::first);
    if (begin == end || row.start_ns < begin_ns_) return;
    const int32_t repeat = ++seen_[TaskKey(row) << 16 | (row.context & 0xFFFF)];
    for (auto it = begin; it != end; ++it) AddTasks(row, it->second, repeat);
  }

  void Finish(Communication* into) {
    std::ranges::stable_sort(made_, {}, [](const MadeTask& made) { return made.task.start_ns; });
    for (MadeTask& made : made_) made.task.op = OpOf(made);
    for (const MadeTask& made : made_) Widen(made);
    std::ranges::stable_sort(made_, {}, [](const MadeTask& made) { return made.task.op; });
    const auto first = static_cast<int32_t>(into->ops.size());
    for (CommunicationOp& op : ops_) {
      op.shown = op.end_ns > 0 && op.start_ns >= begin_ns_;
      into->ops.push_back(op);
    }
    SetBandwidths();
    for (MadeTask& made : made_) {
      made.task.op += first;
      into->tasks.push_back(made.task);
    }
  }

 private:
  struct MadeTask {
    CommunicationTask task;
    int32_t repeat = 1;
  };

  void AddTasks(const TaskRow& row, int32_t index, int32_t repeat) {
    const CommunicationHostTask& host = model_.host_tasks.communication[static_cast<size_t>(index)];
    const std::vector<CommunicationInfo>& infos = model_.host.communication.infos;
    if (!host.Has(infos, row.context)) return;
    if (host.HasRange() && !host.InRange(row.context)) return;  // what is around the contexts is none of the tasks
    Push(row, index, host.InfoOf(infos, row.context), repeat);
  }

  void Push(const TaskRow& row, int32_t host, int32_t info, int32_t repeat) {
    CommunicationTask task;
    task.start_ns = row.start_ns;
    task.end_ns = row.end_ns;
    task.rest_ns = row.rest_ns;
    task.host = host;
    task.info = info;
    task.context = row.context;
    task.master = IsMaster(model_.host.apis[static_cast<size_t>(model_.HostOf(task).api)].type);
    made_.push_back({task, repeat});
  }

  // By the name of its type, else by the number that it has mostly had.
  bool IsMaster(uint32_t type) const {
    const std::string& name = model_.host.TypeName(kCommunicationLevel, type);
    return name == "master" || (type == kMasterApi && name != "slave");
  }

  // By the start of the tasks. The group is the task's, else the operation's.
  int32_t OpOf(const MadeTask& made) {
    const CommunicationHostTask& host = model_.HostOf(made.task);
    const auto [found, is_new] = numbers_.try_emplace({host.launch, made.repeat}, static_cast<int32_t>(ops_.size()));
    CommunicationOp* op = is_new ? &ops_.emplace_back() : &ops_[static_cast<size_t>(found->second)];
    if (!is_new) return found->second;
    op->launch = host.launch;
    op->device = static_cast<int16_t>(device_);
    op->model = host.model;
    op->repeat = made.repeat;
    if (const CommunicationInfo* info = model_.InfoOf(made.task)) {
      op->group = info->group;
      op->rank_size = info->rank_size;
    } else if (const CommunicationOpInfo* op_info = model_.InfoOf(*op)) {
      op->group = op_info->group;
    }
    const Api& api = model_.host.apis[static_cast<size_t>(model_.LaunchOf(*op).api)];
    const bool by_cpu = model_.host.NameOf(api.item).find("AicpuKernel") != std::string::npos;
    Counter& counter = counters_.try_emplace({op->group, by_cpu}, Counter{-1, begin_ns_}).first->second;
    if (const int64_t begin = model_.host.WallNs(api.begin); begin > counter.last_ns) {
      ++counter.number;
      counter.last_ns = begin;
    }
    op->number = counter.number;
    return found->second;
  }

  void Widen(const MadeTask& made) {
    CommunicationOp& op = ops_[static_cast<size_t>(made.task.op)];
    if (const CommunicationInfo* info = model_.InfoOf(made.task); info != nullptr && op.rank_size == 0) {
      op.rank_size = info->rank_size;
    }
    if (!made.task.master) return;
    if (op.end_ns == 0) op.start_ns = made.task.start_ns;
    op.end_ns = std::max(op.end_ns, made.task.end_ns);
  }

  // Size by time; RDMA payloads one after the other of one operation and plane go together, up to the task that
  // closes them.
  void SetBandwidths() {
    std::map<std::pair<int32_t, uint32_t>, std::vector<CommunicationTask*>> planes;
    for (MadeTask& made : made_) {
      const CommunicationInfo* info = model_.InfoOf(made.task);
      if (info == nullptr) continue;
      made.task.gbps = Rate(info->bytes, made.task.duration_ns());
      planes[{made.task.op, info->plane}].push_back(&made.task);
    }
    for (auto& [plane, tasks] : planes) SetPayloadBandwidths(ops_[static_cast<size_t>(plane.first)], tasks);
  }

  void SetPayloadBandwidths(const CommunicationOp& op, std::vector<CommunicationTask*>& tasks) const {
    const auto is_payload = [this](const CommunicationTask* task) {
      return model_.InfoOf(*task)->rdma == kRdmaPayload;
    };
    // "hcom_batchSendRecv_", too.
    const std::string name = LowerCase(model_.host.NameOf(model_.host.apis[static_cast<size_t>(model_.LaunchOf(op).api)].item));
    const bool one_way = name.find("send") != std::string::npos || name.find("receive") != std::string::npos;
    const size_t jump = one_way ? 3 : 5;
    for (size_t first = 0; first < tasks.size();) {
      size_t end = first;
      uint64_t bytes = 0;
      for (; end < tasks.size() && is_payload(tasks[end]); ++end) bytes += model_.InfoOf(*tasks[end])->bytes;
      const size_t closing = first + (end - first) + jump - 2;
      if (end > first && closing < tasks.size()) {
        const double rate = Rate(bytes, static_cast<double>(tasks[closing]->end_ns - tasks[first]->start_ns));
        for (size_t i = first; i < end; ++i) tasks[i]->gbps = rate;
      }
      first = std::max(end, first + 1);
    }
  }

  static double Rate(uint64_t bytes, double ns) { return ns > 0 ? static_cast<double>(bytes) / ns : 0; }

  struct Counter {
    int32_t number;
    int64_t last_ns;  // begin of the operation counted last
  };
  const Model& model_;
  const int device_;
  const int64_t begin_ns_;
  std::vector<std::pair<uint64_t, int32_t>> by_key_;
  std::unordered_map<uint64_t, int32_t> seen_;
  std::vector<MadeTask> made_;
  std::vector<CommunicationOp> ops_;
  std::map<std::pair<int32_t, int32_t>, int32_t> numbers_;   // by launch and repeat
  std::map<std::pair<uint64_t, bool>, Counter> counters_;  // by group, and whether an AI CPU runs it
};

}  // namespace

int32_t CommunicationHostTask::InfoOf(const std::vector<CommunicationInfo>& infos, uint32_t context) const {
  for (uint32_t i = infos_end; i > infos_begin; --i) {
    if (infos[i - 1].context == context) return static_cast<int32_t>(i - 1);
  }
  return -1;
}

bool CommunicationHostTask::Has(const std::vector<CommunicationInfo>& infos, uint32_t context) const {
  if (HasRange()) return InRange(context) || context == kNoContext;
  return infos_begin == infos_end ? context == kNoContext : InfoOf(infos, context) >= 0;
}

void Model::AddCommunication(int device, std::span<const TaskRow> ran, int64_t begin_ns) {
  Maker maker(*this, device, begin_ns);
  for (const TaskRow& row : ran) maker.Add(row);
  maker.Finish(&communication);
}

std::string Model::NameOf(const CommunicationOp& op) const {
  const Api& api = host.apis[static_cast<size_t>(LaunchOf(op).api)];
  std::string group = op.group == 0 ? kNotKnown : fmt::to_string(op.group);
  if (group.size() > 3) group.erase(0, group.size() - 3);
  return fmt::format("{}_{}_{}_{}", host.NameOf(api.item), group, op.number, op.repeat);
}

std::string Model::TypeOf(const CommunicationOp& op) const {
  const int32_t node = LaunchOf(op).node;
  return node < 0 ? kNotKnown : host.NameOf(host_tasks.nodes[static_cast<size_t>(node)].type);
}

}  // namespace profd::exporting::operators
